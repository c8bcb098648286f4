"""`sign`, `verify`: whose bundle it is, by SSH keys."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

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


def _asked(signers: SignersOption = None) -> None:
    """Has the option that `OnlyFromSigners` adds."""


class OnlyFromSigners(TyperCommand):
    """A command with `--signers`: the bundles of `--profiles`, else the one that it is about, are
    verified before it begins."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        alone = typer.Typer(add_completion=False)
        alone.command()(_asked)
        self.params += [
            one for one in typer.main.get_command(alone).params if one.name == "signers"
        ]

    def invoke(self, ctx: Any) -> Any:
        signers = ctx.params.pop("signers", None)
        if signers is not None:
            from workbench.cli.context import session_names

            named = session_names(ctx.params["profiles"] or ctx.params["session"])
            _must_be_signed(named, Path(signers))
        return super().invoke(ctx)


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
    from workbench.store import signing

    put(str(signing.sign(bundle.expanduser(), key.expanduser())))


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
    from workbench.store import signing

    by = signing.verify(bundle.expanduser(), signers.expanduser())
    return f"{bundle}: signed by {by.principal}" + (f" ({by.key})" if by.key else "")


def _must_be_signed(bundles: tuple[str, ...], signers: Path) -> None:
    """Say who signed each of them. Raises `UsageError` for what is no bundle, `SessionError` where
    nobody of the signers did."""
    from workbench.domain.errors import UsageError

    for name in bundles:
        if not Path(name).is_dir():
            raise UsageError(
                "is no bundle, and only bundles are signed",
                where=name,
                remedy="Give the bundle's folder, or leave out --signers",
            )
        say_who_signed(Path(name), signers)
