"""The chain builder by keys, on a real engine: what is built stands in the draft's file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from drafting import drafting, settled
from fake_link import screen_text, toasts, until
from snapshots import check
from textual.pilot import Pilot

from workbench.domain.errors import EngineError
from workbench.domain.messages import Request
from workbench.link.local import LocalClient
from workbench.tui import editor
from workbench.tui.screens.chain.choosing import PaletteScreen
from workbench.tui.screens.dialogs import ChoiceScreen, ConfirmScreen, NameScreen

SIZES = [(80, 24), (160, 50)]
ALL = [*((size, "dark") for size in SIZES),
       pytest.param((60, 18), "dark", marks=pytest.mark.long),
       pytest.param((80, 24), "mono", marks=pytest.mark.long)]  # fmt: skip


async def add(pilot: Pilot[Any], name: str, key: str = "a") -> None:
    """Take a function from the palette."""
    await pilot.press(key)
    await until(pilot, lambda: isinstance(pilot.app.screen, PaletteScreen), "the palette")
    await pilot.press(*name, "enter")
    await settled(pilot)


async def name_it(pilot: Pilot[Any], text: str) -> None:
    """Answer a dialog that asks for a line of text."""
    await until(pilot, lambda: isinstance(pilot.app.screen, NameScreen), "the question")
    field = pilot.app.screen.query_one("#name")
    field.value = ""
    await pilot.press(*text, "enter")
    await settled(pilot)


def target(pilot: Pilot[Any], index: int = 0) -> dict[str, Any]:
    return pilot.app.draft.targets[index]


async def pair(pilot: Pilot[Any]) -> None:
    await add(pilot, "tinyproxy")
    await add(pilot, "haproxy")


async def test_the_key_that_filters_other_lists_is_no_text_of_the_palette(tmp_path: Path) -> None:
    async with drafting(tmp_path) as pilot:
        await pilot.press("a")
        await until(pilot, lambda: isinstance(pilot.app.screen, PaletteScreen), "the palette")
        line = pilot.app.screen.query_one("#words")
        await pilot.press("slash", *"tiny", "slash")
        assert line.value == "tiny/", "it is text once there is some"


async def test_a_chain_is_built_by_keys_and_kept_in_its_file(tmp_path: Path) -> None:
    async with drafting(tmp_path) as pilot:
        assert "Press n to start one" in screen_text(pilot.app)
        await pair(pilot)
        assert target(pilot) == {"name": "tinyproxy-haproxy", "series": ["tinyproxy", "haproxy"]}
        text = await settled(pilot)
        assert "│ tinyproxy │ ─▶ │ haproxy │" in text
        assert "can be run" in text
        assert "name: tinyproxy-haproxy" in text
        assert pilot.app.draft.campaign is not None
    file = tmp_path / ".workbench" / "drafts" / "untitled.yaml"
    assert "series: [tinyproxy, haproxy]" in file.read_text()


async def test_parts_are_moved_replicated_and_removed(tmp_path: Path) -> None:
    async with drafting(tmp_path) as pilot:
        await pair(pilot)
        await pilot.press("shift+left")
        assert target(pilot)["series"] == ["haproxy", "tinyproxy"]
        assert target(pilot)["name"] == "haproxy-tinyproxy"
        await pilot.press("right", "plus")
        await settled(pilot)
        both = {"parallel": ["tinyproxy", {"vnf": "tinyproxy", "name": "tinyproxy-2"}]}
        assert target(pilot)["series"] == ["haproxy", both]
        assert "─ 50 % ─▶ │ tinyproxy-2 │" in screen_text(pilot.app)
        await pilot.press("d")
        await settled(pilot)
        assert target(pilot)["series"] == ["haproxy", "tinyproxy"]
        await pilot.press("d", "d")
        await settled(pilot)
        assert pilot.app.draft.targets == []
        assert "Press a to choose the first function" in screen_text(pilot.app)


async def test_every_edit_is_taken_back_by_one_key(tmp_path: Path) -> None:
    async with drafting(tmp_path) as pilot:
        await pair(pilot)
        await add(pilot, "squid", "b")
        await pilot.press("D")
        await settled(pilot)
        assert pilot.app.draft.targets == []
        for expected in (
            {"series": ["tinyproxy", {"parallel": ["haproxy", "squid"]}]},
            {"series": ["tinyproxy", "haproxy"]},
        ):
            await pilot.press("u")
            await settled(pilot)
            assert target(pilot).items() >= expected.items()
        await pilot.press("u")
        await settled(pilot)
        assert target(pilot) == {"vnf": "tinyproxy"}


async def test_a_group_is_chosen_and_gets_a_branch_beside_it(tmp_path: Path) -> None:
    async with drafting(tmp_path) as pilot:
        await pair(pilot)
        await pilot.press("space")
        assert "2 parts in series" in await settled(pilot)
        await add(pilot, "squid", "b")
        assert target(pilot)["parallel"] == [{"series": ["tinyproxy", "haproxy"]}, "squid"]


async def test_shares_of_branches_stay_whole(tmp_path: Path) -> None:
    async with drafting(tmp_path) as pilot:
        await add(pilot, "haproxy")
        await pilot.press("plus", "enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, ChoiceScreen), "the fields")
        await pilot.press("j", "enter")
        await name_it(pilot, "30%")
        assert [part["share"] for part in target(pilot)["parallel"]] == ["70%", "30%"]
        assert "can be run" in screen_text(pilot.app)


async def test_a_share_or_name_that_makes_no_sense_is_said_in_its_dialog(tmp_path: Path) -> None:
    async def refused(text: str, said: str) -> None:
        dialog = pilot.app.screen
        assert isinstance(dialog, NameScreen)
        dialog.query_one("#name").value = text
        await pilot.press("enter")
        await until(pilot, lambda: said in " ".join(screen_text(pilot.app).split()), said)
        assert pilot.app.screen is dialog, "it stays, with what was typed"
        assert dialog.query_one("#name").value == text
        await until(pilot, lambda: pilot.app.draft.settled, "the engine's word")
        assert target(pilot) == before, "and nothing of it is kept"

    async with drafting(tmp_path) as pilot:
        await add(pilot, "haproxy")
        await pilot.press("plus")
        await settled(pilot)
        before, undos = dict(target(pilot)), len(pilot.app.undos._done)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, ChoiceScreen), "the fields")
        await pilot.press("j", "enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, NameScreen), "the question")
        for text in ("many", "150%", "30", "-1%", "0"):
            await refused(text, "! The share of the branch is ")
        assert len(pilot.app.undos._done) == undos, "nor is it offered to be taken back"
        await name_it(pilot, "0.25")
        assert [float(part["share"]) for part in target(pilot)["parallel"]] == [0.75, 0.25]
        assert not pilot.app.draft.mistakes
        before = dict(target(pilot))
        await pilot.press("enter", "enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, NameScreen), "the question")
        await refused("no name!", "! The name of the function is 'no name!'")
        await refused("haproxy", "is the second function")
        await name_it(pilot, "second")
        assert target(pilot)["parallel"][1]["name"] == "second"


async def test_mistakes_stand_where_they_are(tmp_path: Path) -> None:
    async with drafting(tmp_path) as pilot:
        await pair(pilot)
        await pilot.press("f7")
        text = await settled(pilot)
        assert "can be run" in text
        assert "haproxy (copy)" in text
        await pilot.press("plus")
        text = await settled(pilot)
        assert "2 mistakes" in text
        lines = text.splitlines()
        wrong = next(i for i, line in enumerate(lines) if "placement: passive" in line)
        assert "! is 'haproxy', a passive function" in lines[wrong + 1]
        assert pilot.app.draft.campaign is None
        await pilot.press("d", "f7")
        assert "can be run" in await settled(pilot)


async def test_a_policy_gives_chains_that_are_pruned_by_hand(tmp_path: Path) -> None:
    async with drafting(tmp_path) as pilot:
        await pilot.press("f3")
        await until(pilot, lambda: "A & B" in screen_text(pilot.app), "the prompt")
        await pilot.press(*"tinyproxy & haproxi", "enter")
        await until(pilot, lambda: "column 13" in screen_text(pilot.app), "the mistake")
        await until(pilot, lambda: "did you mean" in screen_text(pilot.app), "what was meant")
        await pilot.press("backspace", "y", "enter")
        await until(pilot, lambda: "2 chains obey it" in screen_text(pilot.app), "the chains")
        await pilot.press("space")
        assert "[ ] tinyproxy → haproxy" in screen_text(pilot.app)
        await pilot.press("enter")
        await settled(pilot)
        assert [t["series"] for t in pilot.app.draft.targets] == [["haproxy", "tinyproxy"]]
        await pilot.press("f3")
        await until(pilot, lambda: "A & B" in screen_text(pilot.app), "the prompt")
        await pilot.press(*"tinyproxy & haproxy", "enter")
        await until(pilot, lambda: "(is a target)" in screen_text(pilot.app), "what is there")
        await pilot.press("enter")
        await settled(pilot)
        assert len(pilot.app.draft.targets) == 2, "what is a target is not taken twice"
        await pilot.press("u")
        await settled(pilot)
        assert len(pilot.app.draft.targets) == 1


async def test_resources_go_along_with_their_functions(tmp_path: Path) -> None:
    async with drafting(tmp_path) as pilot:
        await pilot.press("n")
        await until(pilot, lambda: isinstance(pilot.app.screen, ChoiceScreen), "the templates")
        await pilot.press(*"jjjjjj", "enter")
        await until(pilot, lambda: pilot.app.draft.is_open, "the draft")
        await settled(pilot)
        draft = pilot.app.draft
        assert draft.name == "demo"
        assert target(pilot)["vnf"] == "haproxy"
        await add(pilot, "squid")
        assert target(pilot)["series"] == ["haproxy", "squid"]
        assert [p["vnf"] for p in target(pilot)["resource_parameters"]] == ["haproxy"]
        await pilot.press("left", "d")
        await settled(pilot)
        assert target(pilot)["vnf"] == "squid"
        assert "resource_parameters" not in target(pilot)
        assert not draft.mistakes


async def test_a_chain_of_the_palette_can_be_unpacked(tmp_path: Path) -> None:
    async with drafting(tmp_path) as pilot:
        await add(pilot, "haproxy-tiny")
        assert target(pilot) == {"chain": "haproxy-tinyproxy"}
        await pilot.press("f8")
        await settled(pilot)
        assert target(pilot) == {"name": "haproxy-tinyproxy", "series": ["haproxy", "tinyproxy"]}


async def save_chain(pilot: Pilot[Any], name: str) -> None:
    await pilot.press("ctrl+s")
    await until(pilot, lambda: isinstance(pilot.app.screen, ChoiceScreen), "the kinds")
    await pilot.press("j", "enter")
    await name_it(pilot, name)


async def test_saved_as_a_chain_and_asked_before_it_is_replaced(tmp_path: Path) -> None:
    saved = tmp_path / "templates" / "chains" / "front.yaml"
    async with drafting(tmp_path) as pilot:
        await pair(pilot)
        await save_chain(pilot, "front")
        await until(pilot, lambda: toasts(pilot.app)[-1:] == ["Saved the chain front."], "told")
        await until(pilot, lambda: pilot.app.draft.palette.chain("front"), "in the palette")
        assert saved.read_text() == "kind: chain\nseries: [tinyproxy, haproxy]\n"
        await pilot.press("d")
        await settled(pilot)
        await save_chain(pilot, "front")
        await until(pilot, lambda: isinstance(pilot.app.screen, ConfirmScreen), "the question")
        await pilot.press("y")
        await until(pilot, lambda: "[tinyproxy]" in saved.read_text(), "it is replaced")


async def test_the_text_goes_through_an_editor_and_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = iter(["targets: [", None])

    def edited(app: object, text: str, name: str) -> str:
        return next(texts) or text

    monkeypatch.setattr(editor, "edited", edited)
    async with drafting(tmp_path) as pilot:
        await pair(pilot)
        before = pilot.app.draft.text
        await pilot.press("e")
        text = await settled(pilot)
        assert "is not YAML" in text
        assert not pilot.app.draft.readable
        await pilot.press("a")
        assert not pilot.app.screen.is_modal, "what cannot be read is not built on"
        await pilot.press("u")
        assert "can be run" in await settled(pilot)
        assert pilot.app.draft.text == before
        await pilot.press("e")
        await until(pilot, lambda: "Nothing was changed." in toasts(pilot.app), "the toast")


async def test_the_editor_gets_what_the_engine_has_not_seen_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was changed a moment before was written over by the text of before."""
    seen: list[str] = []

    def edited(app: object, text: str, name: str) -> str:
        seen.append(text)
        return text.replace("a moment before", "a moment later")

    monkeypatch.setattr(editor, "edited", edited)
    async with drafting(tmp_path) as pilot:
        await pair(pilot)
        draft = pilot.app.draft
        assert draft.put("a moment before", "summary", what="Setting the summary")
        assert not draft.settled
        pilot.app.screen.action_edit_text()
        assert seen == [], "the text is not there yet"
        await until(pilot, lambda: seen, "the editor")
        assert "summary: a moment before" in seen[0]
        await settled(pilot)
        assert draft.at("summary") == "a moment later"
        assert len(draft.targets) == 1


