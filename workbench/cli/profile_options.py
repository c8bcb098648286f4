"""`--profiles`, `--signers`, `--insist`: whose profiles speak, alike for all commands that ask."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from workbench.cli.completion import sessions_and_recordings
from workbench.cli.signed_bundles import SignersOption, say_who_signed


@dataclass(frozen=True)
class ProfilesGiven:
    """What they say, and of which session."""

    session: Annotated[
        str | None,
        typer.Argument(
            help="A session, a recording, or a bundle's folder; default: the first of --profiles.",
            autocompletion=sessions_and_recordings,
        ),
    ] = None
    profiles: Annotated[
        str | None,
        typer.Option(
            help="Sessions or bundles that have the functions' profiles, as A,B; who is named "
            "first speaks. Default: the same session."
        ),
    ] = None
    signers: SignersOption = None
    insist: Annotated[
        bool,
        typer.Option("--insist", help="Use profiles of another host anyway; the answer is marked."),
    ] = False

    def sessions(self) -> tuple[str, ...]:
        """Those of `--profiles`; with `--signers` they, else the session, are signed bundles, and
        who signed them is said.

        Raises `UsageError` for what is no bundle, `SessionError` where nobody of the signers did.
        """
        from workbench.cli.context import session_names
        from workbench.domain.errors import UsageError

        named = session_names(self.profiles)
        if self.signers is None:
            return named
        for name in named or session_names(self.session):
            if not os.path.isdir(name):  # noqa: PTH112 - no, too, where it is no path
                raise UsageError(
                    "is no bundle, and only bundles are signed",
                    where=name,
                    remedy="Give the bundle's folder, or leave out --signers",
                )
            say_who_signed(Path(name), self.signers)
        return named

    def asked(self, command: str) -> str:
        """The session that is asked: the one that is named, else the first that has profiles."""
        from workbench.cli.context import session_name, session_names
        from workbench.domain.errors import UsageError

        if self.session is None and not self.profiles:
            raise UsageError(
                "names neither a session nor profiles",
                where=command,
                remedy=f"Write `workbench {command} SESSION ...`, or --profiles A.bundle,B.bundle",
            )
        return session_name(self.session) if self.session else session_names(self.profiles)[0]
