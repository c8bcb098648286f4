"""Help that lists commands by what they are for, each with its whole sentence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from typer.core import TyperGroup

COMMAND_GROUPS: Mapping[str, tuple[str, ...]] = {
    "Measure": ("plan", "run", "resume", "canary", "discover", "doctor", "reap", "images"),
    "Look": (
        "attach", "ls", "show", "samples", "compare", "why", "report", "query", "replay", "logs",
    ),
    "Predict and decide": ("models", "predict", "recommend", "counters", "watch"),
    "Describe": ("lint", "schema", "chains", "conformance"),
    "Hand over": ("export", "import", "sign", "verify", "rescue"),
    "Others and other hosts": ("fleet", "serve", "web", "token", "notify", "grafana", "engine"),
}  # fmt: skip
"""Commands of `workbench`, most wanted first."""
_WHOLE = 1_000
"""Letters that a sentence may have; it is wrapped."""


class WholeSentences(TyperGroup):
    """Commands of a group, each with its first sentence, wrapped and never cut."""

    grouped: Mapping[str, tuple[str, ...]] = {}
    """Names of commands by title; what is in none comes last, under *Commands*."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        shown = {
            name: command
            for name in self.list_commands(ctx)
            if (command := self.get_command(ctx, name)) is not None and not command.hidden
        }
        listed = {name for names in self.grouped.values() for name in names}
        sections = {**self.grouped, "Commands": [name for name in shown if name not in listed]}
        width = max(map(len, shown), default=0)
        for title, names in sections.items():
            rows = [
                (name.ljust(width), shown[name].get_short_help_str(_WHOLE))
                for name in names
                if name in shown
            ]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


class WorkbenchCommands(WholeSentences):
    """The commands of `workbench` itself."""

    grouped = COMMAND_GROUPS
