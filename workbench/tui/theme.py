"""Five themes. Nothing on a screen is said by colour alone, so monochrome loses no meaning.

Dark and light are shades of the palette of Okabe and Ito; `workbench-safe` is the palette itself,
on black. `workbench-ansi` uses the terminal's own 16 colours, `workbench-mono` none at all.
"""

from __future__ import annotations

from collections.abc import Mapping

from textual.theme import BUILTIN_THEMES, Theme

DARK = Theme(
    name="workbench-dark",
    primary="#56B4E9",
    secondary="#CC79A7",
    accent="#56B4E9",
    success="#2FBF8F",
    warning="#E69F00",
    error="#F0733A",
    foreground="#D8DEE4",
    background="#101418",
    surface="#101418",
    panel="#1F2830",
    dark=True,
)

LIGHT = Theme(
    name="workbench-light",
    primary="#0072B2",
    secondary="#A0467C",
    accent="#0072B2",
    success="#007A5A",
    warning="#8F6200",
    error="#B84500",
    foreground="#1A1F24",
    background="#FAFAF7",
    surface="#FAFAF7",
    panel="#E4E7E9",
    dark=False,
)

SAFE = Theme(
    name="workbench-safe",
    primary="#56B4E9",
    secondary="#CC79A7",
    accent="#F0E442",
    success="#009E73",
    warning="#E69F00",
    error="#D55E00",
    foreground="#FFFFFF",
    background="#000000",
    surface="#000000",
    panel="#262626",
    dark=True,
)

_VARIABLES = BUILTIN_THEMES["ansi-dark"].variables
"""What Textual's own widgets ask of a theme that leaves colours to the terminal."""

ANSI = Theme(
    name="workbench-ansi",
    ansi=True,
    primary="ansi_cyan",
    secondary="ansi_magenta",
    accent="ansi_cyan",
    success="ansi_green",
    warning="ansi_yellow",
    error="ansi_red",
    foreground="ansi_default",
    background="ansi_default",
    surface="ansi_default",
    panel="ansi_default",
    boost="ansi_default",
    dark=True,
    variables=_VARIABLES,
)

MONO = Theme(
    name="workbench-mono",
    ansi=True,
    primary="ansi_default",
    secondary="ansi_default",
    accent="ansi_default",
    success="ansi_default",
    warning="ansi_default",
    error="ansi_default",
    foreground="ansi_default",
    background="ansi_default",
    surface="ansi_default",
    panel="ansi_default",
    boost="ansi_default",
    dark=True,
    variables={
        name: "none" if name.endswith("text-style") else "ansi_default" for name in _VARIABLES
    },
)

THEMES: Mapping[str, Theme] = {
    theme.name.removeprefix("workbench-"): theme for theme in (DARK, LIGHT, SAFE, ANSI, MONO)
}
"""By the name that a user knows: `dark`, `light`, `safe`, `ansi`, `mono`."""

SUMMARIES: Mapping[str, str] = {
    "dark": "Dark background",
    "light": "Light background",
    "safe": "The colours of Okabe and Ito, distinct for colour-blind readers",
    "ansi": "The 16 colours of your terminal",
    "mono": "No colours",
}


def fitting(environment: Mapping[str, str]) -> str:
    """The theme that suits a terminal which says what it is."""
    if environment.get("NO_COLOR"):  # empty it asks for nothing, says no-color.org
        return "mono"
    if environment.get("COLORTERM", "") in ("truecolor", "24bit"):
        background = environment.get("COLORFGBG", "").rpartition(";")[2]
        return "light" if background in ("7", "15") else "dark"
    term = environment.get("TERM", "")
    return "dark" if "256color" in term or "direct" in term or not term else "ansi"


def beginning(environment: Mapping[str, str], chosen: str) -> str:
    """The theme to begin with: what a user chose before, where the terminal can show it.

    Without colours that is `mono` alone, with the terminal's own 16 `ansi` or `mono`: the shades of
    the others would be rounded to what nobody chose.
    """
    fits = fitting(environment)
    shown = {"mono": ("mono",), "ansi": ("ansi", "mono")}.get(fits, tuple(THEMES))
    return chosen if chosen in shown else fits
