"""Styles that were looked up once are remembered: half of what Textual spends goes into that.

Textual matches every rule against every widget, and against each part of one, whenever a screen is
mounted, comes to the top or changes a class. What a widget looks like depends on nothing but its
way down from the application: types, names, classes and states of it and of all above it. The
same way gives the same styles, in all applications of a process that have the same rules.
"""

from __future__ import annotations

from collections.abc import Set
from itertools import count
from typing import Any
from weakref import WeakKeyDictionary, ref

from textual.app import App
from textual.cache import LRUCache
from textual.css.model import RuleSet
from textual.css.styles import RenderStyles, RulesMap
from textual.css.stylesheet import Stylesheet
from textual.dom import DOMNode
from textual.widget import Widget

MOST = 20_000
"""Ways that are remembered, of which a session of all screens has some hundred."""
MOST_SHEETS = 128
"""Sets of rules: each kind of widget adds some when the first of it is mounted, a dozen sets in a
row for an application, and as many for each theme."""
MOST_PARSED = 512
"""Sources of a theme; Textual's own limit is below what the screens have, and finds none again."""

_parsed: LRUCache[tuple[tuple[str, str], ...], LRUCache[tuple[Any, ...], list[RuleSet]]]
_parsed = LRUCache(MOST_SHEETS)
_numbers = count()
"""Of ways; none is given out twice, whatever the rules."""
_looked_up: LRUCache[tuple[RuleSet, ...], _LookedUp] = LRUCache(MOST_SHEETS)


class _LookedUp:
    """Of one set of rules: ways as numbers, and what was found for each."""

    def __init__(self) -> None:
        self.ways: dict[tuple[object, ...], int] = {}
        self.found: dict[int, tuple[tuple[bool, ...], RulesMap | None]] = {}

    def way(self, node: DOMNode, walked: dict[Any, int]) -> int:
        """A number that all nodes share which every rule meets alike.

        `walked` has those of nodes that were asked for just now.
        """
        if (number := walked.get(node)) is None:
            number = walked[node] = self._way(node, walked)
        return number

    def _way(self, node: DOMNode, walked: dict[Any, int]) -> int:
        parent = node._parent
        above = self.way(parent, walked) if isinstance(parent, DOMNode) else -1
        key = (above, type(node), node._id, frozenset(node._classes), *_states(node))
        number = self.ways.get(key)
        if number is None:
            if len(self.ways) >= MOST:
                self.ways.clear()
                self.found.clear()
            number = self.ways[key] = next(_numbers)
        return number


class _Parts(dict[str, RenderStyles]):
    """Looks of a widget's parts, each looked up when it is asked for: most parts never are."""

    def __init__(self, sheet: RememberingStylesheet, node: DOMNode, names: Set[str]) -> None:
        super().__init__()
        self._sheet, self._node, self._names = sheet, ref(node), names

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __missing__(self, name: str) -> RenderStyles:
        node = self._node()
        if node is None or name not in self._names:
            raise KeyError(name)
        styles = self[name] = self._sheet.part(node, name)
        return styles


class RememberingStylesheet(Stylesheet):
    """Textual's, but that it looks nothing up twice."""

    def __init__(self, *, variables: dict[str, str]) -> None:
        super().__init__(variables=variables)
        self._share_parsed()
        self._looked_up_of: list[RuleSet] | None = None
        self._looked_up = _LookedUp()
        self._parts: WeakKeyDictionary[DOMNode, int] = WeakKeyDictionary()
        """The way that each widget had when its parts were looked up, if they depend on that."""
        self._depends = True
        self._walked: dict[Any, int] | None = None
        """Ways of the nodes that are updated together: their states stay while that lasts."""

    def set_variables(self, variables: dict[str, str]) -> None:
        self._parse_cache = LRUCache(1)  # what others share is not cleared
        super().set_variables(variables)
        self._share_parsed()

    def _share_parsed(self) -> None:
        key = tuple(sorted(self._variables.items()))
        shared = _parsed.get(key)
        if shared is None:
            shared = _parsed[key] = LRUCache(MOST_PARSED)
        self._parse_cache = shared

    def reparse(self) -> None:
        self.parse()  # it replaces the rules once all are parsed, and not before

    def apply(
        self,
        node: DOMNode,
        *,
        animate: bool = False,
        cache: dict[Any, Any] | None = None,
    ) -> None:
        before = self._walked
        if cache is not None:  # one for all nodes that are updated together
            self._walked = cache
        elif before is None:
            self._walked = {}
        try:
            self._apply(node, animate=animate)
        finally:
            self._walked = before

    def _apply(self, node: DOMNode, *, animate: bool) -> None:
        looked_up = self._known()
        assert self._walked is not None
        way = looked_up.way(node, self._walked)
        known = looked_up.found.get(way)
        if known is not None:
            states, rules = known
            for name, state in zip(_STATES_OF_RULES, states, strict=True):
                setattr(node, name, state)
            if rules is not None:
                self.replace_rules(node, rules, animate=animate)
            self._process_component_classes(node)
            return
        found: dict[Any, RulesMap] = {}
        super().apply(node, animate=animate, cache=found)
        states = tuple(getattr(node, name) for name in _STATES_OF_RULES)
        if any(states[1:]):
            self._depends = False
        else:
            looked_up.found[way] = (states, next(iter(found.values()), None))

    def _process_component_classes(self, node: DOMNode) -> None:
        """Parts have no states of their own: they are as they were where their widget is."""
        names = node._get_component_classes()
        if not names:
            return
        way = self._known().way(node, {} if self._walked is None else self._walked)
        if self._parts.get(node) == way:
            return
        self._parts[node] = way
        before, now = node._component_styles, _Parts(self, node, names)
        node._component_styles = now
        if any(now[name] != styles for name, styles in before.items() if name in now):
            node.refresh()

    def part(self, node: DOMNode, name: str) -> RenderStyles:
        """How a part of a widget looks."""
        virtual = DOMNode(classes=name)
        virtual._attach(node)
        self._depends = True
        self.apply(virtual)
        if not self._depends:
            self._parts.pop(node, None)
        return virtual.styles

    def _known(self) -> _LookedUp:
        rules = self.rules
        if rules is not self._looked_up_of:
            known = _looked_up.get(key := tuple(rules))
            if known is None:
                known = _looked_up[key] = _LookedUp()
            self._looked_up_of, self._looked_up = rules, known
        return self._looked_up


_STATES_OF_RULES = ("_has_hover_style", "_has_focus_within", "_has_order_style", "_has_odd_or_even")
"""What Textual keeps of the rules that may concern a node; all but the first depend on more than
its way, and such nodes are looked up each time."""


def _states(node: DOMNode) -> tuple[object, ...]:
    """All that a pseudo-class may ask of a node itself."""
    if isinstance(node, Widget):
        return (node.mouse_hover, node.has_focus, node.disabled, node.allow_focus())
    if isinstance(node, App):
        dark = node.current_theme.dark
        return (node.app_focus, dark, node.is_inline, node.native_ansi_color, node.no_color)
    return ()
