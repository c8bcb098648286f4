"""`sign`, `verify`: whose bundle it is, by SSH keys."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

BundleArgument = Annotated[Path, typer.Argument(help="A bundle's folder.", file_okay=False)]
SignersOption = Annotated[
    Path | None,
    typer.Option(
        "--signers",
        help="Take a bundle only if one of these signed it: a file of `NAME KEY` lines, as "
        "ssh-keygen's ALLOWED SIGNERS.",
        dir_okay=False,
    ),
]


def register(app: typer.Typer) -> None:
    app.command("sign")(sign)
    app.command("verify")(verify)


def sign(
    bundle: BundleArgument,
    key: Annotated[
        Path, typer.Option(help="An SSH key: private, or public with its other half in the agent.")
    ],
) -> None:
    """Sign a bundle for others, with an SSH key.

    Example: workbench sign exports/demo-1.bundle --key ~/.ssh/id_ed25519
    """
    from workbench.cli.context import put
    from workbench.paths import expanded
    from workbench.store import signing

    put(str(signing.sign(expanded(bundle), expanded(key))))


def verify(
    bundle: BundleArgument,
    signers: Annotated[
        Path,
        typer.Option(
            help="Who may have signed it: `NAME KEY` lines, as ssh-keygen's ALLOWED SIGNERS.",
            dir_okay=False,
        ),
    ],
) -> None:
    """Say who signed a bundle, and that it is what they signed; else exit with 3.

    Example: workbench verify theirs.bundle --signers signers
    """
    from workbench.cli.context import put

    put(_who_signed(bundle, signers))


def say_who_signed(bundle: Path, signers: Path) -> None:
    """On standard error, before the bundle is taken. Raises `SessionError` where nobody did."""
    from workbench.cli.context import say

    say(_who_signed(bundle, signers))


def _who_signed(bundle: Path, signers: Path) -> str:
    from workbench.paths import expanded
    from workbench.store import signing

    by = signing.verify(expanded(bundle), expanded(signers))
    return f"{bundle}: signed by {by.principal}" + (f" ({by.key})" if by.key else "")
