"""`workbench lint`: what is wrong with a descriptor of any kind."""

from __future__ import annotations

from pathlib import Path

from workbench import paths
from workbench.descriptors.document import Document, read_document
from workbench.descriptors.lab_hosts import HostsText, out_of_time
from workbench.descriptors.library import FOLDERS, VNF_FILE, library_for
from workbench.descriptors.lookups import KINDS, Kind
from workbench.descriptors.models import MODELS
from workbench.descriptors.reading import did_you_mean
from workbench.descriptors.units import shown
from workbench.domain.errors import DescriptorError, Mistake


def lint(path: Path, *, workspace: paths.Workspace | None = None) -> tuple[Mistake, ...]:
    """All mistakes of a file and of the files that it names; none if it can be used.

    Its kind is what its `kind:` says, else what the folder says that it lies in.
    """
    try:
        document = read_document(path)
    except DescriptorError as error:
        return error.mistakes
    kind = _kind(document, path)
    if kind is None:
        return tuple(document.mistakes)
    library = library_for(workspace or paths.workspace(), beside=path)
    found = library.read(path, MODELS[kind])
    if isinstance(found, HostsText):
        for place, why in out_of_time(path, found):
            document.note(place, why)
    return tuple(dict.fromkeys((*library.mistakes, *document.mistakes)))


def _kind(document: Document, path: Path) -> Kind | None:
    """The kind of descriptor; None, with a mistake noted, where nothing says it."""
    by_folder = {folder: kind for kind, folder in FOLDERS.items()}
    if path.name == VNF_FILE:
        return "vnf"
    if path.absolute().parent.name in by_folder:
        return by_folder[path.absolute().parent.name]
    said = document.at(("kind",))
    for kind in KINDS:
        if said == kind:
            return kind
    if isinstance(document.root, dict) and "kind" in document.root:
        allowed = did_you_mean(str(said), KINDS)
        document.note(("kind",), f"is {shown(said)}; {allowed}")
    elif isinstance(document.root, dict):
        document.note((), f"has no kind; write one of them on top: {', '.join(KINDS)}")
    else:
        document.note((), f"is {shown(document.root)}, must be a mapping of keys to values")
    return None
