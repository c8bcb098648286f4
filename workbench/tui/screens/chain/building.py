"""Building the chain of a draft's target: every edit of the chain builder, and what it asks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from workbench.domain.counts import counted
from workbench.domain.drafts import Palette
from workbench.domain.errors import UsageError
from workbench.domain.topology import Target
from workbench.tui.draft import Document, spelled
from workbench.tui.screens.base import HasList
from workbench.tui.screens.chain import chain_tree
from workbench.tui.screens.chain.chain_tree import Leaf, Path, Tree
from workbench.tui.screens.chain.choosing import Chosen, PaletteScreen, PolicyScreen
from workbench.tui.screens.dialogs import ChoiceScreen, NameScreen
from workbench.tui.screens.draft import DraftScreen, titles_of
from workbench.tui.text import plain

WORDS = {
    "instance": "name of the function",
    "share": "share of the branch",
    "name": "name of the target",
    "summary": "summary of the target",
}
"""What is asked for by a line of text, as dialogs call it."""


class BuildingScreen(DraftScreen, HasList):
    """Edits the target that is looked at; how it is drawn is for the screen itself."""

    def __init__(self) -> None:
        super().__init__()
        self.path: Path = ()
        """The part under the cursor."""

    # ------------------------------------------------------------------------- what is looked at

    @property
    def chain(self) -> Tree | None:
        """The target's composition; None where there is none, or it cannot be drawn."""
        return chain_tree.tree_of(self.draft.at("targets", self.draft.target))

    @property
    def part(self) -> Tree | None:
        tree = self.chain
        return chain_tree.at(tree, self.path) if tree is not None else None

    @property
    def unreadable(self) -> bool:
        """A target is there that no tree stands for."""
        return self.chain is None and bool(self.draft.targets)

    def look_at(self, path: Path) -> None:
        self.path = path
        self.draw()

    def ends(self) -> tuple[str, str]:
        draft = self.draft
        target = draft.at("targets", draft.target, default={})
        chain = draft.palette.chain(target.get("chain", "")) if draft.palette else None
        known = (chain.source, chain.sink) if chain else ("source", "sink")
        return str(target.get("source") or known[0]), str(target.get("sink") or known[1])

    def go_to_target(self, index: int) -> None:
        self.draft.target = index
        self.draw()

    # ------------------------------------------------------------------------- editing

    def action_add(self) -> None:
        if not self.draft.is_open:
            self.do_latest(partial(self._start_with, self.action_add))
            return
        self._choose("Add behind" if self.chain else "Add", self._added_behind)

    async def _start_with(self, then: Callable[[], None]) -> None:
        await self.draft.start()
        if self.app.screen is self:
            then()

    def action_add_beside(self) -> None:
        self._choose("Add in parallel", self._added_beside)

    def action_add_target(self) -> None:
        self._choose("Add as a target of its own", self._added_target)

    def _choose(self, question: str, then: Callable[[Leaf], None]) -> None:
        palette = self.draft.palette or Palette()

        def chosen(choice: Chosen | None) -> None:
            if choice is not None:
                then(Leaf(choice.name, is_chain=choice.kind == "chain"))

        self.app.push_screen(PaletteScreen(question, palette), chosen)

    def _added_behind(self, leaf: Leaf) -> None:
        self._build(f"Adding {leaf.template}", partial(self._placed, chain_tree.added_behind, leaf))

    def _added_beside(self, leaf: Leaf) -> None:
        self._build(f"Adding {leaf.template}", partial(self._placed, chain_tree.added_beside, leaf))

    def _placed(
        self, way: Callable[..., tuple[Tree, Path]], leaf: Leaf, tree: Tree | None
    ) -> tuple[Tree, Path]:
        return way(tree, self.path, chain_tree.fresh(leaf, tree, self.draft.palette))

    def _added_target(self, leaf: Leaf) -> None:
        taken = set(titles_of(self.draft))
        said = chain_tree.composition(leaf)
        if leaf.template in taken:
            said = {"name": chain_tree.unique(leaf.template, taken), **said}
        self._add_targets(f"Adding {leaf.template}", [said])

    def _add_targets(self, what: str, new: list[dict[str, Any]]) -> None:
        def change(document: Document) -> None:
            targets = document.get("targets")
            document["targets"] = [*(targets if isinstance(targets, list) else []), *new]

        first = len(self.draft.targets)
        if self.draft.edit(what, change):
            self.go_to_target(first)

    def action_add_policy(self) -> None:
        if not self.draft.is_open:
            self.do_latest(partial(self._start_with, self.action_add_policy))
            return

        def chosen(chains: tuple[Target, ...] | None) -> None:
            if chains:
                self._take_chains(chains)

        self.app.push_screen(PolicyScreen(titles_of(self.draft)), chosen)

    def _take_chains(self, chains: tuple[Target, ...]) -> None:
        taken = set(titles_of(self.draft))
        new = []
        for chain in chains:
            tree = chain_tree.tree_from(chain.graph)
            said: dict[str, Any] = {}
            name = chain_tree.unique(chain.name, taken)
            if not isinstance(tree, Leaf) or name != tree.template:
                said["name"] = name
            said |= chain_tree.composition(tree)
            ends = {"source": chain.source, "sink": chain.sink}
            said |= {role: end for role, end in ends.items() if end != role}
            taken.add(name)
            new.append(said)
        taking = counted(len(new), "chain")
        self._add_targets(f"Taking {taking}", new)
        undo = self.key("app.undo")
        what = "a target" if len(new) == 1 else "targets"
        self.workbench.say(f"Took {taking} as {what}. {undo} takes it back.")

    def action_part_earlier(self) -> None:
        self._build("Moving", lambda tree: _moved(tree, self.path, -1))

    def action_part_later(self) -> None:
        self._build("Moving", lambda tree: _moved(tree, self.path, 1))

    def action_replicate(self) -> None:
        part = self.part
        if isinstance(part, Leaf):
            again = Leaf(part.template, passive=part.passive)
            self._build(
                f"Replicating {part.title}", partial(self._placed, chain_tree.added_beside, again)
            )

    def action_passive(self) -> None:
        part = self.part
        if isinstance(part, Leaf):
            marked = replace(part, passive=not part.passive)
            what = f"Marking {part.title}"
            self._build(what, lambda tree: _replaced(tree, self.path, marked))

    def action_remove_part(self) -> None:
        tree, part = self.chain, self.part
        if tree is None or part is None:
            return
        left, path = chain_tree.removed(tree, self.path)
        title = part.title if isinstance(part, Leaf) else "the group"
        if left is None:
            self.action_remove_target()
            return
        self._build(f"Removing {title}", lambda _: (left, path))
        self.workbench.say(f"Removed {title}. {self.key('app.undo')} takes it back.")

    def action_unpack(self) -> None:
        """The chain's own functions in its place, to be edited."""
        part = self.part
        chain = (
            self.draft.palette.chain(part.template)
            if isinstance(part, Leaf) and self.draft.palette
            else None
        )
        if isinstance(part, Leaf) and chain is not None:
            whole = replace(chain_tree.tree_from(chain.graph), share=part.share)
            what = f"Unpacking {part.template}"
            self._build(what, lambda tree: _replaced(tree, self.path, whole))

    def _build(self, what: str, change: Callable[[Any], tuple[Tree, Path]]) -> None:
        """Give the target another composition, and look at a part of it."""
        draft = self.draft
        tree, index = self.chain, draft.target
        new, path = change(tree)
        taken = {title for i, title in enumerate(titles_of(draft)) if i != index}

        def edit(document: Document) -> None:
            targets = document.get("targets")
            if not isinstance(targets, list) or not targets:
                document["targets"] = [chain_tree.with_tree({}, new, draft.palette, taken)]
            else:
                targets[index] = chain_tree.with_tree(targets[index], new, draft.palette, taken)
            chain_tree.without_idle_managers(document, draft.palette)

        self.path = path
        draft.edit(what, edit)
        self.draw()

    def action_remove_target(self) -> None:
        draft = self.draft
        titles, index = titles_of(draft), draft.target

        def change(document: Document) -> None:
            del document["targets"][index]
            chain_tree.without_idle_managers(document, draft.palette)

        draft.target = max(0, min(index, len(titles) - 2))
        draft.edit(f"Removing {titles[index]}", change)
        undo = self.key("app.undo")
        self.workbench.say(f"Removed the target {titles[index]}. {undo} takes it back.")

    def action_copy_target(self) -> None:
        draft = self.draft
        titles, target = titles_of(draft), draft.targets[draft.target]
        if isinstance(target, dict):
            name = chain_tree.unique(titles[draft.target], set(titles))
            rest = {key: value for key, value in target.items() if key != "name"}
            self._add_targets(f"Copying {titles[draft.target]}", [{"name": name, **rest}])

    # ------------------------------------------------------------------------- details

    def action_details(self) -> None:
        """What has a name or a figure: asked for one after the other."""
        tree, part, draft = self.chain, self.part, self.draft
        if tree is None or part is None:
            return
        target = draft.target
        fields: list[tuple[str, str]] = []
        if isinstance(part, Leaf) and not part.is_chain:
            fields.append(("instance", f"name of this function   {part.title}"))
        if chain_tree.branch(tree, self.path):
            share = "equal" if part.share is None else chain_tree.share_text(part.share)
            fields.append(("share", f"share of this branch    {share}"))
        title = titles_of(draft)[target]
        source, sink = self.ends()
        fields += [
            ("name", f"name of the target      {title}"),
            ("summary", f"summary of the target   {draft.at('targets', target, 'summary') or '–'}"),
            ("source", f"source                  {source}"),
            ("sink", f"sink                    {sink}"),
        ]

        def chosen(field: str | None) -> None:
            if field in ("source", "sink"):
                self._choose_end(field)
            elif field is not None:
                self._ask_for(field)

        self.app.push_screen(ChoiceScreen("Change", fields), chosen)

    def _choose_end(self, role: str) -> None:
        palette = self.draft.palette or Palette()
        options = [
            (end.name, f"{end.name:<16} {end.summary}") for end in palette.ends if end.role == role
        ]

        def chosen(name: str | None) -> None:
            if name is not None:
                value = None if name == role else name
                self.draft.put(value, "targets", self.draft.target, role, what=f"Setting {role}")

        self.app.push_screen(ChoiceScreen(f"The {role}", options), chosen)

    def _ask_for(self, field: str) -> None:
        part, draft = self.part, self.draft
        assert part is not None
        now, note = str(draft.at("targets", draft.target, field, default="")), ""
        if field == "instance" and isinstance(part, Leaf):
            now = part.title
        elif field == "name":
            now = titles_of(draft)[draft.target]
        elif field == "share":
            now = "" if part.share is None else str(part.share)
            note = "Such as 30%; the shares of all branches sum to 100 %. Empty: all share alike."

        def named(text: str | None) -> None:
            if text == "":  # what is written was carried out
                self._set(field, text)

        dialog = NameScreen(
            f"The {WORDS[field]}",
            now,
            note,
            may_be_empty=field in ("share", "summary"),
            carry_out=partial(self._try, field),
        )
        self.app.push_screen(dialog, named)

    async def _try(self, field: str, text: str) -> None:
        """Set it, unless the engine finds it wrong: then all is as before. Raises `UsageError`."""
        draft, name, tree = self.draft, self.draft.name, self.chain
        known = {(mistake.field, mistake.message) for mistake in draft.own_mistakes}
        self._set(field, text)
        await draft.until_settled()
        new = [m for m in draft.own_mistakes if (m.field, m.message) not in known]
        if field in ("share", "instance") and tree is not None:
            key = "share" if field == "share" else "name"
            own = spelled((*chain_tree.field_of(tree, self.path, draft.target), key))
            # A target without a name of its own is called by those of its functions, too.
            new.sort(key=lambda mistake: mistake.field != own)
            # Shares that do not sum to one are changed one after the other.
            new = [mistake for mistake in new if mistake.field == own or field != "share"]
        if new and draft.name == name:
            await draft.refuse_latest()
            raise UsageError(f"The {WORDS[field]} {plain(new[0].message)}")

    def _set(self, field: str, text: str) -> None:
        part, draft = self.part, self.draft
        if field in ("name", "summary"):
            draft.put(text or None, "targets", draft.target, field, what=f"Setting the {field}")
        elif field == "instance" and isinstance(part, Leaf):
            renamed = replace(part, name="" if text == part.template else text)
            self._build("Renaming", lambda tree: _replaced(tree, self.path, renamed))
        elif field == "share" and part is not None:
            self._build("Sharing", lambda tree: (_shared(tree, self.path, text), self.path))


def _moved(tree: Tree, path: Path, by: int) -> tuple[Tree, Path]:
    return chain_tree.moved(tree, path, by)


def _replaced(tree: Tree, path: Path, part: Tree) -> tuple[Tree, Path]:
    return chain_tree.replaced(tree, path, part), path


def _shared(tree: Tree, path: Path, text: str) -> Tree:
    return chain_tree.shared(tree, path, text.strip())
