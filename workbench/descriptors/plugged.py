"""Names of plug-ins in descriptors: which there are, and what was probably meant."""

from __future__ import annotations

from pydantic import AfterValidator

from workbench.descriptors.reading import did_you_mean
from workbench.descriptors.units import shown
from workbench.plugins import Group, names


def plugin_name(group: Group, *besides: str) -> AfterValidator:
    """A validator of names of a group, or of `besides`."""

    def look_up(name: str) -> str:
        known = (*besides, *names(group))
        if name not in known:
            hint = did_you_mean(name, known)
            noun = "generators" if group == "traffic" else group
            raise ValueError(f"is {shown(name)}, which is none of the {noun}; {hint}")
        return name

    return AfterValidator(look_up)
