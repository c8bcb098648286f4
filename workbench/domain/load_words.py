"""A load as people say it: what is typed as `concurrent=130` reads 130 clients."""

from __future__ import annotations

from collections.abc import Mapping

_COUNTED_IN = {
    "rate": "requests/s",
    "concurrent": "clients",
    "packet_rate": "packets/s",
    "streams": "streams",
}
"""By the name of the primary workload parameter, which stands where something is to be typed."""


def load_words(name: str, figure: str) -> str:
    """`130 clients` of `concurrent` and `130`; the name itself where nobody counts in anything."""
    unit = _COUNTED_IN.get(name)
    if unit is None:
        return f"{name} {figure}"
    return f"{figure} {unit.removesuffix('s') if figure == '1' and '/' not in unit else unit}"


def profiled_words(name: str, loads: Mapping[str, tuple[float, float]]) -> str:
    """Which function was profiled at what: `haproxy at 1 to 130 clients`.

    Parameters
    ----------
    loads : the lowest and the highest load, by function.
    """
    if not loads:
        return "of no function"
    return ", ".join(
        f"{function} at {load_words(name, f'{low:.6g} to {high:.6g}')}"
        for function, (low, high) in loads.items()
    )
