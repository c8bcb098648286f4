"""The site's own metrics and alerts, asked for once a sample has settled."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import cast

import numpy as np

from workbench.domain.campaign import Campaign, Metric, MetricsServer
from workbench.domain.errors import LabError
from workbench.domain.samples import Measurement
from workbench.labs.base import Lab, NamingLab
from workbench.labs.components.environment import expand
from workbench.measuring import site_metrics
from workbench.measuring.site_metrics import NoFigure, SiteAnswer, SiteQuery
from workbench.measuring.usage import OWN
from workbench.probes.prometheus import AskedSpan, PrometheusServer, Unanswered

ASKING_S = 10.0
"""For all questions to one server about one sample."""
LONGEST_WAIT_S = 20.0
"""For the reading after a window's end."""
CLOCKS_APART_S = 0.5
"""By which the clock may move against the lab's while a sample is measured."""
SPARE_S = 0.3
"""Until what was just read can be asked for."""
MOST_ALERTS = 5
"""Alerts that are told by name."""
MOST_INSTANTS = 200


@dataclass
class TwoClocks:
    """The time of day beside the lab's clock, from the begin of a sample's first drive."""

    lab: Callable[[], float]
    _pairs: list[tuple[float, float]] = field(default_factory=list)

    def note(self) -> None:
        """What both say now."""
        self._pairs.append((time.time(), self.lab()))

    def time_of_day(self, lab_s: float) -> float:
        """Seconds since the epoch. Raises `NoFigure` where the clocks do not go alike."""
        offsets = [day - lab for day, lab in self._pairs]
        apart_s = max(offsets) - min(offsets)
        if apart_s > CLOCKS_APART_S:
            raise NoFigure(
                f"the time of day moved by {apart_s:.1f} s against the lab's clock meanwhile: "
                "which of the site's readings are the sample's is not known"
            )
        return lab_s + offsets[0]


class SiteMetrics:
    """Of one run: its servers, and what each said last."""

    def __init__(self, campaign: Campaign, session: str, lab: Lab) -> None:
        self._campaign = campaign
        self._session = session
        self._naming = cast(NamingLab, lab) if hasattr(lab, "known_as") else None
        self._servers: dict[str, PrometheusServer] = {}

    async def beside(
        self, measurement: Measurement, origin_s: float, clocks: TwoClocks
    ) -> Measurement:
        """The measurement with what the site says of it; raises nothing for what it does not.

        Parameters
        ----------
        origin_s : the lab's clock where the sample began.
        """
        answers: list[SiteAnswer] = []
        alerts: list[str] = []
        faults: list[str] = []
        clocks.note()
        for server in self._campaign.servers:
            own = [m for m in self._campaign.metrics if m.probe == server.name]
            asking = _Asking(server, measurement, origin_s, clocks)
            try:
                asking.client = self._client(server)
                await asking.settle()
            except NoFigure as error:
                asking.fault = str(error)
            for metric in own:
                answers += await self._metric(metric, asking)
            if server.alerts:
                fired, fault = await asking.alerts()
                alerts += fired
                faults += [fault] if fault else []
        return site_metrics.with_site(measurement, answers, alerts, faults)

    async def close(self) -> None:
        async with AsyncExitStack() as closing:  # each, whatever becomes of the others
            while self._servers:
                closing.push_async_callback(self._servers.popitem()[1].close)

    def _client(self, server: MetricsServer) -> PrometheusServer:
        if server.name not in self._servers:
            try:
                url, token = (expand(text, f"probe {server.name}") for text in _secrets(server))
                self._servers[server.name] = PrometheusServer(url, token)
            except LabError as error:
                raise NoFigure(f"{error.what}: export it, and `workbench engine stop`") from None
            except ValueError:
                raise NoFigure("its URL is none") from None
        return self._servers[server.name]

    async def _metric(self, metric: Metric, asking: _Asking) -> list[SiteAnswer]:
        """Of every component that it is asked of, and every window."""
        of, _, name = metric.name.rpartition(":")
        everybody = [one for one in asking.measurement.sample.usage if one != OWN]
        found = []
        for component in everybody if of == "*" else [of]:
            known = {"session": self._session}
            if component:
                known["component"] = component
                known |= self._naming.known_as(component) if self._naming is not None else {}
            column = f"{component}:{name}" if component else name
            for number in range(len(asking.measurement.windows)):
                found.append(await asking.window(number, component, column, (metric, known)))
        return found


