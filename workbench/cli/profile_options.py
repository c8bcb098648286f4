"""`--profiles`, `--signers`, `--insist`: whose profiles speak, alike for all commands that ask."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from workbench.cli.signed_bundles import SignersOption, say_who_signed


def _options(
    *,
    profiles: Annotated[
        str | None,
        typer.Option(
            help="Sessions or bundles that have the functions' profiles, as A,B; who is named "
            "first speaks. Default: the same session."
        ),
    ] = None,
    signers: SignersOption = None,
    insist: Annotated[
        bool,
        typer.Option("--insist", help="Take profiles of another host, and mark the answer."),
    ] = False,
) -> None:
    """Has the options that `with_profiles` adds to a command."""


@dataclass(frozen=True)
class ProfilesGiven:
    """What the options say."""

    profiles: str | None = None
    signers: Path | None = None
    insist: bool = False

    def sessions(self, session: str | None) -> tuple[str, ...]:
        """Those of `--profiles`; with `--signers` they, else `session`, have to be signed bundles,
        and who signed them is said.

        Raises `UsageError` for what is no bundle, `SessionError` where nobody of the signers did.
        """
        from workbench.cli.context import session_names
        from workbench.domain.errors import UsageError

        named = session_names(self.profiles)
        if self.signers is None:
            return named
        for name in named or session_names(session):
            if not Path(name).is_dir():
                raise UsageError(
                    "is no bundle, and only bundles are signed",
                    where=name,
                    remedy="Give the bundle's folder, or leave out --signers",
                )
            say_who_signed(Path(name), self.signers)
        return named


def with_profiles(command: Callable[..., None]) -> Callable[..., None]:
    """A command with these options, which it gets as its parameter `given`."""

    def called(**said: Any) -> None:
        given = ProfilesGiven(**{name: said.pop(name) for name in options})
        command(**said, given=given)

    own = inspect.signature(command, eval_str=True)
    options = inspect.signature(_options, eval_str=True).parameters
    kept = [one for name, one in own.parameters.items() if name != "given"]
    keyword = inspect.Parameter.KEYWORD_ONLY
    merged = [one.replace(kind=keyword) for one in (*kept, *options.values())]
    called.__name__, called.__doc__ = command.__name__, command.__doc__
    called.__annotations__ = {one.name: one.annotation for one in merged}
    cast(Any, called).__signature__ = own.replace(parameters=merged)
    return called


def session_asked(session: str | None, profiles: tuple[str, ...], command: str) -> str:
    """The session that is asked: the one that is named, else the first that has profiles."""
    from workbench.cli.context import session_name
    from workbench.domain.errors import UsageError

    if session is None and not profiles:
        raise UsageError(
            "names neither a session nor profiles",
            where=command,
            remedy=f"Write `workbench {command} SESSION ...`, or --profiles A.bundle,B.bundle",
        )
    return session_name(session) if session is not None else profiles[0]
