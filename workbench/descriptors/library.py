"""Descriptors by name: the campaign's own folder, then the workspace, then what ships."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from workbench import paths
from workbench.descriptors.chain import ChainText
from workbench.descriptors.document import is_file, printable, read_document
from workbench.descriptors.fields import NAME_RULE, VNF_NAME_RULE, is_name, is_vnf_name
from workbench.descriptors.lookups import Chain, Kind
from workbench.descriptors.metrics import MetricsText
from workbench.descriptors.rate_traces import RateTrace
from workbench.descriptors.reading import (
    AnyDescriptor,
    Descriptor,
    DescriptorReading,
    did_you_mean,
    validated,
)
from workbench.descriptors.units import shown
from workbench.descriptors.vnf import VnfText
from workbench.domain.campaign import Metric, MetricsServer
from workbench.domain.errors import DescriptorError, Mistake, UsageError
from workbench.domain.sessions import DescriptorText
from workbench.domain.topology import VnfTemplate

FOLDERS: dict[Kind, str] = {
    "vnf": "vnfs",
    "chain": "chains",
    "campaign": "campaigns",
    "metrics": "metrics",
    "prices": "prices",
    "mapping": "mappings",
    "hosts": "hosts",
}
VNF_FILE = "vnf.yaml"
_LONGEST_CHAIN_OF_CHAINS = 20


class DescriptorLibrary:
    """Finds, reads and remembers descriptors; collects their texts and their mistakes.

    Parameters
    ----------
    roots : Path
        Folders that hold `vnfs/`, `chains/`, `campaigns/`, `metrics/` and `prices/`; the first
        that has a name wins.
    """

    def __init__(self, *roots: Path) -> None:
        self.roots = tuple(dict.fromkeys(root.absolute() for root in roots))
        self.texts: list[DescriptorText] = []
        self.mistakes: list[Mistake] = []
        self._vnfs: dict[str, VnfTemplate | None] = {}
        self._put: dict[str, VnfTemplate] = {}
        self._chains: dict[str, Chain | None] = {}
        self._metrics: dict[str, tuple[tuple[Metric, ...], tuple[MetricsServer, ...]] | None] = {}
        self._chains_being_read: list[str] = []
        self.traces: dict[str, RateTrace] = {}
        """Recorded rates that a campaign names, by their file's name."""

    def put(self, templates: Mapping[str, VnfTemplate]) -> None:
        """Templates that have no file; they go over those that have."""
        self._put.update(templates)
        self._vnfs.update(templates)

    def path(self, kind: Kind, name: str) -> Path | None:
        """The file of that name; None if there is none."""
        if not is_name(name):
            return None
        file = Path(name, VNF_FILE) if kind == "vnf" else Path(f"{name}.yaml")
        found = (root / FOLDERS[kind] / file for root in self.roots)
        return next((path for path in found if is_file(path)), None)

    def names(self, kind: Kind) -> tuple[str, ...]:
        """Every name of that kind, sorted."""
        pattern = f"*/{VNF_FILE}" if kind == "vnf" else "*.yaml"
        found = {
            path.parent.name if kind == "vnf" else path.stem
            for root in self.roots
            for path in (root / FOLDERS[kind]).glob(pattern)
        }
        return tuple(sorted(name for name in found if is_name(name)))

    def require(self, kind: Kind, name: str) -> None:
        """Raise `ValueError` with a sentence if nothing of that kind has that name."""
        if self.path(kind, name) is not None or (kind == "vnf" and name in self._put):
            return
        noun = {"vnf": "VNF", "metrics": "metrics descriptor"}.get(kind, kind)
        own = self._put if kind == "vnf" else ()
        hint = did_you_mean(name, (*own, *self.names(kind)))
        if kind == "vnf" and self.path("chain", name):
            hint = f"it is a chain: write chain: {name}"
        elif kind == "chain" and self.path("vnf", name):
            hint = f"it is a VNF: write vnf: {name}"
        raise ValueError(f"is {shown(name)}, but there is no {noun} of that name; {hint}")

    def vnf(self, name: str) -> VnfTemplate | None:
        """The template of that name; None where it is missing or has mistakes."""
        if name not in self._vnfs:
            path = self.path("vnf", name)
            text = self.read(path, VnfText) if path else None
            self._vnfs[name] = text.resolved(name, path.parent) if text and path else None
        return self._vnfs[name]

    def chain(self, name: str) -> Chain | None:
        """The chain of that name; None where it is missing, has mistakes or is being read."""
        if name in self._chains_being_read:
            return None
        if name not in self._chains:
            path = self.path("chain", name)
            text = self.read(path, ChainText) if path else None
            self._chains[name] = text.resolved(self) if text else None
        return self._chains[name]

    def metrics(self, name: str) -> tuple[tuple[Metric, ...], tuple[MetricsServer, ...]] | None:
        """The metrics of that name and the servers that are asked for them; None where they are
        missing or have mistakes."""
        if name not in self._metrics:
            path = self.path("metrics", name)
            text = self.read(path, MetricsText) if path else None
            self._metrics[name] = text.resolved() if text else None
        return self._metrics[name]

    def require_end(self, chain: str) -> None:
        """Raise `ValueError` with a sentence if naming a chain now would lead back to itself."""
        reading = self._chains_being_read
        if chain in reading:
            loop = " -> ".join((*reading[reading.index(chain) :], chain))
            raise ValueError(f"is {shown(chain)}, which contains itself: {loop}")
        if len(reading) >= _LONGEST_CHAIN_OF_CHAINS:
            raise ValueError(
                f"is {shown(chain)}, which is nested deeper than {_LONGEST_CHAIN_OF_CHAINS} chains"
            )

    def read(self, path: Path, model: type[AnyDescriptor]) -> AnyDescriptor | None:
        """The file as a `model`; None, with its mistakes in the library, where it is not one."""
        file = printable(path)
        try:
            document = read_document(path, file)
        except DescriptorError as error:
            self.mistakes += error.mistakes
            return None
        self.texts.append(DescriptorText(short_path(path), document.text))
        kind = kind_of(model)
        name = path.parent.name if kind == "vnf" and path.name == VNF_FILE else path.stem
        fits, rule = (
            (is_vnf_name(name), VNF_NAME_RULE) if kind == "vnf" else (is_name(name), NAME_RULE)
        )
        if not fits:
            document.note((), f"is named {shown(name)}, must be named with {rule}")
        if kind == "chain":
            self._chains_being_read.append(name)
        try:
            found = validated(model, DescriptorReading(document, path, self))
        finally:
            if kind == "chain":
                self._chains_being_read.pop()
        self.mistakes += document.mistakes
        return found


