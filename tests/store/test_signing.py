"""Bundles that are signed by SSH keys: who did it, and that nothing was changed since."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from session_making import make_session

from workbench.domain.errors import SessionError
from workbench.store.signing import SIGNATURE, sign, verify

pytestmark = pytest.mark.needs("ssh-keygen")


@pytest.fixture
async def bundle(tmp_path: Path) -> Path:
    session = await make_session(tmp_path / "demo-1.duckdb")
    folder = tmp_path / "demo-1.bundle"
    await session.write_tables(folder)
    await session.close()
    return folder


def key(folder: Path, name: str) -> Path:
    path = folder / name
    argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(path)]
    subprocess.run(argv, check=True)
    return path


def signers(folder: Path, **keys: Path) -> Path:
    lines = [f"{n}@vendor.example {k.with_suffix('.pub').read_text()}" for n, k in keys.items()]
    path = folder / "signers"
    path.write_text("".join(lines))
    return path


async def test_who_signed_is_told_and_the_bundle_opens_as_before(
    bundle: Path, tmp_path: Path
) -> None:
    ours = key(tmp_path, "ours")
    assert sign(bundle, ours) == bundle / SIGNATURE
    by = verify(bundle, signers(tmp_path, ours=ours))
    assert by.principal == "ours@vendor.example"
    told = subprocess.run(["ssh-keygen", "-l", "-f", ours], capture_output=True, check=True)
    assert by.key in told.stdout.decode()
    assert by.key.startswith("SHA256:")
    sign(bundle, ours)
    assert verify(bundle, tmp_path / "signers") == by, "it may be signed again"


async def test_what_is_not_as_it_was_signed_is_refused(bundle: Path, tmp_path: Path) -> None:
    ours = key(tmp_path, "ours")
    sign(bundle, ours)
    known = signers(tmp_path, ours=ours)

    def refused(change: Path) -> str:
        with pytest.raises(SessionError) as caught:
            verify(change, known)
        return str(caught.value)

    manifest = shutil.copytree(bundle, tmp_path / "manifest.bundle") / "manifest.json"
    manifest.write_text(manifest.read_text().replace("demo-1", "demo-2"))
    assert "wrong signature: its manifest is not what ours@vendor.example" in refused(
        manifest.parent
    )
    table = shutil.copytree(bundle, tmp_path / "table.bundle") / "samples.parquet"
    table.write_bytes((bundle / "events.parquet").read_bytes())
    assert "samples.parquet is not what was written" in refused(table.parent)
    more = shutil.copytree(bundle, tmp_path / "more.bundle")
    shutil.copy(bundle / "samples.parquet", more / "extra.parquet")
    assert "does not have the digest of every table" in refused(more)
    garbage = shutil.copytree(bundle, tmp_path / "garbage.bundle")
    (garbage / SIGNATURE).write_bytes(b"\x00garbage\x1b[31m")
    assert "a key that signers does not name" in refused(garbage)


async def test_strangers_and_other_purposes_are_refused(bundle: Path, tmp_path: Path) -> None:
    ours, theirs = key(tmp_path, "ours"), key(tmp_path, "theirs")
    known = signers(tmp_path, ours=ours)
    with pytest.raises(SessionError, match="is not signed"):
        verify(bundle, known)
    sign(bundle, theirs)
    with pytest.raises(SessionError, match="a key that signers does not name"):
        verify(bundle, known)
    with (bundle / "manifest.json").open("rb") as text:
        argv = ["ssh-keygen", "-Y", "sign", "-q", "-n", "git", "-f", str(ours)]
        made = subprocess.run(argv, stdin=text, capture_output=True, check=True)
    (bundle / SIGNATURE).write_bytes(made.stdout)
    with pytest.raises(SessionError, match="wrong signature"):
        verify(bundle, known)
    (bundle / SIGNATURE).write_bytes(b"x" * 100_000)
    with pytest.raises(SessionError, match="is not signed"):
        verify(bundle, known)
    with pytest.raises(SessionError, match="is no file of signers"):
        verify(bundle, tmp_path / "nobody")


async def test_what_cannot_be_signed_says_so(bundle: Path, tmp_path: Path) -> None:
    with pytest.raises(SessionError, match="did not sign it"):
        sign(bundle, tmp_path / "no-such-key")
    with pytest.raises(SessionError, match="is not a bundle"):
        sign(tmp_path, key(tmp_path, "ours"))
    manifest = json.loads((bundle / "manifest.json").read_text())
    del manifest["sha256"]
    (bundle / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(SessionError, match="does not have the digest of every table"):
        sign(bundle, tmp_path / "ours")


async def test_a_signature_that_cannot_be_written_is_said(bundle: Path, tmp_path: Path) -> None:
    (bundle / SIGNATURE).mkdir()  # in its place
    with pytest.raises(SessionError, match="cannot be written: Is a directory"):
        sign(bundle, key(tmp_path, "vendor"))