async def test_a_discarded_draft_comes_back(tmp_path: Path) -> None:
    async with drafting(tmp_path) as pilot:
        await pair(pilot)
        await pilot.press("Z")
        await until(pilot, lambda: not pilot.app.draft.is_open, "nothing is open")
        assert not list((tmp_path / ".workbench" / "drafts").iterdir())
        await pilot.press("u")
        await until(pilot, lambda: pilot.app.draft.is_open, "it is back")
        assert "can be run" in await settled(pilot)


async def test_a_killed_screen_loses_nothing(tmp_path: Path) -> None:
    async with drafting(tmp_path) as pilot:
        await pair(pilot)
    async with drafting(tmp_path) as pilot:
        await until(pilot, lambda: pilot.app.draft.is_open, "the draft")
        assert target(pilot)["series"] == ["tinyproxy", "haproxy"]


class Faulty:
    """A link that fails while `down`, around one that works."""

    def __init__(self, client: LocalClient) -> None:
        self.client, self.down = client, False
        self.role, self.person, self.remote = client.role, client.person, client.remote
        self.share = client.share

    async def ask(self, request: Request) -> Any:
        if self.down:
            raise EngineError("the engine is gone")
        return await self.client.ask(request)

    async def close(self) -> None:
        """It is not ours."""


