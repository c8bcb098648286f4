"""A YAML file as dicts, lists and scalars that know their lines and columns.

Only plain YAML is read: no tags, no merge keys, one document, bounded in size, depth and aliases.
Nothing is ever constructed but dict, list, str, int, float, bool and None.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.reader import ReaderError

from workbench.descriptors.units import shown
from workbench.domain.errors import DescriptorError, Mistake

LARGEST_FILE = 64 * 1024
"""Bytes; the longest descriptor that ships has 3 kB."""
DEEPEST = 40
MOST_NODES = 20_000
"""With aliases followed, so that a few lines cannot stand for billions of values."""

MOST_KEPT = 64
"""Files that are not parsed again; of those that are no longer than `LONGEST_KEPT` characters."""
LONGEST_KEPT = 4096

FieldPath = tuple[str | int, ...]

_INTEGER = re.compile(r"[+-]?(0|[1-9][0-9]*)")
_ZEROS_FIRST = re.compile(r"[+-]?0[0-9]+")
"""A mode or a code, and no number."""
_TAG = "tag:yaml.org,2002:"
_PLAIN_TAGS = {"str", "int", "float", "bool", "null", "timestamp", "merge", "value", "seq", "map"}


class Position(NamedTuple):
    """Line and column, from 1."""

    line: int
    column: int


class Section(dict[str, Any]):
    """A mapping of the file that knows where in the file it stands."""

    def __init__(self, path: FieldPath) -> None:
        super().__init__()
        self.path = path

    def without(self, keys: list[str]) -> Section:
        rest = Section(self.path)
        rest.update((key, value) for key, value in self.items() if key not in keys)
        return rest


@dataclass
class Document:
    """One file: its values, where each of them stands, and what is wrong with its YAML."""

    file: str
    text: str
    root: Any = None
    values: dict[FieldPath, Position] = field(default_factory=dict)
    keys: dict[FieldPath, Position] = field(default_factory=dict)
    mistakes: list[Mistake] = field(default_factory=list)

    def note(self, path: FieldPath, message: str, *, at_key: bool = False) -> None:
        """One mistake, at a value or at its key; what is missing is placed at its parent."""
        position = self.keys.get(path) if at_key else None
        known = path
        while position is None:
            position = self.values.get(known)
            if not known:
                break
            known = known[:-1]
        line, column = position or Position(1, 1)
        mistake = Mistake(self.file, line, column, spelled(path), printable(message))
        if mistake not in self.mistakes:
            self.mistakes.append(mistake)

    def at(self, path: FieldPath) -> Any:
        """The value at a path as far as the file has it; None where it has not."""
        value = self.root
        for part in path:
            try:
                value = value[part]
            except (KeyError, IndexError, TypeError):
                return None
        return value

    def texts(self) -> Iterator[tuple[FieldPath, str]]:
        """Every text value with its path."""
        waiting: list[tuple[FieldPath, Any]] = [((), self.root)]
        while waiting:
            path, value = waiting.pop()
            if isinstance(value, str):
                yield path, value
            elif isinstance(value, dict):
                waiting.extend(((*path, key), below) for key, below in value.items())
            elif isinstance(value, list):
                waiting.extend(((*path, index), below) for index, below in enumerate(value))


def spelled(path: FieldPath) -> str:
    """A path as sentences show it: `targets[0].resource_parameters`; `file` for the whole."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            plain = part if re.fullmatch(r"[\w-]{1,60}", part, re.ASCII) else shown(part)
            text += f".{plain}" if text else plain
    return text or "file"


def read_document(path: Path, file: str | None = None) -> Document:
    """The file at `path`, as `file` in its mistakes.

    Raises
    ------
    DescriptorError
        If it cannot be read as text or as YAML at all. Other mistakes are in the document.
    """
    file = file or printable(path)
    return parsed(_read_text(path, file), file)


def parsed(text: str, file: str) -> Document:
    """The text of a file. Raises `DescriptorError` as `read_document` does."""
    made = _kept(text, file) if len(text) <= LONGEST_KEPT else _composed(text, file)
    return Document(
        file, text, deepcopy(made.root), dict(made.values), dict(made.keys), list(made.mistakes)
    )


def _composed(text: str, file: str) -> Document:
    document = Document(file, text)
    try:
        _Composer(document).compose()
    except _NotYaml as error:
        raise DescriptorError([Mistake(file, *error.position, "file", str(error))]) from None
    return document


_kept = lru_cache(MOST_KEPT)(_composed)
"""A draft is checked at each change, and with it every template that it names."""


