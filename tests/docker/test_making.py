"""How images, the base of them and oha are made; no engine is needed here."""

from __future__ import annotations

import asyncio
import io
import os
import subprocess
import tarfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import aiodocker
import pytest

from workbench.domain.errors import LabError
from workbench.domain.topology import VnfTemplate
from workbench.labs import once, programs
from workbench.labs.docker import (
    base_image,
    building,
    cargo_settings,
    debian_tree,
    images,
    making,
    oha_binary,
)
from workbench.labs.docker.apt_sources import AptSource
from workbench.labs.programs import GOT, SET_UP, Listener, PackageProgress, StepProgress
from workbench.locks import FileLock, Holder
from workbench.paths import SHIPPED_TEMPLATE, located

DEBIAN = (AptSource("http://m.example/debian", ("bookworm",), ("main",)),)


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def listener(said: list[str]) -> Listener:
    """Hears our own sentences, and not what programs say."""
    return Listener(said.append, lambda line: None)


@pytest.fixture(autouse=True)
def nothing_made_yet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_progress_says_how_far_and_how_long(said: list[str], listener: Listener) -> None:
    now = 0.0
    progress = StepProgress(listener, "building it", "parts", clock=lambda: now)
    progress.reached(100, 300)  # what an earlier build left
    for done in (110, 120, 140):
        now += 1.5
        progress.reached(done, 300)
    assert said == ["building it: 120 of 300 parts, about 27 s more"]


def test_packages_are_counted_with_the_time_that_they_still_take(
    said: list[str], listener: Listener
) -> None:
    now = 0.0
    packages = PackageProgress(listener, "getting it", (GOT, SET_UP))
    packages._progress = StepProgress(listener, "getting it", "packages", clock=lambda: now)
    packages.hear("Get:1 http://m.example bookworm InRelease [151 kB]")
    packages.hear("0 upgraded, 4 newly installed, 0 to remove and 0 not upgraded.")
    for line in ("Get:1 a", "Get:2 b", "Get:3 c", "Get:4 d", "Setting up a", "Setting up b"):
        now += 1.0
        packages.hear(line)
    assert said == [
        "getting it: 1 of 4 packages, about 6 s more",
        "getting it: 2 of 4 packages, about 4 s more",
        "getting it: 3 of 4 packages, about 2 s more",
    ]


async def test_what_is_pulled_says_how_much_has_come(
    said: list[str], listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "SAY_EVERY_S", 0.0)

    def came(layer: str, current: int) -> dict[str, Any]:
        detail = {"current": current * 1_000_000, "total": 30_000_000}
        return {"status": "Downloading", "id": layer, "progressDetail": detail}

    class Registry:
        class images:  # noqa: N801 - the name that aiodocker gives it
            @staticmethod
            async def pull(name: str, *, stream: bool) -> AsyncIterator[dict[str, Any]]:
                yield {"status": "Pulling fs layer", "id": "a", "progressDetail": {}}
                for message in (came("a", 10), came("b", 20)):
                    yield message
                yield {"status": "Download complete", "id": "a", "progressDetail": {}}

    await base_image.pull(Registry(), "x:1", listener)  # type: ignore[arg-type]  # what it needs of one
    assert said[0] == "pulling x:1"
    assert [line.partition(" MB")[0] for line in said[1:]] == [
        "pulling x:1: 10 of 30",
        "pulling x:1: 30 of 60",
        "pulling x:1: 50 of 60",
    ]


def test_lines_that_are_drawn_over_each_other() -> None:
    lines = making.Lines()
    assert lines.of(b"one\ntw") == ["one"]
    assert lines.of(b"o\r Building 1/3\r\n") == ["two", " Building 1/3"]


