"""Loads and workload values as people say them: `concurrent=130` reads 130 clients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from workbench.domain.parameters import ParameterValue

_COUNTED_IN = {
    "rate": "requests/s",
    "concurrent": "clients",
    "packet_rate": "packets/s",
    "streams": "streams",
}
"""By the name of the primary workload parameter, which stands where something is to be typed."""

_SUFFIXES = {"_bytes": "B", "_mbps": "Mbit/s", "_s": "s"}
"""Unit of a workload parameter's value, by what its key ends with."""


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


def workload_name(key: str) -> str:
    """What is typed: `filesize` of `filesize_bytes`."""
    ending = next((one for one in _SUFFIXES if key.endswith(one)), "")
    return key.removesuffix(ending)


def value_words(key: str, value: ParameterValue) -> str:
    """A workload value as it may be typed: `100kB` of `filesize_bytes` and 100000."""
    if isinstance(value, str):
        return value
    if key == "duty":
        return f"{100 * value:.10g}%"
    unit = next((unit for ending, unit in _SUFFIXES.items() if key.endswith(ending)), "")
    if unit == "B":
        factor, unit = next(
            (one for one in ((1e6, "MB"), (1e3, "kB")) if value >= one[0]), (1.0, unit)
        )
        value /= factor
    return f"{value:.10g}{unit}"


def unsaid_words(key: str, values: Sequence[ParameterValue]) -> tuple[str, str]:
    """That a question leaves out a workload value, and what to do."""
    listed = ", ".join(value_words(key, value) for value in values)
    name = workload_name(key)
    return (
        f"does not say {name}, which was profiled at {listed}",
        f"Add it, as {name}={value_words(key, values[0])}",
    )


def outside_words(
    key: str, value: ParameterValue, known: Mapping[str, Sequence[ParameterValue]]
) -> tuple[str, str]:
    """That nobody profiled as far as a workload value, whose profiles say what, and what to do.

    Parameters
    ----------
    known : the values that were profiled, by function; none where it was set for no function.
    """
    name = workload_name(key)
    if not known:
        return f"{name} was not set in any profile", f"Leave {name} out"
    whose: dict[str, list[str]] = {}
    for function, values in known.items():
        whose.setdefault(_covered(key, values), []).append(function)
    told = "; ".join(
        f"{_together(functions) or 'the whole'} at {at}" for at, functions in whose.items()
    )
    return (
        f"{name}={value_words(key, value)} lies outside everything that was profiled: {told}",
        f"Ask for a value within, or profile it: put {value_words(key, value)} among the values of "
        f"{name} in the campaign, and run that",
    )


def _together(names: Sequence[str]) -> str:
    """`a, b and c`."""
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _covered(key: str, values: Sequence[ParameterValue]) -> str:
    """`1kB to 100kB`; names one by one."""
    ends = [value for value in values if not isinstance(value, str)]
    if len(ends) < len(values) or min(ends) == max(ends):
        return ", ".join(value_words(key, value) for value in values)
    return f"{value_words(key, min(ends))} to {value_words(key, max(ends))}"
