"""What our own processes burn while the real lab measures: `make bench`, where an engine answers.

    python benchmarks/own_cpu.py [--samples 12]

A campaign runs by the installed command; every sample carries what the engine and its worker took
while its windows ran (component `workbench`).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import median

COMMAND = Path(sys.executable).parent / "workbench"
CAMPAIGN = Path(__file__).parents[1] / "tests" / "data" / "real.yaml"
TARGET_CORES = 0.05
OWN = "workbench"
LONGEST_S = 600


@dataclass(frozen=True)
class OwnCpu:
    """Cores that our own processes took, by sample."""

    cores: tuple[float, ...]

    @property
    def median(self) -> float:
        return median(self.cores)


def measure(samples: int) -> OwnCpu:
    """Run the tests' campaign for so many samples. Raises `SystemExit` where no engine answers."""
    with tempfile.TemporaryDirectory(prefix="wb-") as folder:
        root = Path(folder)
        (root / "sessions").mkdir()
        (root / "run").mkdir(mode=0o700)
        text = CAMPAIGN.read_text().replace("max_samples: 5", f"max_samples: {samples}")
        method = f"{{method: uniform, max_samples: {samples}}}"
        (root / "own.yaml").write_text(
            text.replace(f"{{max_samples: {samples}}}", method), encoding="utf-8"
        )
        arguments = ("run", str(root / "own.yaml"), "--lab", "docker", "--json")
        done = subprocess.run(
            [COMMAND, *arguments, "--session", "own-cpu"],
            env=os.environ | {"WORKBENCH_WORKSPACE": folder, "XDG_RUNTIME_DIR": str(root / "run")},
            capture_output=True,
            text=True,
            timeout=LONGEST_S,
            check=False,
        )
        events = [json.loads(line) for line in done.stdout.splitlines()]
        taken = [event["sample"] for event in events if event["event"] == "SampleTaken"]
        if not taken:
            raise SystemExit(f"no sample was taken: {done.stderr.strip()}")
        return OwnCpu(tuple(sample["usage"][OWN]["cpu_cores"] for sample in taken))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=12)
    parser.add_argument("--figure", action="store_true", help="the median alone, in cores")
    chosen = parser.parse_args()
    seen = measure(chosen.samples)
    if chosen.figure:
        print(seen.median)
        return
    each = " ".join(f"{cores:.3f}" for cores in seen.cores)
    print(f"own CPU while a window runs, by sample: {each} cores")
    print(f"median of {len(seen.cores)}: {seen.median:.1%} of a core   target < {TARGET_CORES:.0%}")


if __name__ == "__main__":
    main()
