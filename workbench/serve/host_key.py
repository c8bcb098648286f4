"""The server's own key: made once, and never again, or every client would warn of an impostor."""

from __future__ import annotations

import os
from pathlib import Path

import asyncssh

from workbench import files
from workbench.domain.errors import UsageError


def host_key(path: Path) -> asyncssh.SSHKey:
    """The key at `path`, mode 0600; made there if there is none.

    Raises `UsageError` if it cannot be read, or others can read it.
    """
    try:
        if not path.exists():
            _make(path)
        mode = path.stat().st_mode
        if mode & 0o077:
            raise UsageError(
                "others can read the server's private key",
                where=str(path),
                remedy="Remove it, so that a new one is made, or `chmod 600` it",
            )
        return asyncssh.read_private_key(path)
    except (OSError, asyncssh.KeyImportError) as error:
        raise UsageError(
            f"the server's private key cannot be used: {error}", where=str(path)
        ) from None


def _make(path: Path) -> None:
    files.make_folder(path.parent)
    key = asyncssh.generate_private_key("ssh-ed25519", comment="vnf-workbench")
    beside = files.partial(path)
    file = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(file, "wb") as out:
        out.write(key.export_private_key())
    try:
        os.link(beside, path)  # whole or not at all, and never over another server's
    except FileExistsError:
        pass
    finally:
        beside.unlink()
