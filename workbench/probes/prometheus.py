"""A Prometheus server of the site, asked by its HTTP API. Every wait and every answer is bounded.

`/api/v1/query_range`, `/api/v1/alerts`: https://prometheus.io/docs/prometheus/latest/querying/api/
What goes wrong is an `Unanswered`, a clause without anything secret in it.
"""

from __future__ import annotations

import email.utils
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit, urlunsplit

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:  # an eighth of what `workbench ls` imports, and few sites are asked
    import aiohttp

ANSWER_S = 4.0
"""For one answer."""
ANSWER_BYTES = 1 << 20
"""A scalar over a window takes 5 KB; ten thousand series take more than this."""
MOST_SKEW_S = 2.0
"""Its answers state its time to the second."""
LONGEST_TEXT = 200
DEFAULT_LOOKBACK_S = 300.0
"""How old a value may be that an unaltered server passes for the present one."""


class Unanswered(Exception):
    """Why there is no answer, as a clause. `server`: not this query, but the server is at fault."""

    def __init__(self, what: str, *, server: bool = False) -> None:
        super().__init__(what)
        self.server = server


@dataclass(frozen=True)
class AskedSpan:
    """Instants that are asked for, in milliseconds (since the epoch): both ends, and between."""

    first: int
    last: int
    step: int

    @classmethod
    def to(cls, end_s: float, count: int, step_s: float) -> AskedSpan:
        """So many instants, the last at `end_s`."""
        last, step = round(end_s * 1e3), max(1, round(step_s * 1e3))
        return cls(last - (count - 1) * step, last, step)

    @property
    def count(self) -> int:
        return (self.last - self.first) // self.step + 1