async def test_of_two_processes_one_makes_it_and_the_other_says_that_it_waits() -> None:
    said: asyncio.Queue[str] = asyncio.Queue()
    listener = Listener(said.put_nowait, lambda line: None)
    other = FileLock(once.cache() / "oha.lock")
    assert other.take(Holder(4711, ""))
    held = asyncio.Event()

    async def second() -> None:
        async with once.alone("oha", "oha 1.16.0", listener):
            held.set()

    waiting = asyncio.create_task(second())
    assert await said.get() == "process 4711 is making oha 1.16.0: waiting for it"
    assert not held.is_set()
    other.free()
    await waiting
    assert held.is_set()
    assert said.empty()


async def test_a_cache_that_cannot_be_written(tmp_path: Path, listener: Listener) -> None:
    (tmp_path / "cache").touch()
    with pytest.raises(LabError, match="cannot be written"):
        async with once.alone("oha", "oha", listener):
            pass


class Unreachable:
    """An engine without the image, whose registries do not answer."""

    class images:  # noqa: N801 - the name that aiodocker gives it
        @staticmethod
        async def inspect(name: str) -> None:
            raise aiodocker.DockerError(404, "no such image")

        @staticmethod
        async def pull(name: str, *, stream: bool) -> AsyncIterator[dict[str, Any]]:
            raise aiodocker.DockerError(500, "dial tcp: no such host")
            yield {}