def kind_of(model: type[Descriptor]) -> Kind:
    kind: Kind = model.model_fields["kind"].default
    return kind


def short_path(path: Path) -> str:
    """A descriptor's path as sessions keep it, without the folders of this machine."""
    parts = path.absolute().parts
    depth = 3 if path.name == VNF_FILE else 2
    within = parts[-depth:]
    return "/".join(within) if within[0] in FOLDERS.values() else path.name


def neighbourhood(path: Path) -> Path:
    """The folder whose `vnfs/`, `chains/` ... stand beside this file."""
    path = path.absolute()
    if path.name == VNF_FILE and path.parent.parent.name == FOLDERS["vnf"]:
        return path.parent.parent.parent
    return path.parent.parent if path.parent.name in FOLDERS.values() else path.parent


def library_for(workspace: paths.Workspace, beside: Path | None = None) -> DescriptorLibrary:
    """The descriptors that a file, and a workspace, can name."""
    own = (neighbourhood(beside),) if beside else ()
    return DescriptorLibrary(*own, workspace.templates, paths.shipped("templates"))


def library_with(
    kind: Kind, called: str, name_or_path: str, workspace: paths.Workspace
) -> tuple[DescriptorLibrary, Path]:
    """A file of that name in the workspace, else among the shipped ones, or of that path; and the
    descriptors that it can name.

    Raises `UsageError` where there is no such `called`; it names those that there are.
    """
    if "/" in name_or_path or name_or_path.endswith((".yaml", ".yml")):
        path = Path(name_or_path)
        return library_for(workspace, beside=path), path
    library = library_for(workspace)
    found = library.path(kind, name_or_path)
    if found is None:
        raise UsageError(
            f"no {called} is called {name_or_path!r}; "
            f"{did_you_mean(name_or_path, library.names(kind))}",
            remedy="Choose one of them, or give the path of a YAML file",
        )
    return library, found
