"""From stored models to the rows of the screen Models; plain functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from workbench.domain import departures
from workbench.domain.canaries import ProposalView
from workbench.domain.counts import counted
from workbench.domain.profiles import ModelScore, ModelVersion, ParameterInfluence
from workbench.domain.projection import SessionView
from workbench.domain.retraining import ChainModels
from workbench.tui import text
from workbench.tui.columns import ListColumn, Sorting
from workbench.tui.plots.canvas import Glyphs
from workbench.tui.widgets.rows import Row, fit


@dataclass(frozen=True)
class VersionLine:
    """A version of a model, however it came about, as one line of the list."""

    version: int
    in_force: bool
    made: str
    by: str
    model: ModelVersion | None = None
    """Fitted to its own samples; None: a chain's retrained model, or its profiles."""
    note: str = ""
    proposal: ProposalView | None = None
    """Of a chain: what was accepted, rejected, or waits."""
    back: bool = False
    """A chain can be rolled back to it, unless it is in force."""


def subjects(view: SessionView) -> list[tuple[str, str]]:
    """Target and KPI of everything that there is a model of, in the order they came."""
    found = [(m.target, m.kpi) for m in view.models]
    found += [(m.chain, m.kpi) for m in view.chain_models]
    return list(dict.fromkeys(found))


def version_lines(view: SessionView, target: str, kpi: str) -> list[VersionLine]:
    """The latest first: profiles by their own samples, then what retraining made of them."""
    fitted = [m for m in view.models if (m.target, m.kpi) == (target, kpi)]
    last = view.model(target, kpi)
    lines = []
    for m in reversed(fitted):
        made = f"{m.method}, {counted(m.samples, 'sample')}"
        lines.append(VersionLine(m.version, m is last, made, text.day(m.at), m))
    retrained = view.chain_model(target, kpi)
    return lines if retrained is None else _chain_lines(view, retrained) + lines


def _chain_lines(view: SessionView, models: ChainModels) -> list[VersionLine]:
    """What waits, then the versions down to the profiles, then what was rejected."""
    made = {p.proposal.id: p for p in view.proposals}
    waiting = [
        VersionLine(0, False, f"proposed: {proposal.model.method}", "not decided",
                    note=departures.statement_of(proposal), proposal=made.get(proposal.id))
        for proposal in reversed(models.pending)
    ]  # fmt: skip
    accepted = [
        VersionLine(
            version.version,
            version.version == models.current,
            f"retrained: {version.proposal.model.method}",
            f"{version.decision.by} {text.day(version.decision.at)}",
            note=_story(version.decision.why, models, version.version),
            proposal=made.get(version.proposal.id),
            back=True,
        )
        for version in reversed(models.versions)
    ]
    if models.versions:
        note = _story("", models, 0)
        accepted.append(
            VersionLine(0, not models.current, "the stand-alone profiles", "", note=note, back=True)
        )
    rejected = []
    for decision in reversed(models.rejected):
        proposal = made.get(decision.proposal)
        method = proposal.proposal.model.method if proposal else "a proposal"
        by = f"{decision.by} {text.day(decision.at)}"
        rejected.append(
            VersionLine(0, False, f"rejected: {method}", by, note=decision.why, proposal=proposal)
        )
    return [*waiting, *accepted, *rejected]


def _story(why: str, models: ChainModels, version: int) -> str:
    """Why it was accepted, and who came back to it last."""
    last = next((r for r in reversed(models.rollbacks) if r.version == version), None)
    if last is None:
        return why
    back = f"back to it by {last.by} {text.day(last.at)}" + (f": {last.why}" if last.why else "")
    return f"{why}; {back}" if why else back


def version_heading() -> Row:
    return ((f"    version  {fit('model', 32)}{fit('accepted', 25)}note", "dim"),)


def version_row(line: VersionLine, here: bool, width: int) -> Row:
    mark = "✓" if line.in_force else " "
    number = str(line.version) if line.version or line.back else "–"
    fixed = f"{mark} {number:>7}  {fit(text.plain(line.made), 31)} {fit(text.plain(line.by), 24)} "
    room = max(0, width - len(fixed) - 1)
    return (
        ("›" if here else " ", "accent"),
        (fixed + fit(text.sentence(line.note), room), "badge" if here else ""),
    )


