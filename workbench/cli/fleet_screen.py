"""`run --fleet` on a terminal: the campaign goes on by itself, and the screens show its session."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import typer

if TYPE_CHECKING:
    from workbench.domain.fleets import Fleet, FleetRun
    from workbench.fleet.fleet_standing import FleetFolder
    from workbench.paths import Workspace

POLL_S = 0.1
LONGEST_S = 180.0
"""Until a session is begun: another process may be ending the fleet, and an engine is started."""
ENDING_S = 90.0
"""That a command takes at most which is asked to end, hosts that it started included."""
MOST_OUTPUTS, MOST_BYTES = 20, 1 << 20
"""Files of what such commands say: how many are kept, and how long each grows."""
STDERR = 2
LAST_BYTES = 4096
"""Of what a command said that ended while somebody watched."""


def watch_over(fleet: Fleet, asked: FleetRun) -> None:
    """Start this same command once more, without a screen and detached, and open the screens on its
    session; leaving them ends nothing. Where it ends before there is a session, what it says and
    its exit code are those of this command.

    Raises
    ------
    UsageError : the terminal can show no screen.
    FleetError : its output cannot be kept, or it begins nothing within `LONGEST_S`.
    typer.Exit : the command has ended, with its code.
    """
    from workbench.cli.context import current_workspace, say
    from workbench.cli.screen import must_show_screens, open_screen
    from workbench.descriptors.loading import load_campaign
    from workbench.fleet.fleet_standing import FleetFolder
    from workbench.store.catalogue import check_name, fresh_name

    must_show_screens()
    workspace = current_workspace()
    loaded = load_campaign(asked.campaign, workspace=workspace)
    name = asked.session or fresh_name(workspace, loaded.campaign.name)
    check_name(name)
    folder = FleetFolder.of(workspace, fleet.name)
    path = output_of(workspace, fleet.name, name)
    while asked.session is None and _is_written(path):  # another terminal begins that one
        name = fresh_name(workspace, loaded.campaign.name, beside=name)
        path = output_of(workspace, fleet.name, name)
    with _opened(path) as output:
        said = FollowedOutput(path, output.tell())
        child = _detached(sys.argv[1:], asked.session is None, name, output)
    say("the run starts, and its screen opens")
    try:
        is_measured = _until_measured(child, folder, name, said)
    except KeyboardInterrupt:
        how = "was ended" if _ended(child) else "is asked to end, which takes longer than usual,"
        said.tell_new()
        say(f"{name} {how} before its screen opened")
        raise
    if not is_measured:
        said.tell_new()
        raise typer.Exit(_code(child))
    open_screen(session=name, first="hosts")
    if child.poll() is not None:
        said.tell_new(most=LAST_BYTES)
        if code := _code(child):
            raise typer.Exit(code)
    say(f"What the command says is kept in {path}")


def output_of(workspace: Workspace, fleet: str, session: str) -> Path:
    """Where a command that was detached writes what it says."""
    from workbench.fleet.fleet_standing import FleetFolder

    return FleetFolder.of(workspace, fleet).root / "outputs" / f"{session}.log"


def keep_short(path: Path, most: int = MOST_BYTES) -> None:
    """Begin that file anew once it is too long, where it is what this process writes to."""
    with suppress(OSError):  # it is no file, or gone
        own = os.fstat(STDERR)
        if own.st_size > most and os.path.samestat(own, path.stat()):
            os.ftruncate(STDERR, 0)  # opened to append: what comes next is at its head


class FollowedOutput:
    """What a command has written to a file since, told here."""

    def __init__(self, path: Path, begin: int) -> None:
        self._path, self._at = path, begin

    def tell_new(self, most: int = MOST_BYTES) -> None:
        """Whole lines that came since the last time; of more than `most` bytes the last ones."""
        from workbench.cli.context import say

        text = b""
        with suppress(OSError), self._path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            begin = self._at if self._at <= size else 0  # it was begun anew
            file.seek(max(begin, size - most))
            text = file.read(most)
            self._at = file.tell()
        for line in text.decode(errors="replace").splitlines():
            say(line)


def _opened(path: Path) -> BinaryIO:
    """To append to, and marked as written to while this process or one that it hands the file to
    is there; the oldest of too many are removed. Raises `FleetError`."""
    from workbench import files
    from workbench.fleet.fleet_standing import FleetError

    try:
        files.make_folder(path.parent)
        others = [each for each in path.parent.glob("*.log") if each != path]
        others.sort(key=lambda each: each.stat().st_mtime)
        for each in others[: -(MOST_OUTPUTS - 1)]:
            if not _is_written(each):
                each.unlink(missing_ok=True)
        output = open(path, "ab", opener=files.opener)  # noqa: SIM115
        with suppress(BlockingIOError):  # the command that goes on says who measures it
            fcntl.flock(output, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return output
    except OSError as error:
        raise FleetError(
            f"what the run says cannot be kept: {error.strerror}",
            where=str(path),
            remedy="Make room there, or give the command with --headless",
        ) from None


def _is_written(path: Path) -> bool:
    """Whether the command whose output that is may say more."""
    with suppress(FileNotFoundError), path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def _detached(
    words: list[str], names_it: bool, name: str, output: BinaryIO
) -> subprocess.Popen[bytes]:
    """The same command without a screen, which outlives this one and its terminal."""
    more = ["--headless", *(("--session", name) if names_it else ())]
    at = words.index("--") if "--" in words else len(words)
    return subprocess.Popen(
        # -P: no module of the folder that somebody stands in takes the place of one of ours.
        [sys.executable, "-P", "-m", "workbench", *words[:at], *more, *words[at:]],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        start_new_session=True,
    )


def _until_measured(
    child: subprocess.Popen[bytes], folder: FleetFolder, name: str, said: FollowedOutput
) -> bool:
    """Wait until that process measures the session, which the engine shows by then; False where it
    has ended before. Raises `FleetError`."""
    from workbench.fleet.fleet_standing import FleetError
    from workbench.fleet.leases import Leases

    leases, deadline = Leases(folder.leases), time.monotonic() + LONGEST_S
    while child.poll() is None:
        if any((each.session, each.pid) == (name, child.pid) for each in leases.measuring()):
            return True
        if time.monotonic() > deadline:
            how = "is ended" if _ended(child) else "is asked to end"
            said.tell_new()
            raise FleetError(
                f"was not begun within {LONGEST_S:g} s, and {how}",
                where=name,
                remedy=f"See {folder.log}",
            )
        said.tell_new()
        time.sleep(POLL_S)
    return False


def _ended(child: subprocess.Popen[bytes]) -> bool:
    """Ask it to end: whether it did in time; one that did not is left to end by itself."""
    child.terminate()
    try:
        child.wait(ENDING_S)
    except subprocess.TimeoutExpired:
        return False
    return True


def _code(child: subprocess.Popen[bytes]) -> int:
    code = child.wait()
    return code if code >= 0 else 128 - code
