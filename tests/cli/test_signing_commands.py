"""`sign`, `verify`, and `import --signers`: a bundle is taken from those who are known."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from driving import Workbench

pytestmark = pytest.mark.needs("ssh-keygen")


def test_a_signed_bundle_is_verified_and_imported(workbench: Workbench, tmp_path: Path) -> None:
    key, signers = tmp_path / "key", tmp_path / "signers"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    signers.write_text(f"vendor {key.with_suffix('.pub').read_text()}")
    bundle = tmp_path / "theirs.bundle"
    workbench.run("export", "chain-real", "--as", "bundle", "--output", str(bundle))
    asked = (str(bundle), "--signers", str(signers))
    assert "is not signed" in workbench.run("verify", *asked, expect=None).stderr
    workbench.run("sign", str(bundle), "--key", str(key))
    assert "signed by vendor (SHA256:" in workbench.run("verify", *asked).stdout
    done = workbench.run("import", *asked, "--session", "theirs")
    assert "signed by vendor" in done.stderr
    assert done.stdout.strip() == "theirs"
    manifest = bundle / "manifest.json"
    manifest.write_text(manifest.read_text().replace("chain-real", "chain-fake"))
    refused = workbench.run("import", *asked, "--session", "more", expect=3)
    assert "wrong signature" in refused.stderr
    assert "more" not in workbench.run("ls").stdout