@dataclass
class _Asking:
    """One server about one sample."""

    server: MetricsServer
    measurement: Measurement
    origin_s: float
    clocks: TwoClocks
    client: PrometheusServer | None = None
    fault: str = ""
    """Why nothing more is asked."""
    _until_s: float = 0.0

    async def settle(self) -> None:
        """Wait until the windows' last readings are in. Raises `NoFigure`."""
        window = self.measurement.windows[-1] if self.measurement.windows else None
        if window is not None:
            end = self.clocks.time_of_day(self.origin_s + window.start_s + window.duration_s)
            in_s = end + self.server.scrape_interval_s + SPARE_S - time.time()
            await asyncio.sleep(max(0.0, min(in_s, LONGEST_WAIT_S)))
        self._until_s = time.monotonic() + ASKING_S

    async def window(
        self, number: int, component: str, column: str, asked: tuple[Metric, Mapping[str, str]]
    ) -> SiteAnswer:
        window, scrape_s = self.measurement.windows[number], self.server.scrape_interval_s
        metric, known = asked
        none = np.zeros(0)
        try:
            text = site_metrics.filled(metric.template, known)
            plan = site_metrics.plan(text, window.duration_s, scrape_s)
            end_s = self.origin_s + window.start_s + window.duration_s
            values = await self._ask(plan.figure, end_s)
            value, batches = site_metrics.figure(values)
            if plan.batches is not None:
                batches = await self._ask(plan.batches, end_s)
            elif plan.figure.count == 1:
                batches = values
        except (NoFigure, Unanswered) as error:
            return SiteAnswer(number, component, column, None, none, str(error))
        return SiteAnswer(number, component, column, value, batches)

    async def _ask(self, query: SiteQuery, end_s: float) -> np.ndarray:
        """Raises `NoFigure`, `Unanswered`."""
        client = self._ready()
        span = AskedSpan.to(self.clocks.time_of_day(end_s), query.count, query.step_s)
        try:
            values = await client.figures(query.text, span, 2 * self.server.scrape_interval_s)
        except Unanswered as error:
            if error.server:
                self.fault = f"{client.title}: {error}"
                raise NoFigure(self.fault) from None
            raise
        if client.skew_s:
            self.fault = (
                f"the clock of {client.title} is {abs(client.skew_s):.0f} s "
                f"{'ahead' if client.skew_s > 0 else 'behind'}: its readings are of other windows"
            )
            raise NoFigure(self.fault)
        return values

    def _ready(self) -> PrometheusServer:
        if self.client is not None and not self.fault and time.monotonic() > self._until_s:
            self.fault = f"{self.client.title} took {ASKING_S:g} s for those before: not asked"
        if self.client is None or self.fault:
            raise NoFigure(self.fault)
        return self.client

    async def alerts(self) -> tuple[list[str], str]:
        """Sentences on what fired meanwhile; else why that is not known."""
        try:
            client = self._ready()
            begin = self.clocks.time_of_day(self.origin_s)
            length_s = max(time.time() - begin, 1e-3)
            count = min(MOST_INSTANTS, int(length_s / self.server.scrape_interval_s) + 1)
            span = AskedSpan.to(begin + length_s, count, length_s / count)
            fired = await client.firing(span)
        except (NoFigure, Unanswered) as error:
            return [], f"alerts of probe {self.server.name} are not known: {error}"
        return list(_told(fired, self.server, client.title)), ""


def _told(fired: tuple[dict[str, str], ...], server: MetricsServer, title: str) -> Iterator[str]:
    counted = [one for one in fired if one.get("alertname") not in server.ignored_alerts]
    for labels in counted[:MOST_ALERTS]:
        rest = ", ".join(f"{k}={v}" for k, v in list(labels.items())[:6] if k != "alertname")
        text = f"alert {labels.get('alertname', 'without a name')} of {title} fired meanwhile"
        yield "".join(c if c.isprintable() else "·" for c in f"{text} ({rest})")[:300]
    if len(counted) > MOST_ALERTS:
        yield f"and {len(counted) - MOST_ALERTS} more alerts of {title}"


def _secrets(server: MetricsServer) -> tuple[str, str]:
    return server.url, server.token
