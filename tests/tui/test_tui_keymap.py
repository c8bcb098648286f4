"""Keys by preset and by file: what is in force, and what is said of a file that is wrong."""

from __future__ import annotations

import subprocess
import sys
from itertools import combinations
from pathlib import Path

import pytest
from driving import REPOSITORY
from fake_link import FakeClient, opened, screen_text, toasts
from textual.command import CommandList

from workbench.tui.commands.actions import ACTIONS
from workbench.tui.commands.keymap import Keymap, keymap_of, load, meet, preset_actions
from workbench.tui.commands.meanings import MEANINGS, SHARED
from workbench.tui.places import Files
from workbench.tui.screens.palette import ActionPalette


def keys(keymap: Keymap, id: str) -> tuple[str, ...]:
    return next(action.keys for action in keymap.actions if action.id == id)


@pytest.mark.parametrize("preset", ["vim", "plain"])
def test_a_preset_gives_a_key_to_everything_and_no_key_to_strangers(preset: str) -> None:
    actions = preset_actions(preset)  # type: ignore[arg-type]
    assert [a.id for a in actions] == [a.id for a in ACTIONS]
    assert all(action.keys for action in actions)
    other_preset = preset_actions("vim" if preset == "plain" else "plain")
    there = {action.id: set(action.keys) for action in other_preset}
    for one, other in combinations(actions, 2):
        if set(one.keys) & set(other.keys) and meet(one, other):
            # The same two share a key in the other preset: `check_action` offers one of them.
            assert there[one.id] & there[other.id], (one.id, other.id)


def test_the_default_moves_by_arrows_and_by_the_letters_of_other_tools() -> None:
    actions = {action.id: set(action.keys) for action in preset_actions("plain")}
    for area in ("list", "select"):
        ways = ("down", "up") if area == "list" else ("next", "previous")
        for way, keys in zip(
            (*ways, "first", "last"), ("down j", "up k", "home g", "end G"), strict=True
        ):
            assert actions[f"{area}.{way}"] == set(keys.split()), (area, way)


def test_a_file_binds_anew_by_id() -> None:
    keymap = keymap_of(
        {
            "preset": "plain",
            "keys": {"view.freeze": ["space", "^x"], "run.abort": [], "app.help": "?"},
        },
        "keys.toml",
    )
    assert keymap.problems == ()
    assert keys(keymap, "view.freeze") == ("space", "ctrl+x")
    assert keys(keymap, "run.abort") == ()
    assert keys(keymap, "app.help") == ("question_mark",)
    assert keys(keymap, "select.next") == ("down", "j")


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"keys": {"run.puase": "p"}}, "no action 'run.puase'; did you mean 'run.pause'."),
        ({"keys": {"run.pause": "pp"}}, "'pp', for run.pause, is not a key."),
        ({"keys": {"run.pause": 7}}, "run.pause must be a key or a list of keys."),
        (
            {"keys": {"view.kpi": "K"}},
            "'K' would mean both run.skip and view.kpi; run.skip has it.",
        ),
        (
            {"keys": {"view.kpi": "q"}},
            "'q' would mean both app.quit and view.kpi; app.quit has it.",
        ),
        ({"keys": {"app.theme": "y"}}, "would mean both view.kpi and app.theme; view.kpi has it."),
        ({"preset": "emacs"}, "there is no preset 'emacs'; use plain or vim."),
        ({"colour": 1}, "there is no setting 'colour'; use preset and [keys]."),
        ({"keys": 3}, "keys must be a table"),
    ],
)
def test_what_cannot_be_used_is_a_sentence_and_the_rest_is_in_force(
    given: dict[str, object], sentence: str
) -> None:
    keymap = keymap_of(given, "keys.toml")
    assert len(keymap.problems) == 1
    assert keymap.problems[0].startswith("keys.toml: ")
    assert sentence in keymap.problems[0]
    assert [a.keys for a in keymap.actions] == [a.keys for a in ACTIONS]


def test_actions_are_known_by_what_they_were_called_before() -> None:
    former = {"go.grid": "f11", "wheel.ask": "ctrl+w", "grid.edit": "f12"}
    keymap = keymap_of({"keys": former}, "keys.toml")
    assert keys(keymap, "go.campaign") == ("f11",)
    assert keys(keymap, "control.ask") == ("ctrl+w",)
    assert keys(keymap, "campaign.edit") == ("f12",)
    assert keymap.problems == ()


def test_keys_of_screens_that_never_meet_may_be_the_same() -> None:
    keymap = keymap_of({"keys": {"view.zoom": "e", "session.rename": "z"}}, "keys.toml")
    assert keymap.problems == ()


def test_two_that_are_swapped_do_not_clash() -> None:
    keymap = keymap_of({"keys": {"view.kpi": "z", "view.zoom": "y"}}, "keys.toml")
    assert keymap.problems == ()
    assert (keys(keymap, "view.kpi"), keys(keymap, "view.zoom")) == (("z",), ("y",))


@pytest.mark.parametrize("content", [b"preset = ", b"\xff\xfe", b"[keys]\n\x00"])
def test_a_file_that_cannot_be_read_is_a_sentence(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "keys.toml"
    assert load(path) == Keymap(ACTIONS)
    path.write_bytes(content)
    keymap = load(path)
    assert keymap.actions == ACTIONS
    assert keymap.problems[0].startswith("keys.toml cannot be read: ")


async def test_keys_of_the_file_work_and_are_named_everywhere(tmp_path: Path) -> None:
    path = tmp_path / "keys.toml"
    path.write_text('[keys]\n"view.freeze" = "space"\n"go.events" = "f12"\n"run.pauze" = "x"\n')
    async with opened(FakeClient(), (160, 50), files=Files(keys=path)) as pilot:
        app = pilot.app
        assert "space Freeze" in screen_text(app)
        assert "f12 Events" in screen_text(app)
        assert toasts(app) == [
            "keys.toml: there is no action 'run.pauze'; did you mean 'run.pause'."
        ]
        await pilot.press("f", "9")
        assert app.opened.frozen is None
        assert app.screen.NAME == "live"
        await pilot.press("space", "f12")
        assert app.opened.frozen is not None
        assert app.screen.NAME == "events"
        await pilot.press("f")  # view.unfreeze shared the old key, and keeps it
        assert app.opened.frozen is None


def test_the_page_of_keys_is_current() -> None:
    script = REPOSITORY / "scripts" / "keys_page.py"
    done = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


async def test_a_page_key_in_a_palette_that_finds_nothing_is_no_error() -> None:
    async with opened(FakeClient()) as pilot:
        await pilot.press("ctrl+p", *"qqqq", "pageup", "pagedown", "escape", "escape")
        assert pilot.app.is_running


async def test_commands_that_are_found_after_the_palette_was_closed_are_no_error() -> None:
    async with opened(FakeClient()) as pilot:
        await pilot.press("ctrl+p")
        palette = pilot.app.screen
        assert isinstance(palette, ActionPalette)
        commands = palette.query_one(CommandList)
        await palette.query("*").remove()
        palette._refresh_command_list(commands, [], False)
        await pilot.press("escape")
        assert pilot.app.is_running


def test_a_key_of_the_plain_preset_means_one_thing_on_all_screens() -> None:
    having: dict[str, set[str]] = {}
    for action in preset_actions("plain"):
        for key in action.keys:
            having.setdefault(key, set()).add(action.id)
    shared = {key: ids for key, ids in having.items() if len(ids) > 1}
    assert shared == {key: set(ids) for key, ids in SHARED.items()}
    assert set(MEANINGS) == set(SHARED), "what they have in common is said"
