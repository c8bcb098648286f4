"""Every picture that the script takes stands in the guide of the screens, and no other does."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from workbench.tui.commands.catalogue import SCREENS

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

from screenshot import IMAGES, PICTURES, RECORDING  # noqa: E402 - scripts are no package

ALONE = {"sessions", "chain", "campaign"}
"""Screens without an open session: their title is the workbench's alone."""


def test_the_guide_shows_what_the_script_takes() -> None:
    guide = (ROOT / "docs" / "screens.md").read_text()
    shown = re.findall(r"!\[[^]]+\]\(images/(\S+)\.svg\)", guide)
    assert sorted(shown) == sorted(PICTURES)
    for name in PICTURES:
        assert (
            f">workbench&#160;{RECORDING}<" in (IMAGES / f"{name}.svg").read_text() or name in ALONE
        )


def test_every_screen_has_a_picture() -> None:
    assert {screen.title.lower() for screen in SCREENS} <= set(PICTURES)
