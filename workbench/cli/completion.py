"""What a shell offers for a half typed name. It only looks at what files are called.

A shell waits for it at each press of Tab: no session is opened, and nothing of the workbench's
rooms is imported but where its files are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated

import typer

from workbench import paths


def sessions(context: typer.Context, incomplete: str) -> list[str]:
    """Sessions and bundles of the workspace."""
    return _beginning(incomplete, _sessions_of(context))


def sessions_and_recordings(context: typer.Context, incomplete: str) -> list[str]:
    """The same, and the recordings that came with the workbench."""
    found = [*_sessions_of(context), *_bundles(paths.shipped("sessions"))]
    return _beginning(incomplete, found)


def campaigns(context: typer.Context, incomplete: str) -> list[str]:
    """Campaigns of the workspace and those that ship."""
    return _beginning(incomplete, _descriptors(context, "campaigns"))


def chains(context: typer.Context, incomplete: str) -> list[str]:
    """Chains of the workspace and those that ship."""
    return _beginning(incomplete, _descriptors(context, "chains"))


def export_formats(context: typer.Context, incomplete: str) -> list[str]:
    """Registered formats: of recommendations where one is named, else of sessions."""
    from workbench import plugins

    of_recommendation = context.params.get("recommendation") is not None
    group: plugins.Group = "recommendation_exports" if of_recommendation else "exports"
    return _beginning(incomplete, plugins.names(group))


def _workspace(context: typer.Context) -> paths.Workspace:
    given = context.find_root().params.get("workspace")
    return paths.workspace(Path(given) if given else None)


def _sessions_of(context: typer.Context) -> Iterator[str]:
    folder = _workspace(context).sessions
    yield from (file.stem for file in _visible(folder, "*.duckdb"))
    yield from _bundles(folder)


def _bundles(folder: Path) -> Iterator[str]:
    return (manifest.parent.name for manifest in _visible(folder, "*/manifest.json"))


def _descriptors(context: typer.Context, kind: str) -> Iterator[str]:
    for root in (_workspace(context).templates, paths.shipped("templates")):
        yield from (file.stem for file in _visible(root / kind, "*.yaml"))


def _visible(folder: Path, pattern: str) -> Iterator[Path]:
    found = folder.glob(pattern)
    return (p for p in found if not p.relative_to(folder).parts[0].startswith("."))


def _beginning(incomplete: str, names: Iterable[str]) -> list[str]:
    return sorted({name for name in names if name.startswith(incomplete)})


NameArgument = Annotated[
    str,
    typer.Argument(
        help="A session, a recording, or a bundle's folder.",
        autocompletion=sessions_and_recordings,
    ),
]
CampaignArgument = Annotated[
    str, typer.Argument(help="A campaign's name or file.", autocompletion=campaigns)
]
