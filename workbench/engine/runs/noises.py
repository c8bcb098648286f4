"""What `doctor --measure` found on this host: one file per lab, beside no workspace."""

from __future__ import annotations

import hashlib
from pathlib import Path

from workbench.domain import codec
from workbench.domain.errors import LabError, WorkbenchError
from workbench.domain.lab import HostNoise
from workbench.files import write_own
from workbench.log import logger
from workbench.paths import noise_folder

SUFFIX = ".json"

log = logger("engine.noises")


def file_of(lab: str) -> Path:
    """Where the noise of a lab is kept; a lab with options (`sim:noise=0`) is another lab."""
    kind, colon, options = lab.partition(":")
    digest = hashlib.sha256(options.encode()).hexdigest()[:8]
    return noise_folder() / f"{kind}{'-' + digest if colon else ''}{SUFFIX}"


def keep(noise: HostNoise) -> Path:
    """Store it in place of what was there; all or nothing. Raises `LabError`."""
    path = file_of(noise.lab)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_own(path, codec.dumps(codec.to_plain(noise)), synced=True)
    except OSError as error:
        raise LabError(
            f"what was measured of the host cannot be kept: {error.strerror}",
            where=str(path),
            remedy="Make room there, or set XDG_STATE_HOME to another folder",
        ) from None
    return path


def read(path: Path) -> HostNoise:
    """What a file holds. Raises `LabError`, also where there is none."""
    try:
        return codec.from_plain(codec.loads(path.read_bytes()), HostNoise)
    except OSError as error:
        what = error.strerror or type(error).__name__
    except WorkbenchError as error:
        what = error.what
    raise LabError(
        f"the host's noise cannot be read: {what}",
        where=str(path),
        remedy="Measure it again with `workbench doctor --measure`",
    )


def known(lab: str) -> HostNoise | None:
    """What is kept of a lab; None where it was never measured or its file is broken."""
    path = file_of(lab)
    if not path.exists():
        return None
    try:
        return read(path)
    except LabError as error:
        log.warning("host noise is left out", error=str(error))
        return None


def files() -> tuple[Path, ...]:
    """All that is kept of this host."""
    try:
        return tuple(sorted(noise_folder().glob(f"*{SUFFIX}")))
    except OSError:
        return ()