def printable(text: Path | str) -> str:
    """Text that any terminal can be given."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in str(text))


def is_file(path: Path) -> bool:
    """Whether a file is there, as far as this user can tell."""
    try:
        return path.is_file()
    except OSError:  # a folder that may not be read, a name that no file system has
        return False


def _read_text(path: Path, file: str) -> str:
    def refuse(message: str, line: int = 1, column: int = 1) -> DescriptorError:
        return DescriptorError([Mistake(file, line, column, "file", message)])

    try:
        if path.is_dir():
            raise refuse("is a folder, must be a YAML file")
        if not path.exists():
            raise refuse("does not exist; give the path of a YAML file")
        if not path.is_file():
            raise refuse("is not a regular file, must be a YAML file")
        with path.open("rb") as stream:
            raw = stream.read(LARGEST_FILE + 1)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise refuse(f"cannot be read ({why.lower()})") from None
    if len(raw) > LARGEST_FILE:
        raise refuse(f"is larger than {LARGEST_FILE // 1024} KiB; no descriptor needs that")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = raw[: error.start]
        line, column = before.count(b"\n") + 1, error.start - before.rfind(b"\n")
        raise refuse(
            f"is not UTF-8: byte 0x{raw[error.start]:02x} is no text", line, column
        ) from None
    return text


class _NotYaml(Exception):
    """The file cannot be parsed; the parser stops at its first mistake."""

    def __init__(self, message: str, position: Position) -> None:
        super().__init__(message)
        self.position = position


class _Composer:
    """From ruamel's nodes, which know their marks, to plain values beside a table of marks."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.nodes = 0

    def compose(self) -> None:
        yaml = YAML(typ="safe", pure=True)
        yaml.max_depth = DEEPEST
        yaml.composer.warn_double_anchors = False
        try:
            node = yaml.compose(self.document.text)
        except ReaderError as error:
            raise self._unreadable(error) from None
        except MarkedYAMLError as error:
            raise _syntax_mistake(error) from None
        except (YAMLError, ValueError, RecursionError) as error:
            raise _NotYaml(f"is not YAML: {str(error).splitlines()[0]}", Position(1, 1)) from None
        if node is None:
            raise _NotYaml("is empty, must hold a descriptor", Position(1, 1))
        self.document.root = self._value(node, ())

    def _unreadable(self, error: ReaderError) -> _NotYaml:
        before = self.document.text[: error.position]
        position = Position(before.count("\n") + 1, len(before) - before.rfind("\n"))
        character = self.document.text[error.position : error.position + 1]
        return _NotYaml(
            f"holds {character!a}, a character that YAML does not allow; is it a binary file?",
            position,
        )

    def _value(self, node: Node, path: FieldPath) -> Any:
        self.nodes += 1
        position = _position(node.start_mark)
        if self.nodes > MOST_NODES:
            raise _NotYaml(f"stands for more than {MOST_NODES} values, aliases followed", position)
        if len(path) > DEEPEST:
            raise _NotYaml(f"is nested deeper than {DEEPEST} levels", position)
        self.document.values[path] = position
        tag = str(node.tag).removeprefix(_TAG)
        if tag not in _PLAIN_TAGS:
            self.document.note(path, f"has the tag {shown(tag)}; tags are not read here")
        if isinstance(node, MappingNode):
            return self._mapping(node, path)
        if isinstance(node, SequenceNode):
            return [self._value(item, (*path, index)) for index, item in enumerate(node.value)]
        return self._scalar(node, tag, path)

    def _mapping(self, node: MappingNode, path: FieldPath) -> Section:
        section = Section(path)
        for key_node, value_node in node.value:
            position = _position(key_node.start_mark)
            if not isinstance(key_node, ScalarNode):
                self.document.note(path, "has a key that is not text")
                continue
            key = str(key_node.value)
            below = (*path, key)
            if key in section:
                first = self.document.keys[below]
                self.document.keys[below] = position
                self.document.note(
                    below, f"is given twice, first in line {first.line}", at_key=True
                )
                self.document.keys[below] = first
                continue
            self.document.keys[below] = position
            section[key] = self._value(value_node, below)
            if section[key] is None:
                # Nothing stands there: its key is the better place to point at.
                self.document.values[below] = position
        return section

    def _scalar(self, node: Node, kind: str, path: FieldPath) -> Any:
        text = str(node.value)
        if any((ord(c) < 32 and c not in "\n\t") or 0xD800 <= ord(c) < 0xE000 for c in text):
            self.document.note(path, f"holds a control character: {shown(text)}")
            return ""
        match kind:
            case "null":
                return None
            case "bool":
                return text.lower() in ("true", "yes", "on")
            case "int" if _INTEGER.fullmatch(text) and len(text) <= 20:
                return int(text)
            case "int" | "float" if not _ZEROS_FIRST.fullmatch(text):
                try:
                    return float(text)
                except ValueError:  # octal, sexagesimal, .inf: whoever expects a number will say so
                    return text
        return text


def _position(mark: Any) -> Position:
    return Position(mark.line + 1, mark.column + 1) if mark else Position(1, 1)


def _syntax_mistake(error: MarkedYAMLError) -> _NotYaml:
    """The parser's complaint in our words, where the user can see what it is about."""
    problem = " ".join(str(error.problem or error.context or "cannot be parsed").split())
    context = " ".join(str(error.context or "").split())
    position = _position(error.problem_mark or error.context_mark)
    begun = _position(error.context_mark) if error.context_mark else position
    if "maximum depth" in problem:
        return _NotYaml(f"is nested deeper than {DEEPEST} levels", position)
    if "another document" in problem:
        return _NotYaml("holds a second document (---), must hold one", position)
    if "'\\t'" in problem:
        sentence = "a tab stands where only spaces may; indent with spaces"
    elif "cannot start any token" in problem:
        sentence = f"{problem}; put the text in quotes"
    elif "mapping values are not allowed" in problem:
        sentence = (
            "a colon and a space stand in the midst of a value; "
            "check the indentation or put the text in quotes"
        )
    elif "a quoted scalar" in context and "end of stream" in problem:
        sentence, position = "the quotes that open here are never closed", begun
    elif "a flow sequence" in context or "a flow mapping" in context:
        bracket = "[" if "sequence" in context else "{"
        sentence = f"the {bracket} of line {begun.line} is not closed before this"
    elif "<block end>" in problem:
        sentence = f"the indentation fits nothing that stands above, since line {begun.line}"
    else:
        sentence = problem if not context else f"{problem} ({context})"
    if not sentence.isprintable():
        sentence = ascii(sentence)
    return _NotYaml(f"is not YAML: {sentence}", position)