async def test_a_base_that_can_neither_be_pulled_nor_made(
    monkeypatch: pytest.MonkeyPatch, said: list[str], listener: Listener
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(LabError, match="this host has no apt-get") as caught:
        await base_image.ensure_base(Unreachable(), listener)  # type: ignore[arg-type]  # what it needs of one
    assert "--lab sim" in str(caught.value)
    assert said[-1] == "no registry gave debian:bookworm-slim: dial tcp: no such host"


@pytest.mark.parametrize("root", [0, 1000])
async def test_a_base_needs_neither_root_nor_debootstrap(
    root: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, listener: Listener
) -> None:
    for name in debian_tree.NEEDED:
        (tmp_path / name).touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(os, "geteuid", lambda: root)
    monkeypatch.setattr(debian_tree.apt_sources, "read_sources", lambda: DEBIAN)
    made: list[str] = []

    async def make(docker: Any, suite: str, repository: str, tag: str, listener: Listener) -> None:
        made.append(f"{repository}:{tag}")

    monkeypatch.setattr(debian_tree, "make", make)
    with pytest.raises(LabError, match="did not take"):  # the engine of this test never has it
        await base_image.ensure_base(Unreachable(), listener)  # type: ignore[arg-type]  # what it needs of one
    assert made == ["debian:bookworm-slim"]


@pytest.mark.needs("dpkg-deb")
def test_a_tree_of_packages_has_its_links_into_usr(tmp_path: Path) -> None:
    package = tmp_path / "p"
    for name in ("DEBIAN", "bin", "usr/bin", "lib64", "usr/share/doc/p", "usr/share/man/man1"):
        (package / name).mkdir(parents=True)
    (package / "DEBIAN/control").write_text(
        "Package: p\nVersion: 1\nArchitecture: all\nMaintainer: m <m@m.example>\nDescription: d\n"
    )
    (package / "bin/tool").write_text("#!/bin/sh\n")
    (package / "bin/same").hardlink_to(package / "bin/tool")
    (package / "lib64/ld").symlink_to("../lib/ld")
    (package / "usr/share/doc/p/copyright").write_text("long")
    deb = tmp_path / "p_1_all.deb"
    subprocess.run(
        ("dpkg-deb", "--root-owner-group", "-b", package, deb), check=True, capture_output=True
    )
    tree = tmp_path / "tree.tar"
    debian_tree.pack([deb, deb], debian_tree.configuration(DEBIAN), tree)
    with tarfile.open(tree) as tar:
        members = {member.name: member for member in tar.getmembers()}
        sources = tar.extractfile("etc/apt/sources.list")
        assert sources is not None
        assert sources.read() == b"deb http://m.example/debian bookworm main\n"
    assert members["bin"].issym()
    assert members["bin"].linkname == "usr/bin"
    assert members["lib64"].linkname == "usr/lib64"
    assert members["usr/bin/tool"].islnk() != members["usr/bin/same"].islnk()
    assert members["usr/lib64/ld"].issym()
    assert {member.uid for member in members.values()} == {0}
    assert "usr/share/doc/p/copyright" not in members
    assert "var/cache/apt/archives/p_1_all.deb" in members
    assert not [name for name in members if name.startswith("bin/")], "the link would be replaced"


def test_what_a_host_lacks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in debian_tree.NEEDED:
        (tmp_path / name).touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert debian_tree.lacking("bookworm", DEBIAN) == ""
    assert "names no Debian archive" in debian_tree.lacking("bookworm", ())


class Builds:
    """An engine's builder: what it was asked for, and how it answered."""

    def __init__(self, *stale: str) -> None:
        self.stale, self.asked, self.together, self.most = stale, list[tuple[str, bool]](), 0, 0

    async def inspect(self, name: str) -> dict[str, str]:
        if name != base_image.BASE and name not in [tag for tag, _ in self.asked]:
            raise aiodocker.DockerError(404, "no such image")
        return {"Id": f"sha256:of {name}"}

    async def build(self, *, tag: str, nocache: bool, **rest: Any) -> AsyncIterator[dict[str, str]]:
        self.asked.append((tag, nocache))
        self.together += 1
        self.most = max(self.most, self.together)
        try:
            for _ in range(10):
                await asyncio.sleep(0)
            yield {"stream": "E: Unable to fetch some archives\n" if tag in self.stale else "fine"}
            if tag in self.stale and not nocache:
                raise aiodocker.DockerError(500, "returned a non-zero code: 100")
        finally:
            self.together -= 1


def engine(builds: Builds) -> aiodocker.Docker:
    return SimpleNamespace(images=builds)  # type: ignore[return-value]  # what building needs of one


async def test_lists_that_are_too_old_are_fetched_again(
    said: list[str], listener: Listener
) -> None:
    builds = Builds("a:1")
    await building.build(engine(builds), {"Dockerfile": b"FROM b"}, "a:1", listener)
    assert builds.asked == [("a:1", False), ("a:1", True)]
    assert said == ["the package lists are too old for a:1: fetching them again"]


async def test_images_are_built_beside_each_other_over_one_layer_of_lists(
    tmp_path: Path, said: list[str], listener: Listener
) -> None:
    templates = []
    for name in ("a", "b", "c", "d"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "Dockerfile").write_text(images.LISTS)
        templates.append(VnfTemplate(name, build=str(tmp_path / name)))
    builds = Builds()
    found = await images.build_images(templates, listener=listener, docker=engine(builds))
    assert list(found) == ["a", "b", "c", "d"]
    assert builds.asked[0] == ("vnf-workbench/package-lists", True)
    assert builds.most == images.AT_ONCE
    count = len(builds.asked)
    assert await images.build_images(templates, listener=listener, docker=engine(builds)) == found
    assert len(builds.asked) == count, "all is there"


def test_every_shipped_image_shares_the_layer_of_lists() -> None:
    for file in Path(located(f"{SHIPPED_TEMPLATE}vnfs")).glob("*/Dockerfile"):
        assert images.LISTS in file.read_text(), file.parent.name


class Compiling:
    """A container in which cargo runs."""

    def __init__(self) -> None:
        self.files = b""

    async def put_archive(self, path: str, archive: bytes) -> None:
        self.files = archive

    async def get_archive(self, path: str) -> tarfile.TarFile:
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as tar:
            entry = tarfile.TarInfo("oha")
            entry.size = 6
            tar.addfile(entry, io.BytesIO(b"binary"))
        packed.seek(0)
        return tarfile.open(fileobj=packed)


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """An engine that compiles oha, or does not: `code` and `says` of cargo."""
    how: dict[str, Any] = {"code": 0, "says": b"   Compiling a v1\r Building [=> ] 1/2: b\r"}

    @asynccontextmanager
    async def container(*args: Any, **settings: Any) -> AsyncIterator[Compiling]:
        how.update(settings, command=args[2])
        yield Compiling()

    async def output(made: Compiling) -> AsyncIterator[tuple[int, bytes]]:
        yield 2, how["says"]

    async def code(made: Compiling) -> int:
        return int(how["code"])

    async def there(*args: Any) -> bool:
        return True

    monkeypatch.setenv("PATH", "/nowhere")  # no oha and no cargo of the host
    monkeypatch.setattr(making, "container", container)
    monkeypatch.setattr(making, "output", output)
    monkeypatch.setattr(making, "exit_code", code)
    monkeypatch.setattr(oha_binary, "present", there)
    return how


NO_ENGINE: aiodocker.Docker = SimpleNamespace()  # type: ignore[assignment]  # nothing is asked of it


async def test_oha_is_built_in_the_engine_once(
    compiled: dict[str, Any], said: list[str], listener: Listener
) -> None:
    built = await oha_binary.find_or_build(listener, NO_ENGINE)
    assert built == oha_binary.cached()
    assert built.read_bytes() == b"binary"
    assert os.access(built, os.X_OK)
    assert "--no-default-features" in compiled["command"][2]
    assert compiled["settings"]["Binds"] == ["vnf-workbench-cargo:/cargo"]
    said.clear()
    compiled["code"] = 101
    assert await oha_binary.find_or_build(listener, NO_ENGINE) == built
    assert said == []


async def test_the_sources_of_oha_are_counted_while_they_come(
    compiled: dict[str, Any], said: list[str], listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "SAY_EVERY_S", 0.0)
    drawn = "".join(f" Downloading {left} crates, remaining bytes: 2MB\r" for left in (8, 5))
    compiled["says"] = drawn.encode()
    await oha_binary.find_or_build(listener, NO_ENGINE)
    told = [line for line in said if "crates" in line]
    assert told[0].endswith("getting its sources: 0 of 8 crates")
    assert "getting its sources: 3 of 8 crates, about" in told[1]


async def test_an_oha_that_cannot_be_built(
    compiled: dict[str, Any], said: list[str], listener: Listener
) -> None:
    compiled.update(code=101, says=b"error: no network\n")
    assert await oha_binary.find_or_build(listener, NO_ENGINE) is None
    assert said[-1] == (
        "oha could not be built: cargo: error: no network. Other generators stand in"
    )
    assert not oha_binary.cached().exists()


def test_cargo_reaches_crates_as_the_host_does(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(
        '[source.crates-io]\nreplace-with = "m"\n[source.m]\nregistry = "sparse+https://m.example/"\n'
        '[registry]\ntoken = "hidden"\n'
        '[build]\nrustc-wrapper = "sccache"\n[http]\ncainfo = "ca.crt"\ntimeout = 9\n'
    )
    authorities = tmp_path / "own.crt"
    authorities.write_text("ours")
    found = cargo_settings.of_this_host(
        {
            "CARGO_HOME": str(tmp_path),
            "SSL_CERT_FILE": str(authorities),
            "CARGO_NET_RETRY": "5",
            "CARGO_REGISTRY_TOKEN": "hidden",
        }
    )
    assert found.options == ("--config", cargo_settings.CONFIGURATION)
    assert found.files == {
        cargo_settings.CAINFO: b"ours",
        cargo_settings.CONFIGURATION: b'"http"."timeout"=9\n'
        b'"source"."crates-io"."replace-with"="m"\n'
        b'"source"."m"."registry"="sparse+https://m.example/"\n',
    }
    assert found.environment == {
        "CARGO_NET_RETRY": "5",
        "CARGO_HTTP_CAINFO": cargo_settings.CAINFO,
    }
