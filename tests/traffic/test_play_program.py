"""`play` as it runs in the source: against servers that are well, wrong and gone.

`ffmpeg` is a stand-in here, a script that sleeps or fails; the real one pushes in tests/docker.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any

import pytest
from recorded_outputs import offer

from workbench.domain.parameters import LoadModel
from workbench.measuring.records import Playback
from workbench.paths import shipped
from workbench.traffic.hls import Hls

PROGRAM = shipped("templates") / "vnfs" / "hls-source" / "play"
PLAYLIST = (
    "#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-MEDIA-SEQUENCE:{}\n#EXT-X-TARGETDURATION:1\n"
    + "".join(f"#EXTINF:1.000,\nmovie-{i}.ts\n" for i in range(3))
)


@contextmanager
def serving(playlist: bytes, status: int = 200, good: int = 0) -> Iterator[str]:
    """A server whose first `good` playlists are well and move on; then it gives `playlist`."""
    asked = iter(range(1 << 30))

    class Answer(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body, code = b"x" * 1000, 200
            if self.path.endswith(".m3u8"):
                number = next(asked)
                well = number < good
                body = PLAYLIST.format(number).encode() if well else playlist
                code = 200 if well else status
            self.send_response(code)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/hls/"
    finally:
        server.shutdown()
        server.server_close()


def played(tmp_path: Path, url: str, ffmpeg: str = "exec sleep 60") -> Playback:
    """Two players of one movie for a second, as the workbench reads them."""
    (tmp_path / "bin").mkdir()
    stand_in = tmp_path / "bin" / "ffmpeg"
    stand_in.write_text(f"#!/bin/sh\n{ffmpeg}\n")
    stand_in.chmod(0o755)
    (tmp_path / "movies").mkdir()
    (tmp_path / "movies" / "2000.flv").touch()
    done = subprocess.run(
        [
            *(sys.executable, str(PROGRAM), "--players", "2", "--movies", "1", "--kbps", "2000"),
            *("--seconds", "1.5", "--timeout", "1", "--records", str(tmp_path / "rows")),
            *("--ramp", "0.1", "--folder", str(tmp_path / "movies"), url),
        ],
        env={"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    given = offer(LoadModel("closed", unit="streams"), 2, 1.5)
    result = (tmp_path / "rows").read_bytes()
    playback = Hls().parse(given, result, done.stdout, 0.0, 1.5).playback
    assert playback is not None
    return playback


def test_players_fetch_what_is_new(tmp_path: Path) -> None:
    with serving(b"", good=1000) as url:
        playback = played(tmp_path, url)
    assert playback.faults == ()
    assert set(playback.player.tolist()) == {0, 1}
    assert playback.ready_s.size >= 6, "three segments each to begin with"


def test_garbage_for_a_playlist_is_told_and_the_program_goes_on(tmp_path: Path) -> None:
    with serving(b"<html>\xff", good=1) as url:
        (fault,) = played(tmp_path, url).faults
    assert fault == "movie 1: its playlist is none: it begins with b'<html>\\xff'"


def test_a_playlist_that_is_gone_is_told(tmp_path: Path) -> None:
    with serving(b"", status=404, good=1) as url:
        (fault,) = played(tmp_path, url).faults
    assert fault == "movie 1: its playlist was answered with status 404"


def test_an_ffmpeg_that_dies_is_told_with_its_last_words(tmp_path: Path) -> None:
    with serving(b"", good=1000) as url:
        (fault,) = played(tmp_path, url, "echo Broken pipe >&2; exit 3").faults
    assert "ffmpeg ended after" in fault
    assert fault.endswith("with exit code 3 and said Broken pipe")


# ---------------------------------------------------------------------- parts of it


@pytest.fixture(scope="module")
def program() -> Any:
    loader = SourceFileLoader("play", str(PROGRAM))
    spec = spec_from_loader("play", loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (b"", "begins with"),
        (b"\x00" * 100, "begins with"),
        (b"#EXTM3U\n#EXT-X-MEDIA-SEQUENCE:many", "has the line '#EXT-X-MEDIA-SEQUENCE:many'"),
        (b"#EXTM3U\n#EXTINF:long,\na.ts", "has the line '#EXTINF:long,'"),
        (b"#EXTM3U\na.ts", "has the segment 'a.ts' of None s"),
        (b"#EXTM3U\n#EXTINF:nan,\na.ts", "has the segment 'a.ts' of nan s"),
        (b"#EXTM3U\n#EXTINF:1e9,\na.ts", "has the segment 'a.ts' of 1000000000.0 s"),
        (b"#EXTM3U\n#EXTINF:1,\n../../etc/passwd", "has the segment '../../etc/passwd'"),
        (b"#EXTM3U\n#EXTINF:1,\nhttp://elsewhere/a.ts", "has the segment 'http://elsewhere"),
    ],
)
def test_what_is_no_playlist(program: Any, text: bytes, sentence: str) -> None:
    with pytest.raises(program.NoPlaylist, match=r".") as raised:
        program.parse(text)
    assert sentence in str(raised.value)


def test_a_playlist(program: Any) -> None:
    assert program.parse(PLAYLIST.format(7).encode()) == [
        (7, 1.0, "movie-0.ts"), (8, 1.0, "movie-1.ts"), (9, 1.0, "movie-2.ts"),
    ]  # fmt: skip
    assert program.parse(b"#EXTM3U\n") == []


def test_a_playlist_that_stands_still_is_told_if_it_is_answered_soon(program: Any) -> None:
    given = program.argparse.Namespace(url="http://server/hls/", movies=1)
    show = program.Show(given)
    show.now = lambda: 20.0
    show.last[0] = (14, 11.0)
    show.progress(0, 14, 15.0)
    assert show.faults == [], "an answer that took 5 s says nothing of the movie"
    show.progress(0, 14, 19.9)
    assert show.faults == ["movie 1: its playlist stood at segment 14 for 8 s"]
