"""Elements of HTML and SVG; whatever stands in them is escaped when they are written."""

from __future__ import annotations

from xml.etree.ElementTree import Element


def element(tag: str, *children: Element | str | None, **attributes: object) -> Element:
    """An element; `stroke_width=2` is written `stroke-width="2"`, `class_` is `class`."""
    made = Element(
        tag,
        {
            name.rstrip("_").replace("_", "-"): f"{value:.6g}"
            if isinstance(value, float)
            else str(value)
            for name, value in attributes.items()
        },
    )
    last: Element | None = None
    for child in children:
        if isinstance(child, Element):
            made.append(child)
            last = child
        elif child and last is None:
            made.text = (made.text or "") + child
        elif child and last is not None:
            last.tail = (last.tail or "") + child
    return made
