"""What a campaign would cost, beside its settings: in samples and lab time, by each sampler."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from workbench.domain.campaign import Campaign
from workbench.domain.counts import counted
from workbench.domain.errors import Mistake
from workbench.domain.sessions import Plan, SamplerCost
from workbench.tui.text import configuration_name, duration, plain, wrapped
from workbench.tui.widgets.rows import Look, Row, fit, spread

NAME = 12
"""Cells of a sampler's name."""
FIGURES = 18
"""Cells of its samples and its lab time."""
WIDE = 50
"""Cells from which a configuration's samples are shown, too."""
LOW = 8
"""Rows below which samplers stand beside each other, not below."""
CHOSEN, OTHER = "▸ ", "  "


@dataclass(frozen=True)
class Costs:
    """What is known by now of the cost of one state of a draft.

    Attributes
    ----------
    plan : of the sampler that the draft names; None until it is there.
    samplers : what each costs, as the answers come.
    waiting : names of the samplers whose cost is not there yet.
    busy : whether answers are still to come.
    trouble : why there is no plan, as a sentence.
    """

    plan: Plan | None = None
    samplers: Mapping[str, SamplerCost] = field(default_factory=dict)
    waiting: tuple[str, ...] = ()
    busy: bool = False
    trouble: str = ""

    @property
    def is_old(self) -> bool:
        """Whether the plan is that of an earlier state of the draft."""
        return self.busy and not self.waiting and not self.samplers

    def told(self, cost: SamplerCost) -> Costs:
        waiting = tuple(name for name in self.waiting if name != cost.sampler)
        return replace(self, samplers={**self.samplers, cost.sampler: cost}, waiting=waiting)


def rows(costs: Costs, campaign: Campaign | None, width: int, height: int) -> list[Row]:
    """As much as there is room for: the plan and its warnings, the samplers, the grid."""
    found = [spread((("Cost", "accent"),), (("computing…" * costs.busy, "warn"),), width)]
    if costs.trouble:
        return [*found, *_marked(costs.trouble, width)]
    if costs.plan is None:
        return found
    found += _summary(costs, costs.plan, width)
    for warning in _warnings(costs.plan, campaign):
        found += _marked(warning, width)
    if height < LOW:
        return [*found, *_beside(costs, width)][:height]
    table, notes = _table(costs), _notes(costs, width)
    room = height - len(found) - 1
    if room < 3:
        return found[:height]
    if table:
        found += [(), *(table if len(table) <= room else _shortened(table, room))]
    if len(found) + len(notes) <= height:
        found += notes
    room = height - len(found) - 2
    return [*found, *(_grid(costs.plan, campaign, width, room) if room >= 4 else ())]


def _marked(text: str, width: int, look: Look = "warn") -> list[Row]:
    lines = wrapped(plain(text), width - 2)
    return [((("! " if i == 0 else "  ") + line, look),) for i, line in enumerate(lines)]


def _summary(costs: Costs, plan: Plan, width: int) -> list[Row]:
    """Dim while it is still that of what stood there before."""
    look: Look = "dim" if costs.is_old else "strong"
    texts = (
        f"{counted(len(plan.configurations), 'configuration')}, "
        f"≤ {counted(plan.samples, 'sample')}",
        f"about {duration(plan.lab_s)} on {plan.lab}, ≤ {duration(plan.most_lab_s)}",
    )
    return [((line, look),) for text in texts for line in wrapped(plain(text), width)]


def _warnings(plan: Plan, campaign: Campaign | None) -> Iterable[str]:
    if campaign and campaign.budget_s is not None and campaign.budget_s < plan.lab_s:
        share = 100 * campaign.budget_s / plan.lab_s
        yield f"the budget of {duration(campaign.budget_s)} pays for {share:.0f} % of it"
    yield from plan.warnings


# --------------------------------------------------------------------------- samplers


def _known(costs: Costs) -> list[SamplerCost]:
    """The cheapest first, those that refuse the campaign last."""
    return sorted(
        costs.samplers.values(), key=lambda c: (c.figure == "unknown", c.lab_s, c.sampler)
    )


def _table(costs: Costs) -> list[Row]:
    """A heading and a line for each sampler; what is not known yet last."""
    if not costs.samplers and not costs.waiting:
        return []
    lines: list[Row] = [((f"{OTHER}{'sampler':<{NAME}}{'samples':>8} {'lab time':>9}", "dim"),)]
    for cost in _known(costs):
        refused, samples, lab_time = _figures(cost)
        mark = CHOSEN if cost.chosen else OTHER
        text = f"{mark}{fit(plain(cost.sampler), NAME)}{samples:>8} {lab_time:>9}"
        lines.append(((text, "accent" if cost.chosen else "dim" if refused else ""),))
    for name in costs.waiting:
        lines.append(((f"{OTHER}{fit(plain(name), NAME)}{'…':>8} {'…':>9}", "dim"),))
    return lines


def _figures(cost: SamplerCost) -> tuple[bool, str, str]:
    """Whether it refuses the campaign, samples, lab time."""
    if cost.figure == "unknown":
        return True, "–", "–"
    sign = {"at_most": "≤", "scaled": "≈"}.get(cost.figure, "")
    return False, f"{sign}{cost.samples}", duration(cost.lab_s)


def _notes(costs: Costs, width: int) -> list[Row]:
    """Why a sampler has no figures."""
    texts = [f"{c.sampler} {c.note}" for c in _known(costs) if c.figure == "unknown" and c.note]
    return [((line, "dim"),) for text in texts for line in wrapped(plain(text), width)]


def _beside(costs: Costs, width: int) -> list[Row]:
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


def mistake_rows(mistakes: Sequence[Mistake], others: Sequence[Mistake], width: int) -> list[Row]:
    """Instead of a cost: how many mistakes there are, and those that no line of the form shows."""
    count = len(mistakes)
    said = f"unknown until {'a mistake is' if count == 1 else f'{count} mistakes are'} mended"
    found: list[Row] = [(("Cost", "accent"),), *(((line, ""),) for line in wrapped(said, width))]
    for mistake in others:
        found += [(), *_marked(f"{mistake.field}: {mistake.message}", width, "bad")]
    return found
