"""Write docs/keys.md from the registry of actions; with `--check`, say whether it is current."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from workbench.tui.commands.action import Action, key_name
from workbench.tui.commands.actions import ACTIONS, PLACE_TITLES
from workbench.tui.commands.catalogue import SCREENS
from workbench.tui.commands.keymap import preset_actions
from workbench.tui.commands.meanings import MEANINGS

PAGE = Path(__file__).parents[1] / "docs" / "keys.md"

HEAD = """# Keys

<!-- Written by scripts/keys_page.py from workbench/tui/commands/actions.py. Do not edit. -->

`?` on any screen lists the keys in force there, `:` or `^p` searches everything that can be done
now. Every key can be bound anew in `keys.toml`, by the id of its action; `i` on any screen says
where that file is (on Linux `~/.config/vnf-workbench/keys.toml`).

```toml
preset = "vim"                      # or "plain", which is the default

[keys]
"view.freeze" = ["f", "space"]      # one key, or several
"run.abort" = []                    # no key; the palette still has it
```

Keys are written as they are typed (`f`, `F`, `?`), or by name: `space`, `enter`, `escape`, `tab`,
`up`, `pagedown`, `f5`, `ctrl+f` or `^f`, `shift+up`. An id that does not exist, a key that does not
exist and a key that would mean two things on one screen are named in a sentence when the screen
opens; the rest of the file is in force. In dialogs `enter` and `escape` always do what they say.
"""


def table(place: str) -> str:
    """The actions of a place: id, keys of both presets, what it does."""
    vim = {action.id: action for action in preset_actions("vim")}
    lines = ["| id | plain | vim | does |", "|---|---|---|---|"]
    for action in ACTIONS:
        if action.place == place:
            keys = f"{_keys(action)} | {_keys(vim[action.id])}"
            lines.append(f"| `{action.id}` | {keys} | {action.help} |")
    return "\n".join(lines)


def _keys(action: Action) -> str:
    return " ".join(f"`{key}`" for key in action.key_text.split())


def page() -> str:
    titles = {screen.name: f"Screen {screen.title}" for screen in SCREENS}
    titles = {p: PLACE_TITLES[p] for p in ("anywhere", "session", "draft", "list")} | titles
    parts = [f"## {title}\n\n{table(place)}\n" for place, title in titles.items()]
    return "\n".join((HEAD, meanings(), *parts))


def meanings() -> str:
    """What each key means that several screens have."""
    lines = ["## What a key means", ""]
    lines += ["A key means one thing on all screens that have it; `vim` has the keys of 0.1,"]
    lines += ["where some mean several. What throws away lab time or a"]
    lines += ["decision asks first; all else that takes something away is brought back by `u`.", ""]
    lines += ["| key | means |", "|---|---|"]
    lines += [f"| `{key_name(key)}` | {words} |" for key, words in MEANINGS.items()]
    return "\n".join((*lines, ""))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    if parser.parse_args().check:
        if not PAGE.exists() or PAGE.read_text(encoding="utf-8") != page():
            sys.exit(f"{PAGE} is not current: run python scripts/keys_page.py")
        return
    PAGE.write_text(page(), encoding="utf-8")
    print(f"{PAGE}: {len(ACTIONS)} actions")


if __name__ == "__main__":
    main()
