"""Real outputs in `tests/data/traffic`: what each tool left after a short load on the sink."""

from pathlib import Path

from workbench.domain.parameters import LoadModel
from workbench.traffic.base import Offer, PathFacts

FOLDER = Path(__file__).parents[1] / "data" / "traffic"

PLAIN = PathFacts(200, 10_000, keep_alive=True, redirects=False, compresses=False)
CLOSED = LoadModel("closed")
THINKING = LoadModel("closed", think_time_s=0.1)


def offer(load: LoadModel, wl: float, seconds: float, size: int = 10_000) -> Offer:
    url = f"http://10.0.0.2:8080/bytes/{size}"
    return Offer(url, load, wl, seconds, True, 10.0, size, "/var/tmp/records")


def recorded(tool: str) -> tuple[bytes, str]:
    """What the tool left in its file, and what it said."""
    records, output = FOLDER / f"{tool}.records", FOLDER / f"{tool}.output"
    return records.read_bytes(), output.read_text(encoding="utf-8")
