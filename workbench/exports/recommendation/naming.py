"""Names and texts of others, made fit for files that are read by machines."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping

_LONGEST_LABEL = 63


def one_line(text: str) -> str:
    """Text without line feeds, control, format and unassigned characters; blanks are joined.

    What has no line feed cannot leave a comment, a table's cell or a list's item.
    """
    shown = ("".join(" " if _unprintable(c) else c for c in text)).split()
    return " ".join(shown)


def _unprintable(character: str) -> bool:
    category = unicodedata.category(character)
    return category.startswith("C") or category in ("Zl", "Zp")


def dns_label(name: str) -> str:
    """The nearest RFC 1123 label: lower-case letters, digits and inner hyphens, at most 63."""
    label = re.sub(r"[^a-z0-9]+", "-", name.lower())
    return label.strip("-")[:_LONGEST_LABEL].strip("-") or "function"


def dns_labels(names: Iterable[str]) -> Mapping[str, str]:
    """A label of its own for each name; a name that is a label already keeps it."""
    given = tuple(dict.fromkeys(names))
    taken = {name for name in given if dns_label(name) == name}
    labels: dict[str, str] = {}
    for name in given:
        label = nearest = dns_label(name)
        number = 1
        while label != name and label in taken:
            number += 1
            label = f"{nearest[: _LONGEST_LABEL - 1 - len(str(number))].strip('-')}-{number}"
        taken.add(label)
        labels[name] = label
    return labels


def file_stem(session: str, recommendation: str) -> str:
    """`SESSION-ID`, or the ID alone where it begins with the session; safe as a file's name."""
    whole = recommendation if recommendation.startswith(session) else f"{session}-{recommendation}"
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", whole).strip(".-")
    return stem[:100] or "recommendation"
