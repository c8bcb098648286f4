"""From a chain's comparison to the list of its configurations and what stands above it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from workbench.domain import departures
from workbench.domain.campaign import Campaign
from workbench.domain.counts import counted
from workbench.domain.errors import WorkbenchError
from workbench.domain.parameters import Configuration, ParameterValue
from workbench.domain.projection import SessionView
from workbench.domain.questions import ChainCompared
from workbench.domain.retraining import ConfigurationScore, Outlier
from workbench.domain.topology import Target
from workbench.tui import text
from workbench.tui.screens.compare import comparing
from workbench.tui.screens.compare.comparing import ComparisonSoFar
from workbench.tui.widgets.rows import Look, Row, Span, fit, spread

NARROW = 80
"""Columns below which words are left out."""
ROOMY = 100
"""Columns from which a typical departure says first of how many samples it is the median."""
VIEWS = ("curves", "errors", "functions", "sessions")
SIGNS: dict[str, tuple[str, Look]] = {"worse": ("▼", "bad"), "better": ("▲", "good")}
"""Of a configuration that is not as predicted; the words stand beside it."""


@dataclass(frozen=True)
class CompareLine:
    """A configuration of the chain. `score` is None where nothing of it was compared."""

    configuration: Configuration
    name: str
    score: ConfigurationScore | None
    outliers: tuple[Outlier, ...] = ()

    @property
    def worst(self) -> Outlier | None:
        return self.outliers[0] if self.outliers else None


def name_of(campaign: Campaign | None, chain: Target, configuration: Configuration) -> str:
    """Its shares in the order of the chain, and the workload values that vary."""
    plan = campaign.find_target(chain.name) if campaign else None
    given = campaign.given(plan) if campaign and plan else campaign.workload if campaign else ()
    varying = {p.key for p in given if len(p.values) > 1}
    values = [
        _value(key, value)
        for key, value in sorted(configuration.workload.items())
        if key in varying
    ]
    vnfs = tuple(vnf.name for vnf in chain.vnfs)
    return text.plain(" ".join([text.shares(configuration, vnfs), *values]))


def _value(key: str, value: ParameterValue) -> str:
    """`10kB`, or `quality=3`."""
    if isinstance(value, str):
        return f"{key}={value}"
    return f"{text.number(value)}B" if key.endswith("_bytes") else f"{key}={text.number(value)}"


def lines_of(
    view: SessionView, chain: Target, compared: ChainCompared | None
) -> tuple[CompareLine, ...]:
    """Outliers first, the largest departure first; then by error; last what was not compared."""
    found = compared.comparison if compared is not None else None
    outliers: dict[Configuration, list[Outlier]] = {}
    for outlier in found.outliers if found else ():
        outliers.setdefault(outlier.configuration, []).append(outlier)
    scores = {score.configuration: score for score in (found.configurations if found else ())}
    rest = comparing.configurations_of(view, chain.name)
    return tuple(
        CompareLine(
            configuration,
            name_of(view.campaign, chain, configuration),
            scores.get(configuration),
            tuple(outliers.get(configuration, ())),
        )
        for configuration in dict.fromkeys((*outliers, *scores, *rest))
    )


def over(view: SessionView, chain: Target) -> str:
    """Its load as `rate (/s)`; a template that was only tried has that of the functions."""
    plans = view.campaign.targets if view.campaign else ()
    names = [plan.target.name for plan in plans]
    if not names:
        return "wl"
    name, unit = text.primary(view, chain.name if chain.name in names else names[0])
    return f"{name} ({unit})" if unit else name


# ----------------------------------------------------------------------------- above the list


def views_row(
    current: str, chain: str, place: str, answer: ComparisonSoFar | None, width: int
) -> Row:
    """The views with the one that is shown; then what is compared."""
    spans: list[Span] = [(" ", "")]
    for view in VIEWS if width >= NARROW else (current,):
        spans += [(f" {view} ", "badge" if view == current else "dim")]
    about: tuple[Span, ...] = ((f"{text.plain(chain)} ", "strong"), (f"{place} ", "dim"))
    if answer is not None and answer.subject.chain == chain:
        about = (*about[:1], (f"{text.kpi_name(answer.subject.kpi)} ", ""), *about[1:])
    return spread(tuple(spans), about, width)


def rule_of(answer: ComparisonSoFar | None) -> str:
    """What predicts: ` by convolved`; empty where that is not known yet."""
    if answer is not None and answer.compared is not None:
        return f" by {text.plain(answer.compared.comparison.rule)}"
    known = answer.charted if answer is not None else None
    return f" by {text.plain(known.rule)}" if known is not None else ""


def verdict_row(answer: ComparisonSoFar | None, width: int) -> Row:
    """How right the prediction is, in one line: in plain words first, then the statistics behind.

    An accepted model is held against samples that it has not learned from: they may be few.
    """
    if answer is None or answer.compared is None:
        return ()
    found = answer.compared.comparison
    known = len(found.configurations)
    counts = {
        verdict: len({o.configuration for o in found.outliers if o.verdict == verdict})
        for verdict in ("worse", "better")
    }
    sign, look = (
        SIGNS["worse" if counts["worse"] else "better"] if found.outliers else ("✓", "good")
    )
    said = departures.sentence(departures.of_chain(found))
    if found.outliers and said == "as predicted":  # which is of all samples together
        said = "typically as predicted"
    few = found.model_version and found.samples < answer.samples
    all_samples = counted(answer.samples, "sample")
    some = f"{found.samples} of {all_samples}" if few else counted(found.samples, "sample")
    roomy = width >= ROOMY
    if roomy:
        said = f"{said} (median of {some})"
    spans: list[Span] = [(f" {sign} {said}", look), ("  ", "")]
    for verdict, count in counts.items():
        if count:
            spans += [(f"{verdict} in {count} of {known}", SIGNS[verdict][1]), ("  ", "")]
    if not found.outliers:
        spans += [(f"none of {known} deviates", "good"), ("  ", "")]
    parts = [
        *([some] if few and not roomy else []),
        f"noise alone up to {departures.of_noise(found.ab_floor)}",
        f"mean error {text.percent(found.mape)}",
        f"|log error| {found.log_error:.2f}",
        f"covers {text.percent(found.coverage)}",
        *([] if few or roomy else [f"median of {some}"]),
        f"RMSE {text.number(found.rmse)}",
    ]
    if found.baseline_rmse is not None:
        parts.append(f"trained directly {text.number(found.baseline_rmse)}")
    used = sum(len(part) for part, _ in spans)
    for part in parts:
        if used + len(part) + 2 > width:
            break
        spans.append((f"{part}  ", "dim"))
        used += len(part) + 2
    return tuple(spans)


def notes_row(
    answer: ComparisonSoFar | None,
    news: str,
    keys: tuple[str, str],
    width: int,
    *,
    tall: bool,
    replay: bool,
) -> Row:
    """What is to be known: `news` that the answer does not know of, why there are no curves, on how
    few samples of the chain it rests; the engine's other sentences where there is room, else they
    are on the help page. `keys`: of comparing again, and of the next rule."""
    anew, rule = keys
    unseen = _unseen(answer, rule, width - 3)
    if replay:
        whole = "of the whole session, not as of the moment shown"
        if unseen and len(f"{whole}; {unseen}") + 3 <= width:
            whole += f"; {unseen}"
        return ((fit(f" ! {whole}", width), "warn"),)
    if news:
        return ((f" ! {news}: {anew} compares again", "warn"),)
    if answer is None:
        return ()
    if answer.uncharted is not None:
        said = text.sentence(str(answer.uncharted))
        return ((fit(f" ! no curves: {said}", width), "warn"),)
    if unseen:
        return ((fit(f" ! {unseen}", width), "warn"),)
    notes = [text.sentence(note) for note in answer.notes]
    if not notes or not tall:
        return ()
    more = f"  (+{len(notes) - 1}: ?)" if len(notes) > 1 else ""
    return ((fit(f" ! {notes[0]}", width - len(more)), "warn"), (more, "dim"))


def _unseen(answer: ComparisonSoFar | None, key: str, width: int) -> str:
    """That an accepted model is compared with what it has not learned from alone."""
    found = answer.compared.comparison if answer is not None and answer.compared else None
    if answer is None or found is None or not found.model_version:
        return ""
    if found.samples >= answer.samples:
        return ""
    words = f"{found.samples} of {counted(answer.samples, 'sample')} are compared: those that "
    words += f"model {found.model_version} has not learned from"
    more = f"{words}; {key} compares all with the functions' profiles"
    return more if len(more) <= width else words


def trouble_lines(error: WorkbenchError, advice: str) -> list[str]:
    """Why there is nothing, and what can be done."""
    return [*text.plain_lines(str(error)).splitlines(), "", advice]


# ----------------------------------------------------------------------------- the list


NUMBERS = 8 + 20
"""Columns of samples, and of how far they are from the prediction."""


def heading(width: int) -> Row:
    bar, error, direct, verdict = _columns(width)
    name = max(8, width - 4 - NUMBERS - error - direct - verdict - bar)
    figures = f"{'samples':>8}{'than predicted':>20}"
    figures += f"{'error':>{error}}" if error else ""
    figures += f"{'directly':>{direct}}" if direct else ""
    return (
        (f"    {fit('configuration', name)}{figures}{' ' * bar}", "dim"),
        (fit("  deviates at loads" if verdict > 16 else "  at loads", verdict), "dim"),
    )


def line_row(
    line: CompareLine, kpi: str, here: bool, most: float, width: int, *, awaited: bool = False
) -> Row:
    """`most` is the largest error of all, which fills the bar; `awaited`: no answer has come."""
    bar, error, direct, verdict = _columns(width)
    name = fit(line.name, max(8, width - 4 - NUMBERS - error - direct - verdict - bar))
    sign, look = SIGNS[line.worst.verdict] if line.worst else (" ", "")
    spans: list[Span] = [
        ("›" if here else " ", "accent"),
        (f"{sign} ", look),
        (f" {name}", "badge" if here else ""),
    ]
    score = line.score
    if score is None:
        return (
            *spans,
            (fit(f"  {'being' if awaited else 'not'} compared", width - 4 - len(name)), "dim"),
        )
    figures = f"{score.samples:>8}{departures.of_configuration(kpi, score):>20}"
    if error:
        figures += f"{text.percent(score.mape):>{error}}"
    if direct:
        beside = "–" if score.baseline_mape is None else text.percent(score.baseline_mape)
        figures += f"{beside:>{direct}}"
    spans.append((figures, ""))
    if bar:
        full = round((bar - 2) * score.mape / most) if most > 0 else 0
        spans += [("  ", ""), ("█" * full, "accent"), ("·" * (bar - 2 - full), "dim")]
    spans.append((fit(f"  {_verdict(line, verdict > 16)}", verdict), look))
    return tuple(spans)


def _columns(width: int) -> tuple[int, int, int, int]:
    """Widths of bar, error, error of the direct model, and verdict."""
    bar = 0 if width < 108 else min(40, width - 104)
    return bar, 8 if width >= 76 else 0, 10 if width >= 100 else 0, 20 if width >= 68 else 13


def _verdict(line: CompareLine, wide: bool = True) -> str:
    """At how many of the measured loads: `worse at 16 of 16`, or at how many of both."""
    if len(line.outliers) > 1:
        return " ".join(f"{o.verdict} {len(o.loads)}" for o in line.outliers)
    words = "{} at {} of {}" if wide else "{} {}/{}"
    return "".join(words.format(o.verdict, len(o.loads), o.points) for o in line.outliers)


def table(lines: Sequence[CompareLine]) -> str:
    """The list as tab-separated text."""
    return "\n".join(_cells(lines)) + "\n" if lines else ""


def _cells(lines: Sequence[CompareLine]) -> Iterator[str]:
    columns = "configuration samples mape log_error ratio baseline_mape verdict".split()
    yield "\t".join(columns)
    for line in lines:
        s = line.score
        figures = (s.samples, s.mape, s.log_error, s.ratio, s.baseline_mape) if s else ("",) * 5
        cells = (line.name, *("" if f is None else f for f in figures), _verdict(line))
        yield "\t".join(map(str, cells))
