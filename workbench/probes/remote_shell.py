"""Another host over SSH, where nothing but `sh` and its usual programs is needed.

One fixed script runs there while it is spoken to. It reads files of `/proc` and of control groups
and writes limits; what it is asked for comes on its standard input, a line for each argument, so
that no command is ever made of a text.
"""

from __future__ import annotations

import asyncio
import errno
import os
import secrets
import shlex
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.domain.attaching import SshAddress
from workbench.domain.durations import duration
from workbench.domain.errors import LabError, LabGone
from workbench.probes.process import parse_start_s

if TYPE_CHECKING:
    import asyncssh

CONNECT_S = 15.0
ANSWER_S = 5.0
"""How long an answer is waited for."""
QUIET_S = 2.0
"""A host that has just not answered is not asked again for that long: the way out asks often."""
MOST_BYTES = 4 << 20
"""Of one answer."""
MOST_SHOWN = 200
"""Characters of what a program there said."""
GREP_FAULTS = 2
"""What grep ends with where a file cannot be read; with more it was not run, or was ended."""
CLOCK_OFF_S = 2.0
"""By less the clocks of hosts may differ without a word."""

SCRIPT = """
LC_ALL=C; export LC_ALL; exec 3>&1
IFS= read -r mark || exit 0
printf "%s\\n" "$$"; date +%s; cat "/proc/$$/stat"
printf "\\n%s 0\\n\\n%s end\\n" "$mark" "$mark"
while IFS= read -r verb && IFS= read -r count; do
  set --; asked=$count
  while [ "$count" -gt 0 ]; do
    IFS= read -r one || exit 0
    set -- "$@" "$one"
    count=$((count - 1))
  done
  fault=
  case "$verb" in
    read) fault=$(grep "" /dev/null "$@" 2>&1 >&3) ;;
    number) fault=$(ls -diL "$@" 2>&1 >&3) ;;
    children) fault=$(cat "/proc/$1/task/"*/children 2>&1 >&3) ;;
    sockets) ls -l /proc/[0-9]*/fd 2>/dev/null | grep -e "^/proc/" -e " socket:" ;;
    end) kill -9 "-$1" 2>/dev/null; tries=0
      while kill -0 "-$1" 2>/dev/null && [ "$tries" -lt 20 ]; do
        sleep 0.1; tries=$((tries + 1))
      done ;;
    processes) cat /proc/[0-9]*/stat 2>/dev/null ;;
    container) fault=$(timeout 4 docker inspect --type container --format \
      "{{.Id}} {{.State.Pid}} {{.State.Status}} {{.Image}} {{.Name}}" -- "$1" 2>&1 >&3) ;;
    labelled)
      while [ "$count" -lt "$asked" ]; do
        set -- "$@" --filter "label=$1"; shift
        count=$((count + 1))
      done
      fault=$(timeout 4 docker ps --no-trunc --filter status=running \
        --format "{{.ID}} {{.Names}} {{.Image}} {{.Ports}}" "$@" 2>&1 >&3) ;;
    write) case "$1" in
      */cpu.max|*/cpu.cfs_quota_us|*/memory.max|*/memory.limit_in_bytes|*/memory.memsw.limit_in_bytes)
        if [ -f "$1" ]; then
          fault=$({ printf "%s" "$2" | cat >"$1"; } 2>&1)
        else
          fault="No such file or directory"; false
        fi ;;
      *) fault="Operation not permitted"; false ;;
      esac ;;
    *) fault="Invalid argument"; false ;;
  esac
  printf "\\n%s %s\\n%s\\n%s end\\n" "$mark" "$?" "$fault" "$mark"
done
"""
EXIT_CODES = frozenset(map(str, range(256)))
REASONS = {
    os.strerror(number): number
    for number in (errno.ENOENT, errno.EACCES, errno.EPERM, errno.ESRCH, errno.ENODEV, errno.EINVAL)
}


