"""Drafts as files: campaigns that may have mistakes, in a folder of their own in the workspace."""

from __future__ import annotations

import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from workbench.descriptors.campaign import CampaignText
from workbench.descriptors.document import (
    LARGEST_FILE,
    Document,
    parsed,
    read_document,
)
from workbench.descriptors.fields import NAME_RULE, is_name
from workbench.descriptors.library import DescriptorLibrary, library_for
from workbench.descriptors.reading import DescriptorReading, did_you_mean, validated
from workbench.descriptors.resolving import resolved_campaign
from workbench.descriptors.units import shown
from workbench.descriptors.writing import written
from workbench.domain.campaign import Campaign
from workbench.domain.drafts import PREFIX, DraftSummary
from workbench.domain.errors import DescriptorError, Mistake, UsageError
from workbench.paths import Workspace

SUFFIX = ".yaml"
FORMS = ("vnf", "chain", "series", "parallel")
"""How a target says what it is made of."""
_BEGINNING: dict[str, Any] = {
    "kind": "campaign",
    "targets": [],
    "workload_parameters": [{"name": "filesize", "values": ["10 kB"]}],
    "primary_workload_parameter": {"name": "rate", "range": ["100/s", "4000/s"], "scale": "log"},
    "load": {"kind": "open", "arrivals": "constant", "connections": 64},
    "kpi": "p95",
    "kpi_max": "1000 ms",
    "loss_goal": "0.5%",
    "sampling": {"method": "blocks", "max_samples": 10, "repetitions": 1},
    "windows": {"warmup": "1 s", "window": "3 s", "timeout": "30 s", "request_timeout": "20 s"},
    "metrics": "http",
}
"""A campaign that lacks nothing but targets."""


def path_of(name: str, workspace: Workspace) -> Path:
    """The file of a draft, whether there is one or not. Raises `UsageError`."""
    check_name(name, "a draft")
    return workspace.drafts / f"{name}{SUFFIX}"


def check_name(name: str, what: str) -> None:
    """Raise `UsageError` for what is no name."""
    if not is_name(name):
        raise UsageError(f"{shown(name)} cannot be the name of {what}", remedy=f"Use {NAME_RULE}")


def existing(name: str, workspace: Workspace) -> Path:
    """The file of a draft. Raises `UsageError` where there is none, or nobody can tell."""
    path = path_of(name, workspace)
    if not _is_there(path):
        known = (p.stem for p in workspace.drafts.glob(f"*{SUFFIX}"))
        raise UsageError(
            f"no draft is called {name!r}; {did_you_mean(name, known)}",
            remedy="Start one on the screen `Chain`",
        )
    return path


def _is_there(path: Path) -> bool:
    """Whether a file is there. Raises `UsageError` where that cannot be told."""
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise _unreadable(path, error) from None


def text_of(path: Path) -> str:
    """What stands in a draft's file, as far as it is text. Raises `UsageError`: unreadable."""
    try:
        with path.open("rb") as stream:
            raw = stream.read(LARGEST_FILE + 1)
    except OSError as error:
        raise _unreadable(path, error) from None
    return raw.decode("utf-8", "replace")


def _unreadable(path: Path, error: OSError) -> UsageError:
    return UsageError(
        f"the draft {path.stem} cannot be read: {error.strerror or type(error).__name__}",
        where=str(path),
        remedy="See that its file and folder may be read, or that the disk answers",
    )


def text_from(document: Mapping[str, Any]) -> str:
    """A document as YAML. Raises `UsageError` for what no descriptor can hold."""
    try:
        text = written(document)
    except (TypeError, RecursionError) as error:
        raise UsageError(f"the draft cannot be written: {error}") from None
    check_size(text)
    return text


def check_size(text: str) -> None:
    """Raise `UsageError` for a text that is longer than any descriptor."""
    if len(text.encode("utf-8", "surrogatepass")) > LARGEST_FILE:
        raise UsageError(
            f"the draft is longer than {LARGEST_FILE // 1024} KiB; no descriptor needs that"
        )
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UsageError("the draft holds half of a character") from None


