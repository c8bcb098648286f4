"""`predict --profiles A,B --signers`: bundles of several vendors make one chain."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path

import pytest
from chain_session import write_chain_session
from driving import Workbench

ASKED = ("--chain", "haproxy-tinyproxy", "--at", "rate=200/s", "--kpi", "mean")


@pytest.fixture(scope="module")
def bundles(shared: Workbench) -> tuple[Path, Path]:
    """Of who makes haproxy, and of who makes tinyproxy."""
    made = []
    for name, function in (("vendor-a", "haproxy"), ("vendor-b", "tinyproxy")):
        path = shared.root / "sessions" / f"{name}.duckdb"
        asyncio.run(write_chain_session(path, only=function))
        made.append(shared.root / f"{name}.bundle")
        shared.run("export", name, "--as", "bundle", "--output", str(made[-1]))
        path.unlink()
    return made[0], made[1]


def test_two_bundles_make_a_chain_and_each_figure_says_whose_it_is(
    shared: Workbench, bundles: tuple[Path, Path]
) -> None:
    both = ",".join(map(str, bundles))
    done = shared.run("predict", "--profiles", both, *ASKED)
    told = "".join(done.stdout.split())
    assert all(f"of{bundle}" in told for bundle in bundles)
    found = json.loads(shared.run("predict", "--profiles", both, *ASKED, "--json").stdout)
    whose = {model["target"]: model["whose"] for model in found[0]["models"]}
    assert whose == {"haproxy": str(bundles[0]), "tinyproxy": str(bundles[1])}


def test_a_recommendation_says_whose_profiles_it_stands_on(
    shared: Workbench, bundles: tuple[Path, Path]
) -> None:
    both = ",".join(map(str, bundles))
    sla = ("--sla", "mean<=1s @ rate=200/s, filesize=10kB", *ASKED[:2])
    found = json.loads(shared.run("recommend", "--profiles", both, *sla, "--json").stdout)
    assert found["whose"] == {"haproxy": str(bundles[0]), "tinyproxy": str(bundles[1])}
    assert found["met"]


@pytest.mark.needs("ssh-keygen")
def test_only_signed_bundles_are_taken_where_signers_are_given(
    shared: Workbench, bundles: tuple[Path, Path], tmp_path: Path
) -> None:
    key, signers = tmp_path / "key", tmp_path / "signers"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    signers.write_text(f"vendor {key.with_suffix('.pub').read_text()}")
    asked = (
        "predict",
        "--profiles",
        ",".join(map(str, bundles)),
        *ASKED,
        "--signers",
        str(signers),
    )
    shared.run("sign", str(bundles[0]), "--key", str(key))
    refused = shared.run(*asked, expect=3)
    assert f"{bundles[1]}: is not signed" in refused.stderr
    assert not refused.stdout
    held = ("demo-real", "--chain", "tinyproxy-haproxy", *asked[1:3], *asked[-2:])
    assert f"{bundles[1]}: is not signed" in shared.run("compare", *held, expect=3).stderr
    shared.run("sign", str(bundles[1]), "--key", str(key))
    assert shared.run(*asked).stderr.count("signed by vendor (SHA256:") == 2


def test_what_names_nothing_is_wrong_use(shared: Workbench, tmp_path: Path) -> None:
    assert "neither a session nor profiles" in shared.run("predict", *ASKED, expect=2).stderr
    empty = shared.run("predict", "--profiles", "a,,b", *ASKED, expect=2)
    assert "a name that is empty" in empty.stderr
    signers = tmp_path / "signers"
    signers.touch()
    signed = shared.run("predict", "demo-real", *ASKED, "--signers", str(signers), expect=2)
    assert "is no bundle" in signed.stderr
