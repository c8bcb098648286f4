"""Chains of functions over the input rate, after paper D: `python benchmarks/chained_functions.py`.

Linear chains of one to five packet inspectors at a constant rate and in bursts: loss, throughput,
one-way delay and CPU (its Figs. 8, 14-16); a proxy with one core and with two: CPU per core and
imbalance, delay (Figs. 11, 12); a chain that splits (Fig. 17). Needs a Docker engine and a quiet
host of two cores. Sessions that are there already are taken.
"""

from __future__ import annotations

import argparse
import csv
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from science import svg

HERE = Path(__file__).resolve().parent
PACKETS, REQUESTS = (HERE / f"chained_functions{end}.yaml" for end in ("", "_http"))
PLOT = HERE.parent / "docs" / "images" / "chained-functions.svg"
TABLE = HERE / "results" / "chained-functions.csv"
BURSTS = "  - {name: duty, values: [25%]}\n  - {name: period, values: [500 ms]}\n"
WORKBENCH = (sys.executable, "-m", "workbench")
FUNCTIONS = re.compile(r"usage\.(.+)\.cpu_cores")
OTHERS = ("source", "sink", "host", "workbench")
Row = dict[str, str]


def command(*words: str) -> None:
    """Raises `SystemExit` where it fails."""
    done = subprocess.run([*WORKBENCH, *words], stdout=subprocess.DEVNULL, check=False)
    if done.returncode not in {0, 1}:  # 1: a finding
        raise SystemExit(f"workbench {' '.join(words)}: exit {done.returncode}")


def exported(session: str, form: str, folder: Path) -> list[Row]:
    file = folder / f"{session}.{form}.csv"
    command("export", session, "--as", form, "--output", str(file))
    with file.open(encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def measured(name: str, campaign: Path, lab: str, folder: Path) -> list[Row]:
    """A row for each sample, with its cores' busy seconds where somebody counted them."""
    listed = subprocess.run([*WORKBENCH, "ls"], stdout=subprocess.PIPE, text=True, check=True)
    if name not in listed.stdout.split():
        command(
            *("run", str(campaign), "--lab", lab, "--headless", "--oversubscribe"),
            *("--session", name),
        )
    rows = exported(name, "csv", folder)
    busy = cores(exported(name, "evidence", folder))
    # Both are in the order of the samples; where some have no evidence nobody says which.
    known = busy if len(busy) == len(rows) else [[] for _ in rows]
    for row, cores_s in zip(rows, known, strict=True):
        row["cores"] = " ".join(f"{spent_s:.3f}" for spent_s in cores_s)
    return rows


def cores(evidence: Iterable[Row]) -> list[list[float]]:
    """For each sample the seconds that each core was busy in all windows."""
    spent: dict[str, dict[str, float]] = {}
    for row in evidence:
        if row["name"] == "core_busy_s" and row["value"]:
            of = spent.setdefault(row["sample"], {})
            of[row["detail"]] = of.get(row["detail"], 0.0) + float(row["value"])
    return [[of[core] for core in sorted(of)] for of in spent.values()]


def functions(row: Row) -> list[tuple[str, float]]:
    """Each function of a sample with the share of its quota that it used."""
    names = [found[1] for key in row if (found := FUNCTIONS.fullmatch(key)) and row[key]]
    shares = [(name, row[f"usage.{name}.cpu_share"]) for name in names if name not in OTHERS]
    return [(name, float(share)) for name, share in shares if share]


def figure(row: Row, column: str) -> float:
    return float(row[column]) if row.get(column) else float("nan")


def imbalance(row: Row) -> float:
    """The busiest core over the mean of all; 1 where they share the work evenly."""
    busy = [float(one) for one in row["cores"].split()]
    return max(busy) * len(busy) / sum(busy) if busy and sum(busy) else float("nan")


def cpu(row: Row) -> float:
    """Of the function that is busiest, in percent of its quota."""
    return 100 * max((share for _, share in functions(row)), default=float("nan"))


def series(
    rows: Sequence[Row], value: Callable[[Row], float], by: Sequence[str] = ("target",)
) -> list[svg.Series]:
    """A line for each target (or whatever else tells rows apart), over the rate."""
    groups: dict[str, list[Row]] = {}
    for row in sorted(rows, key=lambda one: float(one["wl"])):
        groups.setdefault(" ".join(row[column] for column in by), []).append(row)
    return [
        svg.Series(name, [float(r["wl"]) for r in those], [value(r) for r in those])
        for name, those in sorted(groups.items())
    ]


def plot(constant: list[Row], bursty: list[Row], requests: list[Row]) -> str:
    """Panels, two beside each other."""
    rate = "packets/s offered"
    panels = []
    for label, column, log in (
        ("Loss, %", "loss_pct", False),
        ("Throughput, packets/s", "throughput_pps", True),
        ("Delay, p50, ms", "p50_ms", True),
    ):
        for kind, rows in (("constant", constant), ("bursts", bursty)):
            lines = series(rows, lambda row, column=column: figure(row, column))
            panels.append(svg.lines(f"{label}: {kind}", rate, label, lines, log_y=log))
    for kind, rows in (("constant", constant), ("bursts", bursty)):
        title = f"CPU of the busiest function: {kind}"
        panels.append(svg.lines(title, rate, "% of its quota", series(rows, cpu), log_y=False))
    alone = [row for row in requests if row["target"] == "haproxy"]
    by = ("target", "haproxy.vcpu")
    panels.append(
        svg.lines(
            "Cores of the host, one and two of them given to haproxy",
            "requests/s offered",
            "busiest over mean",
            series(alone, imbalance, by),
            log_y=False,
        )
    )
    means = series(alone, lambda row: figure(row, "mean_ms"), by)
    panels.append(svg.lines("Mean response time", "requests/s offered", "ms", means))
    split = [row for row in requests if row["target"] == "split"]
    split.sort(key=lambda row: float(row["wl"]))
    shares = [
        svg.Series(
            name, [figure(r, "wl") for r in split], [100 * dict(functions(r))[name] for r in split]
        )
        for name, _ in functions(split[0])
    ]
    panels.append(
        svg.lines("CPU in a chain that splits", "requests/s", "% of quota", shares, log_y=False)
    )
    throughput = series(split, lambda row: figure(row, "throughput_rps"))
    panels.append(svg.lines("Throughput of it", "requests/s offered", "requests/s", throughput))
    return framed(panels)


def framed(panels: Sequence[str]) -> str:
    across, down = 2 * svg.WIDTH, (len(panels) + 1) // 2 * svg.HEIGHT
    placed = [
        panel.replace("<svg ", f"<svg x='{i % 2 * svg.WIDTH}' y='{i // 2 * svg.HEIGHT}' ", 1)
        for i, panel in enumerate(panels)
    ]
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {across} {down}' "
        f"width='{across}' height='{down}'>\n{''.join(placed)}</svg>\n"
    )