async def connect_by_ssh(
    address: SshAddress, within_s: float | None = None
) -> asyncssh.SSHClientConnection:
    """Connect with the user's keys, within `CONNECT_S` where nothing else is given.

    The host's own key must be in `known_hosts`.

    Raises `LabError` with what to do where the host is not who it was or does not let us in,
    `LabGone` where nobody answers.
    """
    import asyncssh

    within_s = within_s or CONNECT_S
    given: dict[str, Any] = {"port": address.port} if address.port else {}
    if address.user:
        given["username"] = address.user
    try:
        return await asyncssh.connect(
            address.name, connect_timeout=within_s, keepalive_interval=10,
            keepalive_count_max=2, agent_forwarding=False, **given,
        )  # fmt: skip
    except asyncssh.HostKeyNotVerifiable as error:
        raise _other_key(address) from error
    except asyncssh.PermissionDenied as error:
        raise LabError(
            f"cannot be reached by SSH: it takes no key of yours ({error.reason})",
            where=str(address),
            remedy=f"See that `{_ssh(address)} true` works without a password",
        ) from error
    except (asyncssh.Error, OSError, ValueError) as error:
        why = str(error) or f"no answer within {within_s:g} s"
        raise LabGone(
            f"cannot be reached by SSH: {why}",
            where=str(address),
            remedy=f"See that `{_ssh(address)} true` works from this host",
        ) from error


def _ssh(address: SshAddress) -> str:
    port = f"-p {address.port} " if address.port else ""
    user = f"{address.user}@" if address.user else ""
    return f"ssh {port}{user}{address.name}"


def _other_key(address: SshAddress) -> LabError:
    """Whether its key is another than before, or was never seen."""
    import asyncssh

    try:
        file = str(Path("~/.ssh/known_hosts").expanduser())
        known = asyncssh.match_known_hosts(file, address.name, "", address.port or 22)[0]
    except (OSError, ValueError):
        known = []
    if not known:
        return LabError(
            "cannot be reached by SSH: its host key is not known here",
            where=str(address),
            remedy=f"Connect once with `{_ssh(address)}` and compare the key that it shows",
        )
    entry = f"[{address.name}]:{address.port}" if address.port else address.name
    return LabError(
        "cannot be reached by SSH: its host key is not the one in known_hosts, so that it was "
        "installed again or another host answers in its place; nothing was sent",
        where=str(address),
        remedy=f"Ask whoever runs it; if that is right, `ssh-keygen -R {shlex.quote(entry)}` and "
        f"connect once with `{_ssh(address)}`",
    )


@dataclass(frozen=True)
class RemoteTexts:
    """What files held, and why others could not be read."""

    held: Mapping[Path, str]
    faults: Mapping[Path, str]

    def text(self, path: Path) -> str:
        """Raises `OSError` as reading it here would."""
        if path in self.held:
            return self.held[path]
        raise as_os_error(self.faults.get(path, os.strerror(errno.ENOENT)), path)

    def optional(self, path: Path) -> str:
        return self.held.get(path, "")


def as_os_error(reason: str, path: Path) -> OSError:
    """What a program said of a file, as the error that it stands for."""
    reason = reason.rpartition(": ")[2].strip()
    return OSError(REASONS.get(reason, errno.EIO), reason, str(path))


@dataclass(frozen=True)
class ShellAnswer:
    """Of the script, to one order."""

    code: int
    out: str
    fault: str


@dataclass(frozen=True)
class RunningThere:
    """A process of another host that has not ended."""

    group: int
    start_s: float
    """Since its host did."""


def _running(stats: str) -> dict[int, RunningThere]:
    """By number, of `/proc/PID/stat`s one after the other. Raises `ValueError`, `IndexError`."""
    found = {}
    for line in filter(None, stats.split("\n")):
        number, _, rest = line.partition(" (")
        state, _, group, *_ = rest.rpartition(")")[2].split()
        if state not in {"Z", "X"}:  # one that nobody waited for writes no more
            found[int(number)] = RunningThere(int(group), parse_start_s(line))
    return found