async def test_the_last_draft_opens_again(tmp_path: Path) -> None:
    async with drafting(tmp_path) as pilot:
        await pilot.app.draft.start("first")
        await pilot.app.draft.start("latest")
        await pilot.press("q")
    async with drafting(tmp_path) as pilot:
        await until(pilot, lambda: pilot.app.draft.is_open, "the draft")
        assert pilot.app.draft.name == "latest"
        await pilot.press("Z")  # whoever discards it does not meet the one before unasked
        await until(pilot, lambda: not pilot.app.draft.is_open, "no draft")
        await pilot.press("3", "2")
        assert "No draft is open" in await settled(pilot)
        assert "go on with first" in screen_text(pilot.app)


async def test_what_was_built_while_the_engine_was_gone_is_sent_later(tmp_path: Path) -> None:
    links: list[Faulty] = []

    def faulty(client: LocalClient) -> Faulty:
        links.append(Faulty(client))
        return links[0]

    async with drafting(tmp_path, client=faulty) as pilot:
        await pair(pilot)
        (link,) = links
        link.down = True
        await pilot.press("d")
        await until(pilot, lambda: "to reconnect" in screen_text(pilot.app), "the banner")
        assert target(pilot) == {"vnf": "tinyproxy"}
        link.down = False
        await pilot.press("r")
        assert "can be run" in await settled(pilot)
        assert "vnf: tinyproxy" in pilot.app.draft.text


