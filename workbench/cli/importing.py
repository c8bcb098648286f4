"""`import FILE.csv`: somebody else's table becomes descriptors, a table of ours and a session."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from workbench.descriptors.mapping import MappingText


MOST_LOOKED_INTO = 20
"""Files of a folder, to see what it holds."""


def must_make_a_session(path: Path) -> None:
    """Raises `UsageError` for counters that others published: models are learned from them, and
    no session is made of them."""
    from workbench.descriptors.co_located_files import is_co_located
    from workbench.descriptors.counter_tables import is_counter_table
    from workbench.domain.errors import UsageError

    if (path / "manifest.json").exists():
        return
    try:
        files = [path] if path.is_file() else sorted(filter(Path.is_file, path.iterdir()))
    except OSError:  # whoever reads it next says so
        return
    for file in files[:MOST_LOOKED_INTO]:
        if is_co_located(file) or (file.suffix == ".csv" and is_counter_table(file)):
            raise UsageError(
                "has counters of functions and their competitors, of which no session is made",
                where=str(file),
                remedy=f"Learn from them: workbench counters {path}",
            )


def import_table(
    path: Path, session: str | None, mapping: str | None, spread: float | None, *, dry_run: bool
) -> None:
    """Say what each column became, write what is needed, and make a session of all its rows."""
    from workbench.cli.context import current_workspace, execute, say
    from workbench.cli.headless import run_headless
    from workbench.descriptors.importing import (
        check,
        descriptors,
        explained,
        load_mapping,
        read_table,
    )
    from workbench.descriptors.library import library_for
    from workbench.domain.errors import UsageError
    from workbench.domain.messages import RunCampaign
    from workbench.engine.sessions.library import Library
    from workbench.labs.recorded_options import RecordedOptions
    from workbench.store.catalogue import check_name

    workspace = current_workspace()
    if mapping is None:
        raise UsageError(
            "needs a mapping: at least how its load was offered",
            where=str(path),
            remedy="Give --mapping FILE.yaml with at least `kind: mapping`, `load: {kind: closed}`",
        )
    text: MappingText = load_mapping(mapping, workspace=workspace)
    table = read_table(path, text)
    name = session or re.sub(r"[^a-z0-9-]+", "-", path.stem.lower()).strip("-") or "imported"
    check_name(name)
    if not dry_run:
        execute(Library(workspace).new_name(name, name))
    made = descriptors(name, table, text, library_for(workspace), path.name)
    check(made, name, workspace=workspace)
    files = {workspace.templates / file: body for file, body in made.items()}
    recording = workspace.root / "imports" / f"{name}.csv"
    files[recording] = table.as_csv()
    for line in explained(table, [str(file) for file in files]):
        say(line)
    if dry_run:
        return
    _write(files)
    lab = f"recorded:{RecordedOptions(str(recording.absolute()), spread=spread).text}"
    command = RunCampaign(
        campaign=str((workspace.templates / "campaigns" / f"{name}.yaml").absolute()),
        session=name,
        lab=lab,
    )
    raise typer.Exit(execute(run_headless(command, json=False, http=None)))


def _write(files: Mapping[Path, str]) -> None:
    """All of them, or none where one is there already and says something else."""
    from workbench.domain.errors import UsageError
    from workbench.files import write_whole

    for file, body in files.items():
        if _says_something_else(file, body):
            raise UsageError(
                "is there already and says something else",
                where=str(file),
                remedy="Move it away, or choose another name (--session)",
            )
    for file, body in files.items():
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            write_whole(file, body)
        except OSError as error:
            raise UsageError(
                f"cannot be written: {error.strerror}", where=str(file), remedy="Make room there"
            ) from None


def _says_something_else(file: Path, body: str) -> bool:
    try:
        return file.read_text(encoding="utf-8") != body
    except FileNotFoundError:
        return False
    except (OSError, UnicodeDecodeError):  # a folder, somebody else's, or no text
        return True
