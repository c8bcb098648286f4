"""Campaigns by name or path, resolved; and what there is to choose from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from workbench import files
from workbench.descriptors.campaign import CampaignText
from workbench.descriptors.library import DescriptorLibrary, library_for, library_with
from workbench.descriptors.lookups import Chain
from workbench.descriptors.reading import did_you_mean
from workbench.descriptors.resolving import resolved_campaign
from workbench.domain import codec
from workbench.domain.campaign import Campaign
from workbench.domain.drafts import PREFIX
from workbench.domain.errors import DescriptorError, UsageError, WorkbenchError
from workbench.domain.messages import CampaignChoice
from workbench.domain.sessions import DescriptorText
from workbench.domain.topology import VnfTemplate
from workbench.paths import Workspace, shipped

_SUFFIXES = (".yaml", ".yml")
RESOLVED = ".campaign.json"
"""Suffix of a campaign whose names are looked up already, as a fleet sends it to its hosts."""
LARGEST_RESOLVED = 16 * 2**20


@dataclass(frozen=True)
class LoadedCampaign:
    """A campaign and every file that took part in it, as given."""

    campaign: Campaign
    descriptors: tuple[DescriptorText, ...]


def save_resolved(loaded: LoadedCampaign, path: Path) -> None:
    """Write a campaign that is resolved already, for an engine of another host."""
    with open(path, "wb", opener=files.opener) as file:
        file.write(codec.dumps(codec.to_plain(loaded)))


def _read_resolved(path: Path) -> LoadedCampaign:
    try:
        with path.open("rb") as file:
            text = file.read(LARGEST_RESOLVED + 1)
        if len(text) > LARGEST_RESOLVED:
            raise WorkbenchError(f"is larger than {LARGEST_RESOLVED // 2**20} MiB")
        return codec.from_plain(codec.loads(text), LoadedCampaign)
    except (OSError, WorkbenchError) as error:
        what = error.strerror if isinstance(error, OSError) else error.what
        raise UsageError(
            f"is no resolved campaign: {what}",
            where=str(path),
            remedy="Let the fleet send it again",
        ) from None


def load_campaign(name_or_path: str, *, workspace: Workspace) -> LoadedCampaign:
    """The campaign of that name in the workspace, else among the shipped ones; or of that path;
    or the draft that `draft:NAME` names.

    Raises
    ------
    DescriptorError
        With all mistakes of the campaign's file and of the files that it names.
    UsageError
        If there is no campaign of that name; it names those that there are.
    """
    if name_or_path.endswith(RESOLVED):
        return _read_resolved(Path(name_or_path))
    if name_or_path.startswith(PREFIX):
        from workbench.descriptors.drafts import existing

        path = existing(name_or_path.removeprefix(PREFIX), workspace)
        library = library_for(workspace)
    else:
        library, path = library_with("campaign", "campaign", name_or_path, workspace)
    text = library.read(path, CampaignText)
    if text is None or library.mistakes:
        raise DescriptorError(library.mistakes)
    campaign = resolved_campaign(path.stem, text, library)
    return LoadedCampaign(campaign, tuple(library.texts))


def is_shipped(name_or_path: str, *, workspace: Workspace) -> bool:
    """Whether that names a campaign that ships, and not the user's own."""
    path = library_for(workspace).path("campaign", name_or_path)  # None for paths and drafts
    return path is not None and path.is_relative_to(shipped("templates"))


def list_campaigns(workspace: Workspace) -> tuple[CampaignChoice, ...]:
    """Every campaign that can be run by name; a broken one has its first mistake as summary."""
    library = library_for(workspace)
    choices = []
    for name in library.names("campaign"):
        path = library.path("campaign", name)
        assert path is not None
        # A library remembers mistakes, and those of one campaign are not those of the next.
        own = DescriptorLibrary(*library.roots)
        text = own.read(path, CampaignText)
        summary = f"broken: {own.mistakes[0]}" if own.mistakes or not text else text.summary
        choices.append(CampaignChoice(name, summary, str(path)))
    return tuple(choices)


def load_vnf_templates(*, workspace: Workspace) -> tuple[VnfTemplate, ...]:
    """Every VNF template that can be named, source and sink included.

    Raises
    ------
    DescriptorError
        With all mistakes of all of them.
    """
    library = library_for(workspace)
    templates = [library.vnf(name) for name in library.names("vnf")]
    if library.mistakes:
        raise DescriptorError(library.mistakes)
    return tuple(template for template in templates if template is not None)


def load_chain(name: str, *, workspace: Workspace) -> Chain:
    """The chain of that name in the workspace, else among the shipped ones.

    Raises
    ------
    DescriptorError
        With all mistakes of its file and of the files that it names.
    UsageError
        If there is no chain of that name; it names those that there are.
    """
    library = library_for(workspace)
    if library.path("chain", name) is None:
        raise UsageError(
            f"no chain is called {name!r}; {did_you_mean(name, library.names('chain'))}",
            remedy="Choose one of them",
        )
    chain = library.chain(name)
    if chain is None or library.mistakes:
        raise DescriptorError(library.mistakes)
    return chain
