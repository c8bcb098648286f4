"""What an engine keeps in the C library's allocator: counted in arenas, not in megabytes."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

import pytest

from workbench.engine import process
from workbench.paths import Workspace

ARENAS = """\
import ctypes, tempfile, threading
from workbench.engine.sessions.memory import give_back, keep_little_free

libc = ctypes.CDLL("libc.so.6")
libc.malloc.restype = libc.fopen.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]

def arenas():
    with tempfile.NamedTemporaryFile() as file:
        stream = ctypes.c_void_p(libc.fopen(file.name.encode(), b"w"))
        libc.malloc_info(0, stream)
        libc.fclose(stream)
        return file.read().count(b"<heap nr=")

{before}
together = threading.Barrier(6)

def work():
    together.wait()
    libc.malloc(1000)
    together.wait()

threads = [threading.Thread(target=work) for _ in range(6)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
give_back()
print(arenas())
"""


def arenas(before: str) -> int:
    """How many there are after six threads have allocated at once."""
    ran = subprocess.run(
        [sys.executable, "-c", ARENAS.replace("{before}", before)], capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    return int(ran.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library")
def test_threads_that_come_and_go_keep_little_free() -> None:
    assert arenas("pass") > 1, "else the test below shows nothing"
    assert arenas("keep_little_free()") == 1


async def test_an_engine_has_one_arena_before_it_has_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class AskedError(Exception):
        pass

    def ask() -> None:
        raise AskedError

    monkeypatch.setattr(process, "keep_little_free", ask)
    with pytest.raises(AskedError):
        await process.serve(Workspace(tmp_path))
    assert list(tmp_path.iterdir()) == [], "nothing was begun"