@dataclass
class RemoteShell:
    """A host that is spoken to; it is connected to when it is first asked, and again after it
    was lost.

    Every question is answered within bounds, or raises `LabGone`. Who is cancelled meanwhile waits
    for the answer, so that no order is still under way when somebody else asks.
    """

    address: SshAddress
    connect_s: float | None = None
    """Within which it is connected to; None: `CONNECT_S`."""
    marked: str = ""
    """The shell there, `PID START`, that orders were last given to; empty: none yet."""
    ahead_s: float = 0.0
    """By how much its clock is ahead of this host's, at least; negative: behind."""
    _connection: asyncssh.SSHClientConnection | None = None
    _process: Any = None
    _mark: bytes = b""
    _lost: LabError | None = None
    _lost_s: float = 0.0
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def read(self, paths: Sequence[Path]) -> RemoteTexts:
        """What files hold, in one question."""
        answer = await self.ask("read", *map(str, paths))
        held: dict[Path, list[str]] = {}
        begins = {f"{path}:": path for path in paths}
        for line in answer.out.split("\n"):
            for begin, path in begins.items():
                if line.startswith(begin):
                    held.setdefault(path, []).append(line[len(begin) :])
                    break
        faults = {}
        for line in answer.fault.splitlines():
            for path in paths:
                if line.startswith(f"grep: {path}: "):
                    faults[path] = line.rpartition(": ")[2]
        if answer.code > GREP_FAULTS or (answer.code == GREP_FAULTS and not faults):
            # Nothing may be taken for empty that was not read.
            why = answer.fault[:MOST_SHOWN] or f"its grep ended with {answer.code}"
            raise self._gone(f"reads no files: {why}")
        texts = {path: "\n".join(lines) for path, lines in held.items()}
        empty = {path: "" for path in paths if path not in faults and path not in texts}
        whole = {path: text for path, text in texts.items() if path not in faults}
        return RemoteTexts({**whole, **empty}, faults)

    async def write(self, path: Path, text: str) -> None:
        """Into a limit of a control group. Raises `OSError` where it is refused."""
        answer = await self.ask("write", str(path), text)
        if answer.code:
            raise as_os_error(answer.fault or "Input/output error", path)

    async def numbers(self, paths: Sequence[Path]) -> dict[Path, int]:
        """Inodes of files that are there and may be looked at, links followed."""
        answer = await self.ask("number", *map(str, paths))
        found = {}
        for line in answer.out.splitlines():
            number, _, path = line.strip().partition(" ")
            if number.isdecimal():
                found[Path(path)] = int(number)
        return found

    async def children(self, pid: int) -> set[int]:
        """Processes that a process started and that still run."""
        answer = await self.ask("children", str(pid))
        return {int(word) for word in answer.out.split() if word.isdecimal()}

    async def sockets(self) -> str:
        """As `ls -l` lists the sockets that processes hold, each after its process's folder."""
        return (await self.ask("sockets")).out

    async def container(self, name: str) -> ShellAnswer:
        """What the engine there says of a container: id, process, state, image, name."""
        return await self.ask("container", name)

    async def labelled(self, *labels: str) -> ShellAnswer:
        """Containers that run there with all these labels, a line each: id, name, image, ports."""
        return await self.ask("labelled", *labels)

    async def end_shell(self, marked: str) -> None:
        """End a shell of ours that was left, `PID START`, and what it started: a write that the
        kernel has not done yet would come after whatever is written from now on.

        Raises `LabError` while it does not end.
        """
        await self._end(marked, self.ask)

    async def ask(self, verb: str, *arguments: str) -> ShellAnswer:
        """Give one order. Raises `LabGone` where it is not answered, `LabError` for what may not
        be asked."""
        if any(not text or "\n" in text or "\0" in text for text in arguments):
            raise LabError(
                "a path or value is empty or holds a line break", where=str(self.address)
            )
        asked = asyncio.ensure_future(self._asked(verb, arguments))
        try:
            return await asyncio.shield(asked)
        except asyncio.CancelledError:
            await asyncio.wait((asked,))
            if not asked.cancelled():
                asked.exception()  # who asked is gone
            raise

    async def _asked(self, verb: str, arguments: Sequence[str]) -> ShellAnswer:
        async with self._turn:
            if self._lost is not None and time.monotonic() - self._lost_s < QUIET_S:
                raise LabGone(self._lost.what, where=self._lost.where, remedy=self._lost.remedy)
            try:
                before = self.marked
                if self._process is None:
                    await self._begin()
                    if before:
                        await self._end(before, self._ordered)
                return await self._ordered(verb, *arguments)
            except LabError as error:
                self._drop(error)
                raise
            except (ValueError, IndexError, ArithmeticError) as error:
                gone = self._gone("answers what cannot be read")
                self._drop(gone)
                raise gone from error

    async def _ordered(self, verb: str, *arguments: str) -> ShellAnswer:
        return await self._exchange("\n".join((verb, str(len(arguments)), *arguments, "")))

    async def _begin(self) -> None:
        self._connection = await connect_by_ssh(self.address, self.connect_s)
        import asyncssh

        try:
            async with asyncio.timeout(ANSWER_S):
                self._process = await self._connection.create_process(
                    shlex.join(["sh", "-c", SCRIPT]),
                    encoding=None,
                    stderr=asyncssh.DEVNULL,
                    request_pty=False,
                )
        except (asyncssh.Error, OSError) as error:
            why = str(error) or f"no answer within {ANSWER_S:g} s"
            raise self._gone(f"runs no sh: {why}") from error
        self._mark = secrets.token_hex(8).encode()
        asked_s = time.time()
        answer = await self._exchange(self._mark.decode() + "\n")
        answered_s = time.time()
        try:
            # Before them stands what the login's own start files print.
            pid, there, stat = answer.out.strip().splitlines()[-3:]
            self.marked = f"{int(pid)} {parse_start_s(stat):.2f}"
            there_s = float(int(there))  # whole seconds
        except (ValueError, IndexError):
            raise self._gone("has no sh that does as it is told") from None
        ahead_s = there_s - answered_s
        self.ahead_s = ahead_s if ahead_s > 0 else min(0.0, there_s + 1.0 - asked_s)
        self._lost = None

    async def _end(self, marked: str, ask: Callable[..., Awaitable[ShellAnswer]]) -> None:
        pid, _, start = marked.partition(" ")
        if not pid.isdecimal() or marked == self.marked:
            return
        running = _running((await ask("processes")).out)
        here = running.get(int(self.marked.partition(" ")[0]))
        left = running.get(int(pid))
        if left is None or here is None or f"{left.start_s:.2f}" != start:
            return
        if left.group == here.group:  # an SSH server that gives sessions no group of their own
            raise LabError(f"a shell of ours there, process {pid}, has not ended")
        await ask("end", str(left.group))
        if left.group in {one.group for one in _running((await ask("processes")).out).values()}:
            raise LabError(f"a shell of ours there, process {pid}, has not ended")

    async def _exchange(self, lines: str) -> ShellAnswer:
        """Send lines and read the answer to them."""
        import asyncssh

        end, heard = b"\n" + self._mark + b" end\n", b""
        try:
            async with asyncio.timeout(ANSWER_S):
                self._process.stdin.write(lines.encode())
                await self._process.stdin.drain()
                while not heard.endswith(end):
                    piece = await self._process.stdout.read(1 << 16)
                    heard += piece
                    if not piece:
                        raise self._gone("has hung up")
                    if len(heard) > MOST_BYTES:
                        raise self._gone(f"answered with more than {MOST_BYTES >> 20} MiB")
        except TimeoutError:
            raise self._gone(f"has not answered for {ANSWER_S:g} s") from None
        except (asyncssh.Error, OSError) as error:
            raise self._gone(f"has hung up: {error}") from error
        text = heard[: -len(end)].decode(errors="replace")
        out, _, rest = text.partition(f"\n{self._mark.decode()} ")
        code, _, fault = rest.partition("\n")
        return ShellAnswer(int(code) if code in EXIT_CODES else 1, out, fault)

    def _gone(self, what: str) -> LabGone:
        return LabGone(
            what, where=f"host {self.address}", remedy="See that it runs and is reached by SSH"
        )

    def _drop(self, error: LabError | None) -> None:
        if self._connection is not None:
            self._connection.abort()
        self._connection = self._process = None
        self._lost, self._lost_s = error, time.monotonic()

    @property
    def clock(self) -> str:
        """What is off with its clock, as a clause; empty where nothing is."""
        if abs(self.ahead_s) <= CLOCK_OFF_S:
            return ""
        word = "ahead" if self.ahead_s > 0 else "behind"
        return f"its clock is {duration(abs(self.ahead_s))} {word}"

    async def close(self) -> None:
        """Hang up; its shell ends with that."""
        self._drop(None)