async def test_observers_and_those_over_ssh(tmp_path: Path) -> None:
    def observer(client: LocalClient) -> Faulty:
        link = Faulty(client)
        link.role = "observer"
        return link

    def remote(client: LocalClient) -> Faulty:
        link = Faulty(client)
        link.remote = True
        return link

    async with drafting(tmp_path, client=remote) as pilot:
        await pair(pilot)
        offered = {action.id for action in pilot.app.screen.offered()}
        assert "draft.editor" not in offered
        assert "chain.add" in offered
    async with drafting(tmp_path, client=observer) as pilot:
        await until(pilot, lambda: pilot.app.draft.is_open, "the draft")
        await pilot.press("a", "n")
        offered = {action.id for action in pilot.app.screen.offered()}
        assert not offered & {"chain.add", "chain.remove", "draft.save", "draft.run"}


async def test_the_mouse_chooses_parts_and_targets(tmp_path: Path) -> None:
    async with drafting(tmp_path) as pilot:
        await pair(pilot)
        await add(pilot, "squid", "A")
        await settled(pilot)
        assert pilot.app.draft.target == 1
        await pilot.click("#targets", offset=(3, 1))
        await pilot.pause()
        assert pilot.app.draft.target == 0
        lines = screen_text(pilot.app).splitlines()
        row = next(y for y, line in enumerate(lines) if "│ haproxy │" in line)
        await pilot.click(offset=(lines[row].index("haproxy", 30), row))
        await pilot.pause()
        assert pilot.app.screen.path == (1,)


