"""Two themes from the palette of Okabe and Ito, which stays distinct for colour-blind readers."""

from __future__ import annotations

from textual.theme import Theme

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
