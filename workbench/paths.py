"""Where things are: workspace, sessions, socket, locks, log, noise, settings, shipped templates.

A *workspace* is a folder with `sessions/` in it. One engine owns it; its socket lies in the
runtime folder of the user, since a path in the workspace could pass the limit for unix sockets. The
lock for measuring is the host's.
"""

from __future__ import annotations

import hashlib
import os
import platform
import stat
import warnings
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from workbench.domain.errors import UsageError

APPLICATION = "vnf-workbench"
WORKSPACE_VARIABLE = "WORKBENCH_WORKSPACE"
LOCK_VARIABLE = "WORKBENCH_MEASURING_LOCK"
MEASURING_LOCK = f"{APPLICATION}-measuring.lock"
EVERYBODYS = (Path("/run/lock"), Path("/tmp"))  # noqa: S108 - a name that is the same for all users
SOCKET_PATH_LIMIT = 100
"""Bytes; the kernel's own limit for unix sockets is 108."""


@dataclass(frozen=True)
class Workspace:
    """A folder that one engine owns."""

    root: Path

    @property
    def sessions(self) -> Path:
        return self.root / "sessions"

    @property
    def exports(self) -> Path:
        return self.root / "exports"

    @property
    def templates(self) -> Path:
        """The user's own descriptors; they win over shipped ones of the same name."""
        return self.root / "templates"

    @property
    def state(self) -> Path:
        return self.root / ".workbench"

    @property
    def trash(self) -> Path:
        """Sessions that were deleted; nothing is ever removed from it but by hand."""
        return self.state / "trash"

    @property
    def drafts(self) -> Path:
        """Campaigns that are being written."""
        return self.state / "drafts"

    @property
    def engine_lock(self) -> Path:
        return self.state / "engine.lock"

    @property
    def log(self) -> Path:
        return self.state / "workbench.log"

    @property
    def audit(self) -> Path:
        """Who connected and who commanded what."""
        return self.state / "audit.log"

    @property
    def host_key(self) -> Path:
        """Private key of the SSH server."""
        return self.state / "ssh_host_ed25519_key"

    @property
    def tokens(self) -> Path:
        """Digests of the tokens of `serve --http`."""
        return self.state / "tokens.json"

    @property
    def socket(self) -> Path:
        digest = hashlib.sha256(os.fsencode(self.root)).hexdigest()[:16]
        path = runtime_folder() / f"engine-{digest}.sock"
        if len(os.fsencode(path)) >= SOCKET_PATH_LIMIT:
            raise UsageError(
                f"the socket's path {path} is too long",
                remedy="Set XDG_RUNTIME_DIR to a shorter folder",
            )
        return path


def workspace(given: Path | None = None) -> Workspace:
    """The workspace: as given, else `WORKBENCH_WORKSPACE`, else here, else the data folder.

    *Here* counts only where the current folder holds `sessions/`. Nothing is created.

    Raises `UsageError` for a user that is not known, and from a folder that was removed.
    """
    named = given or os.environ.get(WORKSPACE_VARIABLE)
    if named:
        return Workspace(_resolved(Path(named)))
    here = _resolved(Path())
    if (here / "sessions").is_dir():
        return Workspace(here)
    return Workspace(Path(platformdirs.user_data_dir(APPLICATION)))


def expanded(path: Path | str) -> Path:
    """A path as somebody types it: `~` is a home. Raises `UsageError` for nobody's."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise UsageError(
            "begins with a user that this host does not know",
            where=str(path),
            remedy="Write the folder out",
        ) from None


def absolute(path: Path | str) -> Path:
    """The same, from the root. Raises `UsageError` also from a folder that was removed."""
    try:
        return expanded(path).absolute()
    except FileNotFoundError:
        raise _removed() from None


def _resolved(path: Path) -> Path:
    try:
        return expanded(path).resolve()
    except FileNotFoundError:
        raise _removed() from None
    except RuntimeError:  # Python 3.12; later ones leave such a path as it is
        raise UsageError("is a link to itself", where=str(path), remedy="Remove it") from None


def _removed() -> UsageError:
    return UsageError("the current folder was removed", remedy="Go to another one (cd)")


def runtime_folder() -> Path:
    """The user's folder for sockets and locks, mode 0700; created if missing."""
    with warnings.catch_warnings():
        # A runtime folder that others can read is not used; what is used instead is in `doctor`.
        warnings.simplefilter("ignore", UserWarning)
        try:
            folder = Path(platformdirs.user_runtime_dir(APPLICATION))
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:  # such as a folder in /tmp that somebody else made in our name
            raise UsageError(
                f"there is no safe folder for sockets: {error}",
                remedy="Set XDG_RUNTIME_DIR to a folder of yours with mode 0700",
            ) from None
    return folder


