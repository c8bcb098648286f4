"""YAML that every reader reads alike."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.scalarstring import DoubleQuotedScalarString

_WORD = re.compile(r"[A-Za-z][A-Za-z0-9._/-]*")
_NO_WORD = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}
"""Kubernetes and PyYAML read YAML 1.1, in which these are no text."""


def to_yaml(plain: Mapping[str, Any], remarks: Sequence[str] = ()) -> str:
    """A document of dicts, lists, numbers and text, with remarks as a comment on top."""
    document = _quoted(plain)
    if remarks:
        document.yaml_set_start_comment("\n".join(remarks))
    yaml = YAML()
    yaml.width = 1_000_000  # a folded text is harder to read, and to search
    yaml.indent(mapping=2, sequence=4, offset=2)
    stream = io.StringIO()
    yaml.dump(document, stream)
    return stream.getvalue()


def _quoted(value: Any) -> Any:
    """The same with quotes around all text that is not a word in every version of YAML."""
    if isinstance(value, Mapping):
        return CommentedMap({_quoted(key): _quoted(item) for key, item in value.items()})
    if isinstance(value, list | tuple):
        return CommentedSeq(map(_quoted, value))
    if isinstance(value, str) and not (_WORD.fullmatch(value) and value.lower() not in _NO_WORD):
        return DoubleQuotedScalarString(value)
    return value