class PrometheusServer:
    """One server; its connections are kept from one question to the next.

    Parameters
    ----------
    url : its root; what stands before an `@` is sent as its user and password and never told.
    """

    def __init__(self, url: str, token: str = "") -> None:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
        self.title = f"the Prometheus at {host}"
        self._root = urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", ""))
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        if parts.username is not None:
            import aiohttp

            user, password = unquote(parts.username), unquote(parts.password or "")
            self._headers["Authorization"] = aiohttp.encode_basic_auth(user, password)
        self._http: aiohttp.ClientSession | None = None
        self.skew_s = 0.0
        """By how much its clock is ahead, where that shows in seconds."""

    async def figures(self, query: str, span: AskedSpan, fresh_s: float) -> NDArray[np.float64]:
        """The values of a query that yields one series. Raises `Unanswered`.

        Parameters
        ----------
        fresh_s : how old a reading may be that counts for an instant.
        """
        series = await self._series(query, span, fresh_s)
        if not series:
            old = await self._series(query, span, DEFAULT_LOOKBACK_S)
            if old:
                raise Unanswered(
                    f"it is stale: its last reading is older than {fresh_s:g} s; is it still read?"
                )
            raise Unanswered("no data: no series fits the query over the window")
        if len(series) > 1:
            named = "; ".join(_labels(one.get("metric")) for one in series[:2])
            raise Unanswered(
                f"{len(series)} series where one is due ({named}, ...): name one, or sum them up"
            )
        return _values(series[0], span)

    async def firing(self, span: AskedSpan) -> tuple[dict[str, str], ...]:
        """Labels of the alerts that fired at some time. Raises `Unanswered`.

        What fires now is asked of `/api/v1/alerts`, what has ended meanwhile is in the series
        `ALERTS`.
        """
        data = await self._ask("alerts", {})
        alerts = data.get("alerts")
        if not isinstance(alerts, list):
            raise Unanswered("its answer on alerts is none", server=True)
        listed = [alert for alert in alerts if isinstance(alert, dict)]
        now = [alert.get("labels") for alert in listed if alert.get("state") == "firing"]
        then = await self._series('ALERTS{alertstate="firing"}', span, 2e-3 * span.step)
        found: dict[str, dict[str, str]] = {}
        for labels in (*now, *(one.get("metric") for one in then)):
            if isinstance(labels, dict):
                text = {str(k): str(v) for k, v in labels.items() if not k.startswith("__")}
                text.pop("alertstate", None)
                found.setdefault(json.dumps(text, sort_keys=True), text)
        return tuple(found.values())

    async def close(self) -> None:
        http, self._http = self._http, None
        if http is not None:
            await http.close()

    async def _series(self, query: str, span: AskedSpan, fresh_s: float) -> list[dict[str, Any]]:
        asked = {
            "query": query,
            "start": f"{span.first / 1e3:.3f}",
            "end": f"{span.last / 1e3:.3f}",
            "step": f"{span.step / 1e3:.3f}",
            "timeout": f"{ANSWER_S:g}s",
            "lookback_delta": f"{max(fresh_s, 1e-3):.3f}",
        }
        data = await self._ask("query_range", asked)
        kind, result = data.get("resultType"), data.get("result")
        if kind != "matrix" or not isinstance(result, list):
            raise Unanswered(f"its answer is a {_printable(kind)} where a matrix is due")
        if not all(isinstance(one, dict) for one in result):
            raise Unanswered("its answer is no list of series")
        return result

    async def _ask(self, what: str, asked: Mapping[str, str]) -> Mapping[str, Any]:
        """The data of an answer. Raises `Unanswered`."""
        import aiohttp

        try:
            status, body, date = await self._get(f"{self._root}/api/v1/{what}", asked)
        except TimeoutError:
            raise Unanswered(f"it gave no answer within {ANSWER_S:g} s", server=True) from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or type(error).__name__
            raise Unanswered(f"it cannot be reached ({_printable(why)})", server=True) from None
        if len(body) > ANSWER_BYTES:
            raise Unanswered(f"its answer is longer than {ANSWER_BYTES >> 20} MiB: too many series")
        self._compare_clocks(date)
        if status in (401, 403):
            raise Unanswered(f"it refuses us ({status}): is its token set?", server=True)
        try:
            answer = json.loads(body)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict):
            raise Unanswered(f"its answer ({status}) is not that of a Prometheus", server=True)
        if answer.get("status") != "success":
            said = f"{answer.get('errorType', 'error')}: {answer.get('error', '')}"
            raise Unanswered(f"it refuses the query ({status}, {_printable(said)})")
        data = answer.get("data")
        if status != 200 or not isinstance(data, dict):
            raise Unanswered(f"its answer ({status}) is not that of a Prometheus", server=True)
        return data

    async def _get(self, url: str, asked: Mapping[str, str]) -> tuple[int, bytes, str]:
        import aiohttp

        if self._http is None:
            self._http = aiohttp.ClientSession(
                timeout=aiohttp.ClientTimeout(total=ANSWER_S),
                connector=aiohttp.TCPConnector(limit=4),
                headers=self._headers,
            )
        async with self._http.get(url, params=asked, allow_redirects=False) as answer:
            body = bytearray()
            while len(body) <= ANSWER_BYTES and (part := await answer.content.readany()):
                body += part
            return answer.status, bytes(body), answer.headers.get("Date", "")

    def _compare_clocks(self, date: str) -> None:
        try:
            told = email.utils.parsedate_to_datetime(date).timestamp()
        except (ValueError, OverflowError):
            return
        skew_s = told - time.time()
        self.skew_s = skew_s if abs(skew_s) > MOST_SKEW_S else 0.0


def _values(series: Mapping[str, Any], span: AskedSpan) -> NDArray[np.float64]:
    rows = series.get("values")
    try:
        values = np.array([float(value) for _, value in rows or ()], dtype=np.float64)
    except (TypeError, ValueError):
        raise Unanswered("its answer has no values that are numbers") from None
    due = span.count
    if not values.size or values.size > due:
        raise Unanswered(f"{values.size} values came where {due} are due")
    if bad := int(np.count_nonzero(~np.isfinite(values))):
        raise Unanswered(f"{bad} of {values.size} values are NaN or infinite: a division by zero?")
    if values.size < due:
        raise Unanswered(
            f"only {values.size} of {due} instants have a value: it was not read all the while"
        )
    return values


def _labels(metric: object) -> str:
    named = metric if isinstance(metric, dict) else {}
    return _printable("{" + ", ".join(f"{k}={v}" for k, v in list(named.items())[:6]) + "}")


def _printable(text: object) -> str:
    line = "".join(c if c.isprintable() else " " for c in str(text)[: LONGEST_TEXT * 2])
    return line if len(line) <= LONGEST_TEXT else f"{line[:LONGEST_TEXT]}..."
