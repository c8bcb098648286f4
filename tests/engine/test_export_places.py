"""Where a session is exported to: never over itself."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from workbench.domain.errors import UsageError
from workbench.domain.messages import ExportSession
from workbench.engine.process import serving
from workbench.link.local import LocalClient
from workbench.paths import Workspace


async def test_a_session_that_is_given_by_its_path_lies_there_as_before(
    root: Path, small_session: Path, tmp_path: Path
) -> None:
    """Without a destination the CSV was written over the session file."""
    workspace, theirs = Workspace(root), tmp_path / "theirs.duckdb"
    shutil.copy(small_session, theirs)
    before = theirs.read_bytes()
    async with serving(workspace) as engine:
        client = LocalClient(engine, "ann")
        exported = await client.ask(ExportSession(str(theirs), "csv"))
        assert Path(exported.path) == workspace.exports / "theirs" / "theirs.csv"
        assert theirs.read_bytes() == before
        bundle = tmp_path / "kept.bundle"
        await client.ask(ExportSession(str(theirs), "bundle", str(bundle)))
        manifest = (bundle / "manifest.json").read_bytes()
        for session, form, place in (
            (theirs, "csv", theirs),
            (bundle, "csv", bundle / "events.csv"),
            (bundle, "bundle", bundle),
            (bundle, "bundle", tmp_path),
        ):
            with pytest.raises(UsageError, match="is the session itself"):
                await client.ask(ExportSession(str(session), form, str(place)))
        assert theirs.read_bytes() == before
        assert (bundle / "manifest.json").read_bytes() == manifest
