"""What `predict` prints: a table with a row for each allocation, then what is to be known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from workbench.cli.chain_words import amount, columns, interval, model, wrapped
from workbench.cli.tables import lines_of
from workbench.domain import prediction_tables as tables
from workbench.domain.counts import counted

if TYPE_CHECKING:
    from workbench.domain.chains import ChainPrediction
    from workbench.domain.questions import ChainPredicted

IN_DETAIL = 3
"""Allocations of which each function is told; of more there is a table."""
COUNTS = (
    "counts: how much of a small change of the function's figure shows in the chain's; 100 % where "
    "it decides alone."
)


def predicted(reply: ChainPredicted, at: str) -> str:
    """A table with a row for each allocation, then what is to be known, as sentences."""
    first = reply.predictions[0]
    lines = [
        *wrapped(f"{first.chain} at {at}: {first.kpi} by {first.rule}, {_source(first)}"),
        "",
        *_prediction_table(reply.predictions),
        "",
    ]
    if len(reply.predictions) <= IN_DETAIL:
        for prediction in reply.predictions:
            lines += [*_detail(prediction), ""]
        lines += wrapped(COUNTS)
    for sentence in _sentences(reply):
        lines += wrapped(sentence)
    return "\n".join(lines)


def _source(prediction: ChainPrediction) -> str:
    version, rests_on = prediction.model_version, prediction.rests_on
    told = f"corrected by model {version}" if version else "from stand-alone profiles"
    return f"{told} and {counted(rests_on, 'sample')} of the chain" if rests_on else told


def _prediction_table(predictions: Sequence[ChainPrediction]) -> list[str]:
    """Allocations as columns where that fits, else by number with a legend below."""
    wide = lines_of(tables.by_allocation(predictions))
    if max(map(len, wide)) <= columns():
        return wide
    legend = (f"{n}: {tables.allotted(p)}" for n, p in enumerate(predictions, 1))
    numbered = lines_of(tables.by_number(predictions))
    return [*numbered, "", *(line for text in legend for line in wrapped(text))]


def _sentences(reply: ChainPredicted) -> Iterator[str]:
    predictions = reply.predictions
    marked = any(one.shared_cores and one.shared_cores.extrapolates for one in predictions)
    if marked or any(map(tables.guessed, predictions)):
        yield "* and ? extrapolate: what no samples bear out is a guess."
    yield from _of_whom(predictions, [_unknown(p) for p in predictions])
    yield from _of_whom(predictions, [_beyond(p) for p in predictions])
    yield from _of_whom(predictions, [p.warnings for p in predictions])
    yield f"Models: {'; '.join(map(model, reply.models))}."


def _detail(prediction: ChainPrediction) -> list[str]:
    """What each function is alone, how much it counts, and what the next step of vCPU brings."""
    return [
        f"{tables.allotted(prediction)}:",
        *(f"  {line}" for line in lines_of(tables.functions(prediction))),
        *wrapped(f"  {_next(prediction)}"),
        *_on_shared_cores(prediction),
    ]


def _on_shared_cores(prediction: ChainPrediction) -> list[str]:
    found = prediction.shared_cores
    if found is None:
        return []
    marked = " *" * found.extrapolates
    return [
        *wrapped(f"  On the cores that they share: {interval(found.value)}{marked}."),
        *(f"  {line}" for line in lines_of(tables.neighbours(found))),
        *(
            line
            for cost in found.functions
            for line in wrapped(f"  {tables.beside_neighbours(prediction.kpi, cost)}.")
        ),
    ]


def _next(prediction: ChainPrediction) -> str:
    step = prediction.next_step
    if not prediction.limiting:
        return "Nothing limits: nothing is lost, or all that is offered is carried."
    if step is None:
        return f"No next step: {prediction.note}." if prediction.note else "No next step is known."
    vnf = step.key.partition(".")[0]
    return (
        f"With {amount(step.key, step.after)} for {vnf} instead of "
        f"{amount(step.key, step.before)}: {interval(step.value)}, and "
        f"{step.limiting or 'nothing'} limits then."
    )


def _unknown(prediction: ChainPrediction) -> tuple[str, ...]:
    if not prediction.canaries:
        return ()
    return (
        "not known without a canary: nobody has measured the chain, and the interval holds what "
        f"the hand-over of others has added; {prediction.canaries} canaries would tell",
    )


def _beyond(prediction: ChainPrediction) -> tuple[str, ...]:
    """Where functions extrapolate: it need not count, and is said all the same."""
    return tuple(
        f"{function.vnf} extrapolates ({', '.join(function.extrapolated)})"
        for function in prediction.functions
        if function.extrapolated
    )


def _of_whom(
    predictions: Sequence[ChainPrediction], found: Sequence[Sequence[str]]
) -> Iterator[str]:
    """Each sentence once, with the allocations that it is about where it is not about all."""
    about: dict[str, list[str]] = {}
    for prediction, texts in zip(predictions, found, strict=True):
        for text in texts:
            about.setdefault(text, []).append(tables.allotted(prediction))
    for text, allotted in about.items():
        if len(allotted) == len(predictions):
            yield f"{text}."
            continue
        more = len(allotted) - IN_DETAIL
        named = "; ".join(allotted[:IN_DETAIL]) + (f" and {more} more" if more > 0 else "")
        yield f"{named}: {text}."