async def test_hostile_names_are_drawn_plain(tmp_path: Path) -> None:
    async with drafting(tmp_path) as pilot:
        await pair(pilot)
        for name in ("[bold]x[/]", "\x1b]0;evil\x07", "a" * 300):
            wrong = [{"series": ["haproxy", {"vnf": name, "share": [1], "name": name}]}]
            pilot.app.draft.put(wrong, "targets", what="Breaking")
            text = await settled(pilot)
            assert "\x1b" not in text
            assert "mistake" in text


async def test_what_is_no_chain_is_shown_as_text(tmp_path: Path) -> None:
    wrong: list[Any] = [7, [7], [{}], [{"series": 3}], [{"series": [[]]}], [{"vnf": 1, "chain": 2}]]
    async with drafting(tmp_path) as pilot:
        await pair(pilot)
        for targets in wrong:
            pilot.app.draft.put(targets, "targets", what="Breaking")
            assert "mistake" in await settled(pilot)
            await pilot.press("d", "plus", "shift+left", "space", "f7", "enter")
            await settled(pilot)
            assert pilot.app.draft.at("targets") == targets


# --------------------------------------------------------------------------- as it was looked at


@pytest.mark.parametrize(("size", "theme"), ALL)
async def test_looks(size: tuple[int, int], theme: str, tmp_path: Path) -> None:
    async with drafting(tmp_path / "work", size, theme=theme) as pilot:
        await check(pilot, "chain-empty", tmp_path)
        await pair(pilot)
        await pilot.press("left")
        await check(pilot, "chain-series", tmp_path)
        await pilot.press("right", "plus")
        await add(pilot, "nginx")
        await settled(pilot)
        await check(pilot, "chain-branches", tmp_path)
        await pilot.press("f7")
        await settled(pilot)
        await check(pilot, "chain-mistake", tmp_path)
        if theme != "dark":
            return
        await pilot.press("f7")
        await settled(pilot)
        await pilot.press("a")
        await until(pilot, lambda: "choose" in screen_text(pilot.app), "the palette")
        await check(pilot, "chain-palette", tmp_path)
        await pilot.press("escape", "f3")
        await until(pilot, lambda: "A & B" in screen_text(pilot.app), "the prompt")
        await pilot.press(*"squid > (tinyproxy & haproxy)", "enter")
        await until(pilot, lambda: "chains obey it" in screen_text(pilot.app), "the chains")
        await pilot.press("j", "space")
        await check(pilot, "chain-policy", tmp_path)


@pytest.mark.parametrize("size", SIZES)
async def test_looks_without_an_engine(size: tuple[int, int], tmp_path: Path) -> None:
    def gone(client: LocalClient) -> Faulty:
        link = Faulty(client)
        link.down = True
        return link

    async with drafting(tmp_path / "work", size, client=gone) as pilot:
        await until(pilot, lambda: "No engine answers" in screen_text(pilot.app), "the sentence")
        await check(pilot, "chain-no-engine", tmp_path)
