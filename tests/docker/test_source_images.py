"""The source's image: a session waits for no oha, and keeps the generators that it began with."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import aiodocker
import pytest

from workbench.descriptors.loading import load_campaign
from workbench.domain.campaign import Campaign
from workbench.domain.errors import LabError, TrafficError
from workbench.domain.lab import OHA_LATER
from workbench.domain.parameters import LoadModel
from workbench.domain.topology import VnfTemplate
from workbench.labs.components import preflight
from workbench.labs.docker import doctor, images, oha_binary
from workbench.labs.programs import Listener
from workbench.paths import Workspace
from workbench.traffic.base import PathFacts


class Images:
    """An engine that holds these images, and says what it was asked for."""

    def __init__(self, *held: str) -> None:
        self.held, self.asked = set(held), list[str]()

    async def inspect(self, name: str) -> dict[str, str]:
        self.asked.append(name)
        if name not in self.held and not name.startswith("vnf-workbench/"):
            raise aiodocker.DockerError(404, "no such image")
        return {"Id": name if name in self.held else f"sha256:of {name}"}


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> VnfTemplate:
    """A host that could build oha and has none."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(oha_binary.shutil, "which", lambda name: None)

    async def never(listener: Listener) -> Path | None:
        raise AssertionError("nobody waits for oha here")

    monkeypatch.setattr(oha_binary, "find_or_build", never)
    (tmp_path / "Dockerfile").write_text("FROM scratch\nCOPY packages /tmp/\n")
    return VnfTemplate("source", role="source", build=str(tmp_path))


async def test_no_session_waits_for_oha_and_it_is_said(source: VnfTemplate) -> None:
    said: list[str] = []
    engine = SimpleNamespace(images=Images())
    listener = Listener(said.append, print)
    found = await images.build_images([source], listener=listener, docker=engine, builds_oha=False)
    assert found["source"].startswith("sha256:of vnf-workbench/source:")
    assert said == [images.NOT_BUILT]


async def test_a_session_keeps_the_source_that_it_began_with(
    source: VnfTemplate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Oha was built meanwhile: a new session takes it, a resumed one does not."""
    binary = Path(source.build) / "oha"
    binary.write_text("binary")

    async def built() -> Path:
        return binary

    monkeypatch.setattr(oha_binary, "find", built)
    engine = SimpleNamespace(images=Images("sha256:before"))
    listener = Listener(print, print)
    kept = {"source": "sha256:before"}
    resumed = await images.build_images(
        [source], listener=listener, docker=engine, builds_oha=False, known=kept
    )
    assert resumed == kept
    fresh = await images.build_images([source], listener=listener, docker=engine, builds_oha=False)
    assert fresh != kept
    gone = {"source": "sha256:removed"}
    assert fresh == await images.build_images(
        [source], listener=listener, docker=engine, builds_oha=False, known=gone
    ), "the session is refused then: its image is another one"


@pytest.mark.parametrize(
    ("campaign", "packages"),
    [("demo", ("luajit",)), ("demo-closed", ("python3-locust",)), ("udp-loss", ())],
)
async def test_the_source_holds_what_can_offer_the_load(
    campaign: str, packages: tuple[str, ...], source: VnfTemplate, tmp_path: Path
) -> None:
    """A first sample of `demo` does not wait for the hundred packages that Locust needs."""
    loaded = load_campaign(campaign, workspace=Workspace(tmp_path)).campaign
    assert preflight.packages(loaded) == packages
    engine = SimpleNamespace(images=Images("sha256:before"))
    listener = Listener(print, print)
    held = [
        await images.build_images(
            [source], listener=listener, docker=engine, builds_oha=False, packages=given
        )
        for given in (packages, ("another",), packages)
    ]
    assert held[0] == held[2] != held[1]


async def test_a_source_of_one_generator_is_one_image(source: VnfTemplate) -> None:
    """It neither waits for oha nor is built again for each generator of the other source."""
    (Path(source.build) / "Dockerfile").write_text("FROM scratch\n")
    engine = SimpleNamespace(images=Images())
    listener = Listener(print, print)
    held = [
        await images.build_images([source], listener=listener, docker=engine, packages=given)
        for given in (("luajit",), ("another",), ())
    ]
    assert held[0] == held[1] == held[2]


@pytest.mark.parametrize(
    ("line", "taken"),
    [
        (b"COPY packages /tmp/", True),
        (b"ADD --chown=1:1 ./packages /tmp/", True),
        (b"COPY bin/ steady /usr/local/bin/", True),
        (b"COPY send /usr/local/bin/", False),
        (b"COPY mybin/ /opt/", False),
        (b"# COPY packages /tmp/", False),
    ],
)
def test_what_a_source_takes_is_read_of_its_dockerfile(line: bytes, taken: bool) -> None:
    assert bool(images.TAKES_GENERATORS.search(b"FROM scratch\n" + line + b"\n")) is taken


LATER = {"oha": OHA_LATER}


class Source:
    """A source's container that holds these generators."""

    def __init__(self, *programs: str) -> None:
        self.programs = programs

    async def run(self, argv: tuple[str, ...]) -> SimpleNamespace:
        has = any(name in argv[0] or name in argv[-1] for name in self.programs)
        return SimpleNamespace(exit_code=0 if has else 127, stdout="steady 1 (LuaJIT 2.1)")


async def test_an_open_loop_needs_no_oha(monkeypatch: pytest.MonkeyPatch) -> None:
    path = PathFacts(200, 10_000, keep_alive=False, redirects=False, compresses=False)
    campaign = SimpleNamespace(load=LoadModel("open"), kpi="p95_ms", sla=None, generator=None)
    asked: Campaign = campaign  # type: ignore[assignment]
    chosen = await preflight.choose(Source("steady", "hey"), path, asked, 4000, LATER)  # type: ignore[arg-type]
    assert chosen.title == "steady 1"
    assert chosen.passed_over == (
        "this session measures with steady: oha is not beside the source, and is built for "
        "later sessions while nothing is measured",
    )
    chosen = await preflight.choose(Source("oha", "steady"), path, asked, 4000, LATER)  # type: ignore[arg-type]
    assert (chosen.generator.name, chosen.passed_over) == ("oha", ())
    with pytest.raises(TrafficError, match="no generator can offer open"):
        await preflight.choose(Source(), path, asked, 4000, LATER)  # type: ignore[arg-type]


async def test_why_oha_could_not_be_built_is_kept_until_it_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async def fails(*_: object) -> bytes:
        raise LabError("no room for the compiler", where="cargo")

    monkeypatch.setattr(oha_binary, "cached", lambda: tmp_path / "bin" / "oha")
    monkeypatch.setattr(oha_binary.shutil, "which", lambda _: None)
    monkeypatch.setattr(oha_binary, "_build", fails)
    assert await oha_binary.find_or_build(Listener(print, print), cast(Any, object())) is None
    check = doctor._oha()
    assert check.state == "warning"
    assert "no room for the compiler" in check.found
    oha_binary._keep(b"")
    assert oha_binary.trouble() == ""
    assert doctor._oha().state == "ok"
