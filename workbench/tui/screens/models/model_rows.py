"""From stored models to the rows of the screen Models; plain functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from workbench.domain import departures, session_tables
from workbench.domain.answer_tables import AnswerTable, Cell
from workbench.domain.canaries import ProposalView
from workbench.domain.counts import counted
from workbench.domain.profiles import ModelScore, ModelVersion, ParameterInfluence
from workbench.domain.projection import SessionView
from workbench.domain.retraining import ChainModels
from workbench.tui import text
from workbench.tui.answer_rows import columns_of, laid_out
from workbench.tui.columns import ListColumn, Sorting
from workbench.tui.plots.canvas import Glyphs
from workbench.tui.widgets.rows import Look, Row, fit


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
    latest: bool = False
    """Of those that were fitted to the target's own samples."""
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
    last, retrained = view.model(target, kpi), view.chain_model(target, kpi)
    # What predicts a chain is its retrained model or the profiles: one that was fitted to its own
    # samples is what these are held against.
    beside = retrained is not None
    lines = []
    for m in reversed(fitted):
        made = f"{'trained directly: ' * beside}{m.method}, {counted(m.samples, 'sample')}"
        latest = m is last
        lines.append(
            VersionLine(m.version, latest and not beside, made, text.day(m.at), m, latest=latest)
        )
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


def versions(lines: Sequence[VersionLine]) -> AnswerTable:
    """As a table; what has no number was not accepted."""
    return AnswerTable.of(
        ("version", "model", "accepted", "note"),
        (
            (line.version if line.version or line.back else "–", line.made, line.by, line.note)
            for line in lines
        ),
    )


def version_row(line: VersionLine, cells: tuple[str, str], here: bool) -> Row:
    mark = "✓" if line.in_force else " "
    look: Look = "badge" if here else ""
    return ("›" if here else " ", "accent"), (f"{mark} {''.join(cells)}", look)


def score_rows(
    scores: Sequence[ModelScore], sorting: Sorting, glyphs: Glyphs, width: int
) -> list[Row]:
    """Paper A's Table 3, and what METHOD.md asks for besides; the chosen one is marked."""
    if not scores:
        return []
    table = _scores(scores, width)
    shown = sorting.sort(table.rows, columns_of(table))
    headings = [sorting.heading(title, glyphs) for title in table.headings]
    laid = laid_out(AnswerTable(table.columns, tuple(shown)), width - 2, headings)
    title = f" scores, {scores[0].samples} samples, cross-validated; * the best"
    rows: list[Row] = [((title, "strong"),)]
    rows.append(((f"  {laid.heading}", "dim"),))
    best = {f"{score.method} *" for score in scores if score.best}
    for row, cells in zip(shown, laid.lines, strict=True):
        rows.append(((f"  {''.join(cells)}", "strong" if row[0] in best else ""),))
    for score in scores:
        if score.trouble:
            failed = text.plain(score.method)
            rows.append(((f"  {failed}", "dim"), (f"  {text.sentence(score.trouble)}", "warn")))
    return rows


def score_columns(
    scores: Sequence[ModelScore], width: int
) -> tuple[ListColumn[tuple[Cell, ...]], ...]:
    """Those that there is room for."""
    return columns_of(_scores(scores, width))


def _scores(scores: Sequence[ModelScore], width: int) -> AnswerTable:
    """The columns that there is room for, with an arrow at one of them."""
    table = session_tables.scores(scores)
    shown = laid_out(table, width - 4).shown
    return AnswerTable(table.columns[:shown], tuple(row[:shown] for row in table.rows))


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


BEST_FIRST = Sorting("")
"""As the engine gives them."""
