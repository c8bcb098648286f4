"""What the house does not want, and what of it is left: `what_is_left.json` names it, exactly.

More than is named there fails: choose another name, split the function, say it in plain English.
Less fails too: take it off the list, so that it does not come back. `UPDATE_HOUSE=1 pytest
house/test_ratchet.py` writes the list as things are now: read its diff before it is committed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from house_measures import KINDS, Package

import workbench

LEFT = Path(__file__).with_name("what_is_left.json")
BANNED = {
    r"next one will ask": "it is stored with the decision",
    r"\bis said by\b": "is predicted by",
    r"\bsaid by\b": "stated in",
    r"a trip goes back": "if violated: back to",
    r"\w+ anew\b": "again",
    r"\bmended\b": "corrected",
    r"which no(ne)?\b.* is called|is called so": "there is no ... of that name",
    r"\bby convolved\b": "predicted by the rule convolved",
    r"vCPU-hours/h": "vCPU",
    r"the wheel": "control",
    r"what was announced": "the samples taken so far",
    r"in the long run": "in steady state",
    r"\bfore(tell|told)\b": "predicted",
}
"""Sentences and words that a reader stumbles over, as regular expressions, and what to write."""
PACKAGE = Package(Path(workbench.__file__).parent)
COUNTED: dict[str, Callable[[], Any]] = {
    "class names in several modules": PACKAGE.class_names,
    "module names in several folders": PACKAGE.module_names,
    "functions over 80 lines": PACKAGE.long_functions,
    "functions over six parameters": PACKAGE.many_parameters,
    "words to replace": lambda: PACKAGE.sentences(BANNED),
}


def left() -> dict[str, Any]:
    known: dict[str, Any] = json.loads(LEFT.read_text())
    return known


def lines(found: Any) -> set[str]:
    """One line for each thing that is counted."""
    return {
        f"{name}: {', '.join(what) if isinstance(what, list) else what}"
        for name, what in found.items()
    }


@pytest.mark.parametrize("what", COUNTED)
def test_no_more_than_is_left_and_no_less(what: str) -> None:
    found = COUNTED[what]()
    if os.environ.get("UPDATE_HOUSE"):
        known = left() if LEFT.exists() else {}
        text = json.dumps({**known, what: found}, indent=1, ensure_ascii=False)
        LEFT.write_text(text + "\n")
    now, before = lines(found), lines(left()[what])
    more, less = sorted(now - before), sorted(before - now)
    assert not more, f"{what}: not on the list:\n" + "\n".join(more)
    assert not less, f"{what}: better than the list, take it off:\n" + "\n".join(less)


@pytest.mark.parametrize("kind", KINDS)
def test_modules_import_each_other_in_no_circle(kind: str) -> None:
    """Not when they are loaded, not for types alone, not by imports inside functions."""
    circles = [" <> ".join(circle) for circle in PACKAGE.circles(kind)]
    assert not circles, "move what both need below both, or say what is needed by a protocol"


def test_the_list_holds_nothing_else() -> None:
    assert set(left()) == set(COUNTED)


def package(tmp_path: Path, **texts: str) -> Package:
    root = tmp_path / "house"
    for name, text in texts.items():
        path = root / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Package(root)


def test_a_name_in_two_modules_is_found(tmp_path: Path) -> None:
    found = package(tmp_path, a__line="class Line: ...", b__line="class Line: ...\nclass _Own: ...")
    assert found.class_names() == {"Line": ["a.line", "b.line"]}
    assert found.module_names() == {"line": ["a", "b"]}


def test_long_functions_and_many_parameters_are_found(tmp_path: Path) -> None:
    long = "class C:\n    def long(self):\n" + "        pass\n" * 80
    many = "def many(a, b, c, /, d, *, e, f, g): ...\ndef few(a, b, c, d, e, f): ...\n"
    found = package(tmp_path, a=long, b=many)
    assert found.long_functions() == {"a.C.long": 81}
    assert found.many_parameters() == {"b.many": 7}


def test_circles_are_found_on_loading_for_types_and_in_functions(tmp_path: Path) -> None:
    found = package(
        tmp_path,
        a="from house.b import x",
        b="import house.a",
        c="from house import d",
        d="if TYPE_CHECKING:\n    from house.c import x\n",
        e="from house.f import x",
        f="def late():\n    with x:\n        from house import e\n",
    )
    assert found.circles("loading") == [["a", "b"]]
    assert found.circles("types") == [["a", "b"], ["c", "d"]]
    assert found.circles("deferred") == [["a", "b"], ["c", "d"], ["e", "f"]]


def test_banned_words_are_found_in_what_is_shown_and_not_in_docstrings(tmp_path: Path) -> None:
    found = package(
        tmp_path, a='"""It is said by me."""\nx = f"{y} is said by {z}"', b='x = "fine"'
    )
    assert found.sentences(BANNED) == {r"\bis said by\b": ["a"], r"\bsaid by\b": ["a"]}
