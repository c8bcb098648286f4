"""Tables and quotations of a page that a benchmark writes between markers."""

from __future__ import annotations

import re
from collections.abc import Mapping

BEGIN, END = "<!-- {} -->", "<!-- end of what is written by it -->"


def with_blocks(page: str, blocks: Mapping[str, str]) -> str:
    """The page with each text between its markers; those that have none are left as they are.

    Raises `ValueError` for one whose marker the page does not have.
    """
    for name, text in blocks.items():
        begin = BEGIN.format(name)
        pattern = re.compile(re.escape(begin) + r"\n.*?" + re.escape(END), flags=re.DOTALL)
        block = f"{begin}\n{text}\n{END}"
        page, found = pattern.subn(lambda _, block=block: block, page, count=1)
        if not found:
            raise ValueError(f"the page has no {begin!r} with {END!r} after it")
    return page