def measuring_lock() -> Path:
    """One per host: campaigns of all its workspaces, fleets and users queue for it (decision 1).

    `WORKBENCH_MEASURING_LOCK` names another file, such as one that the containers of a machine
    share; where that is no absolute path, in the user's runtime folder. Where a host has no folder
    that is everybody's, each user has a lock of its own there. Raises `UsageError`.
    """
    if named := os.environ.get(LOCK_VARIABLE):
        try:
            return runtime_folder() / Path(named).expanduser()
        except RuntimeError:
            raise UsageError(
                f"{named} begins with a user that this host does not know",
                where=LOCK_VARIABLE,
                remedy="Name a file in a folder that is there",
            ) from None
    folder = next((each for each in EVERYBODYS if _is_everybodys(each)), None)
    return (folder or runtime_folder()) / MEASURING_LOCK


def _is_everybodys(folder: Path) -> bool:
    """Whether all users write there, and none can remove what another has made.

    Of a file system that is read-only here alone, such as in a container, the lock that others
    have made will do.
    """
    try:
        mode = folder.stat().st_mode
        is_shut = bool(os.statvfs(folder).f_flag & os.ST_RDONLY)
    except OSError:
        return False
    if is_shut and not os.path.lexists(folder / MEASURING_LOCK):
        return False
    return stat.S_ISDIR(mode) and bool(mode & stat.S_ISVTX) and bool(mode & stat.S_IWOTH)


def noise_folder() -> Path:
    """What `doctor --measure` found on this host, one file per lab; a home may be shared by hosts.

    Nothing is created.
    """
    return Path(platformdirs.user_state_dir(APPLICATION)) / "noise" / platform.node()


def attached_folder() -> Path:
    """What is changed of systems that run already, until it is put back: a journal for each lab of
    this host and user. Nothing is created."""
    return Path(platformdirs.user_state_dir(APPLICATION)) / "attached" / platform.node()


def keys_file() -> Path:
    """Where the user binds keys of the screens anew; it need not exist."""
    return Path(platformdirs.user_config_dir(APPLICATION)) / "keys.toml"


def notify_file() -> Path:
    """Whom the user wants told of campaigns that end; it need not exist."""
    return Path(platformdirs.user_config_dir(APPLICATION)) / "notify.toml"


def screen_memory() -> Path:
    """What the screens remember themselves: theme, tour, workspaces."""
    return Path(platformdirs.user_state_dir(APPLICATION)) / "screen.json"


def shipped(kind: str) -> Path:
    """Folder of shipped data, `templates` or `sessions`; in a checkout beside the package."""
    package = Path(__file__).resolve().parent
    installed = package / "share" / kind
    if installed.is_dir():
        return installed
    beside = {"templates": "templates", "sessions": "sessions/recorded"}[kind]
    return package.parent / beside


SHIPPED_TEMPLATE = "shipped:"
"""Prefix of a folder among the shipped templates, wherever they are installed."""


def portable(folder: Path) -> str:
    """A template's folder as a session stores it: it outlives the installation that made it."""
    templates = shipped("templates")
    if folder.is_relative_to(templates):
        return SHIPPED_TEMPLATE + folder.relative_to(templates).as_posix()
    return str(folder)


def located(stored: str) -> Path:
    """Where the folder that `portable` wrote down is now."""
    if stored.startswith(SHIPPED_TEMPLATE):
        return shipped("templates") / stored.removeprefix(SHIPPED_TEMPLATE)
    return Path(stored)
