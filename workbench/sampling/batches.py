"""What a sampler would ask next, several points at once: each is believed until it is measured.

A sampler asks for one point and waits for its sample. Where several hosts measure at the same time,
what was asked and is not measured yet is told to it as what a model expects there (the kriging
believer of Ginsbourger, Le Riche and Carraro 2010, doi 10.1007/978-3-642-10701-6_6), so that the
next point is another one. Nothing of that is kept: the next batch begins with what was measured.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from workbench.domain.parameters import Configuration
from workbench.domain.samples import Sample
from workbench.sampling.base import Ask, Sampler


def next_batch(
    sampler: Sampler,
    owner: Mapping[Configuration, str],
    each: int,
    believed: Callable[[Ask], Sample],
) -> tuple[Ask, ...]:
    """The next points, in the order they were asked for; none where every configuration has ended.

    Parameters
    ----------
    sampler : that was told all that is measured; it is of no use afterwards.
    owner : of each configuration, who measures it.
    each : points of one owner, at most.
    believed : what is expected of a point, as a sample.
    """
    asks: list[Ask] = []
    counts: Counter[str] = Counter()
    known: set[tuple[Configuration, float]] = set()
    while (ask := sampler.ask()) is not None:
        place = (ask.configuration, ask.wl)
        if place in known:  # it learns nothing of what it is told
            break
        known.add(place)
        asks.append(ask)
        own = owner[ask.configuration]
        counts[own] += 1
        sampler.tell([believed(ask)])
        if counts[own] == each:
            for configuration, other in owner.items():
                if other == own:
                    sampler.skip(configuration)
    return tuple(asks)
