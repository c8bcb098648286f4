"""What every export of a recommendation must do; checks raise `AssertionError` with a sentence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from workbench.domain.errors import WorkbenchError
from workbench.domain.parameters import Sla
from workbench.domain.recommendations import Choice, Recommendation
from workbench.domain.samples import Estimate
from workbench.domain.topology import VnfTemplate
from workbench.exports.recommendation.base import Context, RecommendationExport

Check = Callable[[RecommendationExport], None]

CHOICE = Choice(
    {"function.vcpu": 0.5}, {"function": 1}, 0.5, "vCPU", 0.97, 20.0,
    {"p95_ms": Estimate(40.0, 35.0, 45.0)}, {"function": 0.6},
)  # fmt: skip
TEXT = "p95<=50ms @ rate=300/s"
MET = Recommendation(
    "r1", "conformance-session", "function", (Sla("p95_ms", 50.0, "<=", 300.0, {}, TEXT),), 0.95,
    True, CHOICE, None, (), 3, 1_800_000_000.0,
)  # fmt: skip
DATE = "2027-01-15"
"""Of `MET`, in UTC."""
CONTEXT = Context("1.0", {"function": VnfTemplate("function", image="example/function")})


def writes_files(export: RecommendationExport) -> None:
    """Texts by their names, which hold no folder."""
    files = export(MET, CONTEXT)
    assert isinstance(files, Mapping), f"it gives a {type(files).__name__}, texts by name are due"
    assert files, "it writes no file"
    for name, text in files.items():
        assert isinstance(name, str), f"the name {name!r} is no text"
        assert name not in ("", ".", ".."), f"{name!r} is no name of a file"
        assert not {"/", "\\", "\0"} & set(name), f"the name {name!r} holds a folder"
        assert isinstance(text, str), f"{name} is {type(text).__name__}, a text is due"


def says_where_it_comes_from(export: RecommendationExport) -> None:
    """Session, SLA, confidence and date go with what is deployed."""
    whole = "\n".join(export(MET, CONTEXT).values())
    for what, word in (("session", MET.session), ("date", DATE)):
        assert word in whole, f"no file says the {what} ({word})"
    assert "p95" in whole, f"no file says the SLA ({TEXT})"
    assert "0.95" in whole or "95 %" in whole or "95%" in whole, "no file says the confidence"


def the_same_files_again(export: RecommendationExport) -> None:
    """It has no clock and keeps nothing."""
    one, other = (dict(export(MET, CONTEXT)) for _ in range(2))
    assert one == other, "the same recommendation gives other files"


def nothing_that_holds_is_no_crash(export: RecommendationExport) -> None:
    """Where nothing meets the SLA it says so in a file, or refuses with a sentence."""
    missed = replace(MET, met=False, chosen=None, closest=replace(CHOICE, probability=0.2))
    try:
        assert export(missed, CONTEXT), "it writes no file, and does not refuse"
    except WorkbenchError:
        return


CHECKS: Mapping[str, Check] = {
    check.__name__: check
    for check in (
        writes_files,
        says_where_it_comes_from,
        the_same_files_again,
        nothing_that_holds_is_no_crash,
    )
}
OPTIONAL = frozenset[str]()
