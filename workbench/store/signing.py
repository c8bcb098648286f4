"""Signatures of bundles by SSH keys (`ssh-keygen -Y`): whose profile it is, and that it is as made.

What is signed is the manifest, which has the SHA-256 of every table. No key is read here.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from workbench import files
from workbench.domain.errors import SessionError
from workbench.store.bundle import MANIFEST, check_every_digest, read_manifest

NAMESPACE = "vnf-workbench"
"""A signature that was made for something else, such as a commit, is none of a bundle."""
SIGNATURE = f"{MANIFEST}.sig"
LARGEST = 64 * 1024
"""Of a signature and of a file of signers."""
ASKING_S = 120.0
"""For somebody to type a passphrase."""


@dataclass(frozen=True)
class SignedBy:
    """Who signed a bundle, as the file of signers names them, and with which key."""

    principal: str
    key: str


def sign(folder: Path, key: Path) -> Path:
    """Sign a bundle with a private key, or with a public one whose other half an agent holds.

    Raises `SessionError` where the folder is no whole bundle, or nothing was signed.
    """
    check_every_digest(read_manifest(folder), folder)
    argv = ("-Y", "sign", "-q", "-n", NAMESPACE, "-f", str(key))
    done = _keygen(argv, (folder / MANIFEST).read_bytes(), folder)
    if done.returncode or not done.stdout.startswith(b"-----BEGIN SSH SIGNATURE"):
        raise SessionError(
            f"ssh-keygen did not sign it: {_said(done)}",
            where=str(key),
            remedy="Give a private key, or the public one of a key that the agent holds",
        )
    try:
        files.write_whole(folder / SIGNATURE, done.stdout)
    except OSError as error:
        raise SessionError(
            f"cannot be written: {error.strerror}",
            where=str(folder / SIGNATURE),
            remedy="Copy the bundle to a folder of yours",
        ) from None
    return folder / SIGNATURE


def verify(folder: Path, signers: Path) -> SignedBy:
    """Who of the `signers` (the format of ssh-keygen's ALLOWED SIGNERS) signed a bundle.

    Raises `SessionError` where nobody of them did, or where it is not what they signed.
    """
    manifest = read_manifest(folder)
    if not _is_small(signers):
        raise SessionError("is no file of signers", where=str(signers), remedy=REMEDY)
    if not _is_small(folder / SIGNATURE):
        raise SessionError("is not signed", where=str(folder), remedy=REMEDY)
    signature, known = ("-s", str(folder / SIGNATURE)), ("-f", str(signers))
    found = _keygen(("-Y", "find-principals", *signature, *known), b"", folder)
    principals = found.stdout.decode(errors="replace").split("\n")
    if found.returncode or not principals[0]:
        raise SessionError(
            f"is signed by a key that {signers.name} does not name",
            where=str(folder),
            remedy=REMEDY,
        )
    argv = ("-Y", "verify", "-n", NAMESPACE, "-I", principals[0], *signature, *known)
    done = _keygen(argv, (folder / MANIFEST).read_bytes(), folder)
    if done.returncode:
        raise SessionError(
            f"has a wrong signature: its manifest is not what {_plain(principals[0])} signed, or "
            "the key had expired",
            where=str(folder),
            remedy=REMEDY,
        )
    check_every_digest(manifest, folder)
    key = re.search(r"SHA256:[A-Za-z0-9+/]+", done.stdout.decode(errors="replace"))
    return SignedBy(_plain(principals[0]), key[0] if key else "")


def _is_small(file: Path) -> bool:
    return file.is_file() and file.stat().st_size <= LARGEST


REMEDY = "Get it from them again; `ssh-keygen` has the format of signers under ALLOWED SIGNERS"


def _keygen(argv: Sequence[str], given: bytes, folder: Path) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(
            ["ssh-keygen", *argv], input=given, capture_output=True, timeout=ASKING_S, check=False
        )
    except FileNotFoundError:
        raise SessionError("this host has no ssh-keygen", remedy="Install openssh-client") from None
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SessionError(
            f"ssh-keygen did not end ({type(error).__name__})", where=str(folder)
        ) from None


def _said(done: subprocess.CompletedProcess[bytes]) -> str:
    lines = _plain(done.stderr.decode(errors="replace").strip())
    return lines or f"it ended with code {done.returncode}"


def _plain(text: str) -> str:
    return "".join(c if c.isprintable() else "·" for c in text)[:200]