WIDE = 9
"""Cells of a column of scores."""


def score_columns(width: int) -> tuple[ListColumn[ModelScore], ...]:
    """Those that there is room for."""
    return COLUMNS[: max(3, (width - _name_width(width) - 3) // WIDE)]


def _name_width(width: int) -> int:
    return max(12, min(28, width - WIDE * len(COLUMNS) - 3))


def score_rows(
    scores: Sequence[ModelScore], sorting: Sorting, glyphs: Glyphs, width: int
) -> list[Row]:
    """Paper A's Table 3, and what METHOD.md asks for besides; the chosen one is marked."""
    if not scores:
        return []
    name, shown = _name_width(width), score_columns(width)
    headings = [sorting.heading(column.name, glyphs, WIDE - 1) for column in shown]
    heading = " " * (name + 2) + "".join(f"{words:>{WIDE}}" for words in headings)
    rows: list[Row] = [((f" scores, {scores[0].samples} samples, cross-validated", "strong"),)]
    rows.append(((heading, "dim"),))
    for score in sorting.sort(scores, shown):
        mark = "✓" if score.best else " "
        head = f"{mark} {fit(text.plain(score.method), name)}"
        if score.trouble:
            rows.append(((head, "dim"), (f"  {text.sentence(score.trouble)}", "warn")))
            continue
        cells = "".join(f"{column.text(score):>{WIDE}}" for column in shown)
        rows.append(((head + cells, "strong" if score.best else ""),))
    return rows


def influence_rows(influence: ParameterInfluence | None, kpi: str, width: int) -> list[Row]:
    """A bar for each parameter: its share in what moves the KPI (paper B, Fig. 8)."""
    if influence is None or kpi not in influence.kpis:
        return []
    weights = influence.weights[influence.kpis.index(kpi)]
    kind = "edge sample" if influence.basis == "edges" else "sample"
    title = f" influence on {text.kpi_name(kpi)}, {counted(influence.samples, kind)}"
    rows: list[Row] = [((title, "strong"),)]
    label = max((len(name) for name in influence.parameters), default=0)
    label = min(max(label, 8), 28)
    bar = max(6, min(50, width - label - 12))
    pairs = sorted(zip(influence.parameters, weights, strict=True), key=lambda p: -p[1])
    for name, weight in pairs:
        full = round(min(max(weight, 0.0), 1.0) * bar)
        rows.append(
            (
                (f"  {fit(text.plain(name), label)} ", ""),
                ("█" * full, "accent"),
                ("·" * (bar - full), "dim"),
                (f"{text.percent(weight):>6}", ""),
            )
        )
    return rows


def _figure(value: float | None) -> str:
    return text.number(value) if value is not None else "–"


def _seconds(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{text.number(value)} s" if value >= 0.01 else "<0.01 s"


def _share(value: float | None) -> str:
    return text.percent(value) if value is not None else "–"


COLUMNS: tuple[ListColumn[ModelScore], ...] = (
    ListColumn("rmse", WIDE, lambda s: _figure(s.rmse), lambda s: s.rmse),
    ListColumn("trimmed", WIDE, lambda s: _figure(s.rmse_trimmed), lambda s: s.rmse_trimmed),
    ListColumn("mae", WIDE, lambda s: _figure(s.mae), lambda s: s.mae),
    ListColumn("mape", WIDE, lambda s: _share(s.mape), lambda s: s.mape),
    ListColumn("log err", WIDE, lambda s: _figure(s.log_error), lambda s: s.log_error),
    ListColumn("covers", WIDE, lambda s: _share(s.coverage), lambda s: s.coverage, falling=True),
    ListColumn("width", WIDE, lambda s: _figure(s.width), lambda s: s.width),
    ListColumn("fit", WIDE, lambda s: _seconds(s.fit_s), lambda s: s.fit_s),
)
BEST_FIRST = Sorting("")
"""As the engine gives them."""
