"""What a campaign would cost, beside its settings: in samples and lab time, by each sampler."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from workbench.domain.campaign import Campaign
from workbench.domain.counts import counted
from workbench.domain.errors import Mistake
from workbench.domain.sessions import Plan, SamplerCost
from workbench.tui.text import configuration_name, duration, plain, sentence, wrapped
from workbench.tui.widgets.rows import Look, Row, fit, spread

NAME = 12
"""Cells of a sampler's name."""
FIGURES = 18
"""Cells of its samples and its lab time."""
WIDE = 50
"""Cells from which a configuration's samples are shown, too."""
ROOMY = 2 + NAME + FIGURES + 6
"""Cells from which the cheapest sampler is named so."""
SAID = 3
"""Lines that what is wrong may always have."""
LOW = 8
"""Rows below which samplers stand beside each other, not below."""
CHOSEN, OTHER = "▸ ", "  "


@dataclass(frozen=True)
class DraftCosts:
    """What is known by now of the cost of one state of a draft.

    Attributes
    ----------
    draft, campaign : that all of it is of; what is open may be another one by now.
    plan : of the sampler that the draft names; None until it is there.
    samplers : what each costs, as the answers come.
    order : names of all samplers, as they stand below each other whatever is known of them.
    busy : whether answers are still to come.
    old : whether the plan is that of an earlier state of the draft.
    trouble : why there is no plan, as a sentence.
    """

    draft: str = ""
    campaign: Campaign | None = None
    plan: Plan | None = None
    samplers: Mapping[str, SamplerCost] = field(default_factory=dict)
    order: tuple[str, ...] = ()
    busy: bool = False
    old: bool = False
    trouble: str = ""

    @property
    def chosen(self) -> SamplerCost | None:
        """Of the sampler that the draft names: what it comes to; None until it is known."""
        known = (c for c in self.samplers.values() if c.chosen and c.figure != "unknown")
        return next(known, None)

    @property
    def lab_s(self) -> float:
        """The one figure for the lab time, wherever it is told: the sampler's once it is there, as
        it may stop before the plan ends."""
        if self.chosen is not None:
            return self.chosen.lab_s
        return self.plan.lab_s if self.plan is not None else 0.0

    def told(self, cost: SamplerCost) -> DraftCosts:
        return replace(self, samplers={**self.samplers, cost.sampler: cost})


def rows(
    costs: DraftCosts,
    width: int,
    height: int,
    mistakes: int = 0,
    others: Sequence[Mistake] = (),
    method: str = "",
) -> list[Row]:
    """As much as there is room for: the plan, the samplers, what is to be known, the grid.

    Every line keeps its place while figures come; what is wrong stands below the samplers.
    `mistakes` are counted, `others` those of them that no line of the form shows, `method` is the
    sampler that the draft names.
    """
    found = [spread((("Cost", "accent"),), ((_computing(costs), "warn"),), width)]
    found += _summary(costs, mistakes, width)
    said = _said(costs, mistakes, others, width)
    if height < LOW:
        return [*found, *_beside(costs, width), *said][:height]
    table = _table(costs, method, width, known=not mistakes)
    room = height - len(found) - 1
    if room < 3:
        return found[:height]
    kept = min(len(said), max(SAID, room - len(table)))
    if table:
        most = max(2, room - kept)
        found += [(), *(table if len(table) <= most else _shortened(table, most))]
    found += _cut(said, kept)
    if costs.plan is None or mistakes:
        return found
    notes = _notes(costs, width)
    if len(found) + len(notes) <= height:
        found += notes
    room = height - len(found) - 2
    return [*found, *(_grid(costs.plan, costs.campaign, width, room) if room >= 4 else ())]


def _computing(costs: DraftCosts) -> str:
    """Of how many samplers the costs are there; empty where all are."""
    if not costs.busy:
        return ""
    count = f" {len(costs.samplers)} of {len(costs.order)}" if costs.order else ""
    return f"computing{count}…"


def _said(
    costs: DraftCosts,
    mistakes: int,
    others: Sequence[Mistake],
    width: int,
) -> list[Row]:
    """What is wrong, or to be known of the plan."""
    if mistakes:
        found = [_marked(f"{mistake.field}: {mistake.message}", width, "bad") for mistake in others]
    elif costs.trouble:
        found = [_marked(costs.trouble, width)]
    else:
        texts = _warnings(costs, costs.plan) if costs.plan is not None else ()
        found = [_marked(text, width) for text in texts]
    return [row for marked in found for row in marked]


def _cut(said: Sequence[Row], kept: int) -> list[Row]:
    """So many lines; the last one says that there were more."""
    if len(said) <= kept:
        return list(said)
    *_, (words, look) = said[kept - 1]
    return [*said[: kept - 1], ((f"{words[:-1]}…", look),)]


def _marked(text: str, width: int, look: Look = "warn") -> list[Row]:
    lines = wrapped(sentence(text), width - 2)
    return [((("! " if i == 0 else "  ") + line, look),) for i, line in enumerate(lines)]


def _summary(costs: DraftCosts, mistakes: int, width: int) -> list[Row]:
    """Two lines; dim while they are still those of what stood there before."""
    plan = costs.plan
    look: Look = "dim" if costs.old else "strong"
    if mistakes:
        these = "a mistake is" if mistakes == 1 else f"{mistakes} mistakes are"
        texts: tuple[str, ...] = (f"unknown until {these} fixed",)
        look = ""
    elif plan is None:
        texts, look = ("unknown" if costs.trouble else "…",), "dim"
    else:
        first = f"{counted(len(plan.configurations), 'configuration')}, "
        most = f"≤ {counted(plan.samples, 'sample')}"
        chosen = costs.chosen
        if chosen is not None and chosen.samples < plan.samples:
            fewer = f"{_figures(chosen)[1]} of {most}"
            most = fewer if len(first + fewer) <= width else most
        about = f"about {duration(costs.lab_s)} on {plan.lab}, ≤ {duration(plan.most_lab_s)}"
        texts = (first + most, about)
    lines: list[Row] = [
        ((line, look),) for text in texts for line in wrapped(sentence(text), width)
    ]
    return lines if len(lines) > 1 else [*lines, ()]


