"""How a recording is asked: `recorded:NAME,interpolate=1,spread=0.1`."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from workbench.domain.errors import UsageError

_OPTIONS = re.compile(r"(?:,[a-z_]+=[^,=]*)*$")


@dataclass(frozen=True)
class RecordedOptions:
    """What follows the colon of `recorded:`.

    Attributes
    ----------
    name : of a session, a bundle or a CSV file, or its path.
    interpolate : answer between recorded loads as well; such samples are marked and teach nothing.
    spread : log-sd of a figure between passes, for rows of a CSV that state no interval and that
        nobody repeated; None: nobody said.
    """

    name: str
    interpolate: bool = False
    spread: float | None = None

    @classmethod
    def parse(cls, text: str) -> RecordedOptions:
        """Raises `UsageError`."""
        found = _OPTIONS.search(text)
        assert found is not None, "an empty match is one, too"
        options = cls(text[: found.start()])
        for pair in filter(None, found[0].split(",")):
            key, _, value = pair.partition("=")
            if key == "interpolate" and value in ("0", "1"):
                options = replace(options, interpolate=value == "1")
            elif key == "spread" and (spread := _spread(value)) is not None:
                options = replace(options, spread=spread)
            else:
                raise UsageError(
                    f"{pair!r} is no option of the recorded lab",
                    where=f"recorded:{text}",
                    remedy="Choose from: interpolate=1 (answer between recorded loads, too), "
                    "spread=0.1 (log-sd between passes, above 0 and at most 2)",
                )
        return options

    @property
    def text(self) -> str:
        """As it is written behind `recorded:`."""
        interpolate = ",interpolate=1" if self.interpolate else ""
        spread = "" if self.spread is None else f",spread={self.spread:g}"
        return f"{self.name}{interpolate}{spread}"


def _spread(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 < value <= 2 else None