def write(rows: Sequence[tuple[str, Row]], file: Path) -> None:
    """One line for each sample: what was offered, what came of it, who used how much CPU."""
    columns = ("loss_pct", "loss_pct_high", "throughput_pps", "throughput_rps")
    columns += ("p50_ms", "p95_ms", "mean_ms")
    with file.open("w", encoding="utf-8", newline="") as lines:
        out = csv.writer(lines, lineterminator="\n")
        out.writerow(("load", "target", "rate", *columns, "cpu_share", "cores_busy_s", "labels"))
        for load, row in rows:
            shares = " ".join(f"{name}={share:.3f}" for name, share in functions(row))
            told = [row.get(column, "") for column in columns]
            out.writerow(
                (load, row["target"], row["wl"], *told, shares, row["cores"], row["labels"])
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--name", default="chained", help="what the sessions' names begin with")
    parser.add_argument("--lab", default="docker")
    parser.add_argument("--short", action="store_true", help="two loads of each, nothing written")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        texts = {
            "constant": PACKETS.read_text(encoding="utf-8"),
            "bursts": PACKETS.read_text(encoding="utf-8").replace(
                "workload_parameters:\n", f"workload_parameters:\n{BURSTS}", 1
            ),
            "requests": REQUESTS.read_text(encoding="utf-8"),
        }
        found: dict[str, list[Row]] = {}
        for kind, text in texts.items():
            if given.short:
                text = re.sub(r"max_samples: \d+", "max_samples: 2", text)
            campaign = folder / f"{kind}.yaml"
            campaign.write_text(text, encoding="utf-8")
            found[kind] = measured(f"{given.name}-{kind}", campaign, given.lab, folder)
            print(f"{kind}: {len(found[kind])} samples")
    picture = plot(found["constant"], found["bursts"], found["requests"])
    if not given.short:
        PLOT.write_text(picture, encoding="utf-8")
        write([(kind, row) for kind, rows in found.items() for row in rows], TABLE)
        print(f"{PLOT.relative_to(HERE.parent)} and {TABLE.relative_to(HERE.parent)} written")


if __name__ == "__main__":
    main()