def _warnings(costs: DraftCosts, plan: Plan) -> Iterable[str]:
    campaign, lab_s = costs.campaign, costs.lab_s
    if campaign and campaign.budget_s is not None and campaign.budget_s < lab_s:
        share = 100 * campaign.budget_s / lab_s
        yield f"the budget of {duration(campaign.budget_s)} pays for {share:.0f} % of it"
    yield from plan.warnings


# --------------------------------------------------------------------------- samplers


def _known(costs: DraftCosts) -> list[SamplerCost]:
    """In the order in which they stand there."""
    return [costs.samplers[name] for name in costs.order if name in costs.samplers]


def _table(costs: DraftCosts, method: str, width: int, *, known: bool) -> list[Row]:
    """A heading and a line for each sampler, always at its place; the cheapest is marked.

    `method` is the sampler that the draft names; `known` : whether there is a cost at all, once
    it is there.
    """
    if not costs.order:
        return []
    figures = [c.lab_s for c in costs.samplers.values() if c.figure != "unknown"]
    least = min(figures, default=0.0) if known and not costs.busy else None
    wanted = max(len(plain(name)) for name in costs.order) + 1
    cells = max(NAME, min(wanted, width - (ROOMY - NAME)))
    lines: list[Row] = [((f"{OTHER}{'sampler':<{cells}}{'samples':>8} {'lab time':>9}", "dim"),)]
    for name in costs.order:
        cost = costs.samplers.get(name) if known else None
        if cost is None:
            refused, samples, lab_time = True, "…", "…"
        else:
            refused, samples, lab_time = _figures(cost)
        chosen = name == method
        text = f"{CHOSEN if chosen else OTHER}{fit(plain(name), cells)}{samples:>8} {lab_time:>9}"
        line: Row = ((text, "accent" if chosen else "dim" if refused else ""),)
        if cost is not None and not refused and cost.lab_s == least and width >= ROOMY:
            line = (*line, (" least", "good"))
        lines.append(line)
    return lines


def _figures(cost: SamplerCost) -> tuple[bool, str, str]:
    """Whether it refuses the campaign, samples, lab time."""
    if cost.figure == "unknown":
        return True, "–", "–"
    sign = {"at_most": "≤", "scaled": "≈"}.get(cost.figure, "")
    return False, f"{sign}{cost.samples}", duration(cost.lab_s)


def _notes(costs: DraftCosts, width: int) -> list[Row]:
    """Why a sampler has no figures."""
    texts = [f"{c.sampler} {c.note}" for c in _known(costs) if c.figure == "unknown" and c.note]
    return [((line, "dim"),) for text in texts for line in wrapped(sentence(text), width)]


def _beside(costs: DraftCosts, width: int) -> list[Row]:
    """Samplers one after the other in few lines, the chosen one first."""
    found = sorted(_known(costs), key=lambda c: not c.chosen)
    texts = [" ".join((plain(c.sampler), *_figures(c)[1:])) for c in found]
    lines = [""]
    for text, cost in zip(texts, found, strict=True):
        shown = f"{CHOSEN if cost.chosen else ''}{text}"
        if lines[-1] and len(lines[-1]) + len(shown) + 3 > width:
            lines.append("")
        lines[-1] += ("   " if lines[-1] else "") + shown
    return [((line, ""),) for line in lines]


def _shortened(table: Sequence[Row], room: int) -> list[Row]:
    """As many lines as there is room for, the chosen sampler always among them."""
    kept = [*table[:room]]
    chosen = next((row for row in table if row[0][0].startswith(CHOSEN)), None)
    if chosen is not None and chosen not in kept:
        kept[-1] = chosen
    return kept


def sampler_of(row: Row) -> str:
    """The sampler that a line of the table is about; empty where it is about none."""
    text = row[0][0] if row else ""
    mark, name = text[:2], text[2 : 2 + NAME].strip()
    return name if mark in (CHOSEN, OTHER) and len(text) >= 2 + NAME + FIGURES else ""


# --------------------------------------------------------------------------- the rest


def _grid(plan: Plan, campaign: Campaign | None, width: int, room: int) -> list[Row]:
    """The configurations in the order of the plan, each once."""
    samples: dict[str, int] = {}
    lab_s: dict[str, float] = {}
    for planned in plan.configurations:
        name = configuration_name(campaign, planned.target, planned.configuration)
        samples[name] = samples.get(name, 0) + planned.samples
        lab_s[name] = lab_s.get(name, 0.0) + planned.lab_s
    roomy = width >= WIDE
    wide = width - (FIGURES if roomy else FIGURES // 2)
    heading = f"{'samples':>8} {'lab time':>9}" if roomy else f"{'lab time':>9}"
    lines: list[Row] = [(), ((fit("configuration", wide) + heading, "dim"),)]
    for name, count in samples.items():
        figures = f"{duration(lab_s[name]):>9}"
        lines.append(((fit(name, wide) + (f"{count:>8} " if roomy else "") + figures, ""),))
    if len(lines) > room + 2:
        hidden = len(lines) - room - 1
        lines = [*lines[: room + 1], ((f"and {hidden} more", "dim"),)]
    return lines
