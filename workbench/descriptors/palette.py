"""What a campaign can be made of: every descriptor and registered part that it may name."""

from __future__ import annotations

from workbench import plugins
from workbench.descriptors.chain import ChainText
from workbench.descriptors.library import DescriptorLibrary, library_for
from workbench.descriptors.lookups import Kind
from workbench.descriptors.units import PRIMARIES, WORKLOADS
from workbench.domain import kpis
from workbench.domain.drafts import Origin, Palette, PaletteChain, PaletteVnf
from workbench.paths import Workspace


def palette(workspace: Workspace) -> Palette:
    """Templates with mistakes are left out and named in the notes."""
    library = library_for(workspace)
    vnfs: list[PaletteVnf] = []
    chains: list[PaletteChain] = []
    notes: list[str] = []
    for name in library.names("vnf"):
        own = DescriptorLibrary(*library.roots)  # its mistakes are not those of the next
        template = own.vnf(name)
        if template is None or own.mistakes:
            notes.append(_broken("vnf", name, own))
            continue
        vnfs.append(PaletteVnf.of(template, _origin(library, "vnf", name, workspace)))
    for name in library.names("chain"):
        own = DescriptorLibrary(*library.roots)
        path = own.path("chain", name)
        text = own.read(path, ChainText) if path else None
        chain = own.chain(name) if text else None
        if text is None or chain is None or own.mistakes:
            notes.append(_broken("chain", name, own))
            continue
        origin = _origin(library, "chain", name, workspace)
        chains.append(
            PaletteChain(name, text.summary, chain.node, chain.source, chain.sink, origin)
        )
    return Palette(
        functions=tuple(vnf for vnf in vnfs if vnf.role == "function"),
        ends=tuple(vnf for vnf in vnfs if vnf.role != "function"),
        chains=tuple(chains),
        samplers=plugins.names("samplers"),
        models=plugins.names("models"),
        generators=plugins.names("traffic"),
        metrics=library.names("metrics"),
        kpis=tuple(kpis.known()),
        workload={name: dimension.example for name, dimension in WORKLOADS.items()},
        primaries={name: dimension.example for name, dimension in PRIMARIES.items()},
        notes=tuple(notes),
    )


def _broken(kind: Kind, name: str, library: DescriptorLibrary) -> str:
    first = next(iter(library.mistakes), None)
    why = f": {first.field} {first.message}" if first else ""
    return f"{kind} {name} cannot be used{why}"


def _origin(library: DescriptorLibrary, kind: Kind, name: str, workspace: Workspace) -> Origin:
    path = library.path(kind, name)
    own = path is not None and path.is_relative_to(workspace.templates.absolute())
    return "workspace" if own else "shipped"