def document_of(text: str) -> dict[str, Any] | None:
    """The text's mapping as plain values; None where it is none."""
    try:
        root = parsed(text, "draft").root
    except DescriptorError:
        return None
    return _plain(root) if isinstance(root, dict) else None


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(below) for key, below in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def checked(
    name: str, text: str, workspace: Workspace
) -> tuple[dict[str, Any] | None, Campaign | None, tuple[Mistake, ...]]:
    """A draft's document (None where it is no mapping), its campaign (None where it has mistakes),
    and all mistakes of it and of the descriptors that it names."""
    file = f"{name}{SUFFIX}"
    try:
        document = parsed(text, file)
    except DescriptorError as error:
        return None, None, error.mistakes
    plain = _plain(document.root) if isinstance(document.root, dict) else None
    library = library_for(workspace)
    campaign = _campaign(name, document, library, path_of(name, workspace))
    mistakes = (*document.mistakes, *library.mistakes)
    return plain, campaign if not mistakes else None, mistakes


def _campaign(
    name: str, document: Document, library: DescriptorLibrary, path: Path
) -> Campaign | None:
    """The campaign; None, with the mistakes in document and library, where it has some."""
    text = validated(CampaignText, DescriptorReading(document, path, library))
    if text is None or library.mistakes:
        return None
    return resolved_campaign(name, text, library)


def beginning(template: str, workspace: Workspace) -> str:
    """The text that a new draft begins with; `template` as in `StartDraft`. Raises `UsageError`."""
    if not template:
        return written(_BEGINNING)
    if template.startswith(PREFIX):
        return text_of(existing(template.removeprefix(PREFIX), workspace))
    library = library_for(workspace)
    path = library.path("campaign", template)
    if path is None:
        raise UsageError(
            f"no campaign is called {shown(template)}; "
            f"{did_you_mean(template, library.names('campaign'))}",
            remedy="Choose one of them",
        )
    return read_document(path).text


def summaries(workspace: Workspace) -> tuple[DraftSummary, ...]:
    """All drafts, the one that was changed last first."""
    found = []
    for path in workspace.drafts.glob(f"*{SUFFIX}"):
        if not is_name(path.stem):
            continue
        try:
            if not _is_there(path):  # a folder, or it went away meanwhile
                continue
            changed_at, text = path.stat().st_mtime, text_of(path)
        except OSError:
            continue
        except UsageError as error:
            found.append(DraftSummary(path.stem, error.what, (), 1, 0.0))
            continue
        document, _, mistakes = checked(path.stem, text, workspace)
        summary = (document or {}).get("summary", "")
        found.append(
            DraftSummary(
                path.stem,
                summary if isinstance(summary, str) else "",
                titles(document or {}),
                len(mistakes),
                changed_at,
            )
        )
    return tuple(sorted(found, key=lambda draft: -draft.changed_at))


def titles(document: Mapping[str, Any]) -> tuple[str, ...]:
    """What the targets of a document are called, as far as it has any."""
    targets = document.get("targets")
    if not isinstance(targets, list):
        return ()
    named = (
        next((t[key] for key in ("name", "vnf", "chain") if isinstance(t.get(key), str)), "")
        for t in targets
        if isinstance(t, dict)
    )
    return tuple(name for name in named if name)


def chain_text(document: Mapping[str, Any], campaign: Campaign, target: int) -> str:
    """The descriptor of a target's chain; `campaign` is the document's. Raises `UsageError`."""
    if not 0 <= target < len(document["targets"]):
        raise UsageError(f"the draft has no target {target + 1}")
    given = document["targets"][target]
    if "policy" in given:
        raise UsageError(
            f"target {target + 1} is a policy, which stands for several chains",
            remedy=f"Print them: workbench chains {given['policy']!r}",
        )
    name = next(given[key] for key in ("name", "vnf", "chain") if given.get(key))
    resolved = campaign.target_plan(name).target
    chain: dict[str, Any] = {"kind": "chain"}
    if given.get("summary"):
        chain["summary"] = given["summary"]
    ends = {"source": resolved.source, "sink": resolved.sink}
    chain |= {role: name for role, name in ends.items() if name != role}
    form = next(form for form in FORMS if given.get(form) is not None)
    match form:
        case "vnf":
            chain["series"] = [given["vnf"]]
        case "chain":
            chain["series"] = [{"chain": given["chain"]}]
        case _:
            chain[form] = given[form]
    return written(chain)
