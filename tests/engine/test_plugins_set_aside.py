"""A plugin that breaks in mid-campaign is named and set aside; the campaign goes on without it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import pytest_asyncio
from engine_watching import SMALL, Watched, by_default_models, stored_samples

from workbench import plugins
from workbench.domain.events import Noted
from workbench.domain.messages import RunCampaign
from workbench.domain.parameters import OperatingPoint
from workbench.engine.learning import sampler_client
from workbench.link.socket import SocketClient

pytestmark = pytest.mark.asyncio(loop_scope="module")
LONG = pytest.mark.long
"""Raises as another one does, which stays in the gate."""

PARTS = '''
import sys
import time

import numpy as np

from workbench.sampling.base import Ask
from workbench.sampling.blocks import BlockSampler


class Raises(BlockSampler):
    """Asks well three times."""

    def tell(self, samples):
        super().tell(samples)
        self.told = getattr(self, "told", 0) + len(samples)
        if self.told >= 3:
            raise ZeroDivisionError("by my own fault")


class Exits(BlockSampler):
    def ask(self):
        raise SystemExit(5)


class Strays(BlockSampler):
    def ask(self):
        ask = super().ask()
        return Ask(ask.configuration, 1e6, 0, 1e6, 1e6, "far")


class Hangs(BlockSampler):
    def tell(self, samples):
        time.sleep(3600)


class Hollow:
    def fit(self, X, y, noise=None):
        return self

    def predict(self, X):
        return np.full(len(X), np.nan)

    def predict_band(self, X):
        return self.predict(X), self.predict(X)


class Bursts(Hollow):
    def predict(self, X):
        raise ZeroDivisionError("by its own fault")


class Quits(Hollow):
    def fit(self, X, y, noise=None):
        sys.exit(4)


class Tilts(Hollow):
    """Knows the loads that Algorithm 1 asks it about, and draws no curve."""

    def predict(self, X):
        if len(X) > 20:
            sys.exit(6)
        return np.zeros(len(X))
'''
ENTRY_POINTS = """[workbench.samplers]
raises = bad_parts:Raises
exits = bad_parts:Exits
strays = bad_parts:Strays
hangs = bad_parts:Hangs
[workbench.models]
hollow = bad_parts:Hollow
bursts = bad_parts:Bursts
quits = bad_parts:Quits
tilts = bad_parts:Tilts
"""


@pytest.fixture(scope="module", autouse=True)
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A package of bad parts, found by this process and by its worker."""
    folder = tmp_path_factory.mktemp("bad-parts")
    (folder / "bad_parts.py").write_text(PARTS)
    info = folder / "bad_parts-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: bad-parts\nVersion: 1\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    sys.path.insert(0, str(folder))
    plugins._found.cache_clear()
    yield folder
    sys.path.remove(str(folder))
    plugins._found.cache_clear()


def asking(folder: Path, sampling: str) -> str:
    """A campaign with that sampler or model; long enough for a model to be asked when to stop."""
    most = 14 if "model" in sampling else 6
    text = by_default_models(Path(SMALL).read_text())
    path = folder / "campaign.yaml"
    path.write_text(text.replace("{max_samples: 6}", f"{{max_samples: {most}, {sampling}}}"))
    return str(path)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shipped(
    client: SocketClient, tmp_path_factory: pytest.TempPathFactory
) -> list[OperatingPoint]:
    """What is asked where the campaign names nothing but what ships."""
    path = asking(tmp_path_factory.mktemp("shipped"), "model: gaussian-process")
    await client.ask(RunCampaign(path, session="shipped", lab="sim", seed=7))
    async with client.follow("shipped") as feed:
        assert (await Watched(feed).finish()).outcome == "done"
    return [sample.point for sample in await stored_samples(client, "shipped")]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sampling", "sentence"),
    [
        ("method: raises", "sampler 'raises' raises ZeroDivisionError: by my own fault"),
        pytest.param("method: exits", "sampler 'exits' raises SystemExit: 5", marks=LONG),
        ("method: strays", "sampler 'strays' asks for a load of 1e+06, outside of 50 to 2000"),
        ("model: hollow", "model 'hollow' predicts what is not finite"),
        pytest.param(
            "model: bursts", "model 'bursts' raises ZeroDivisionError: by its own fault", marks=LONG
        ),
        ("model: quits", "model 'quits' raises SystemExit: 4"),
        ("model: tilts", "model 'tilts' raises SystemExit: 6"),
        ("method: hangs", "sampler 'hangs' or model 'gaussian-process' has not answered for 3 s"),
    ],
)
async def test_it_is_named_and_a_built_in_one_takes_over(
    client: SocketClient,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    shipped: list[OperatingPoint],
    sampling: str,
    sentence: str,
) -> None:
    hangs = "hangs" in sampling
    if hangs:
        monkeypatch.setattr(sampler_client, "PATIENCE_S", 3.0)
    name = sampling.replace(": ", "-")
    await client.ask(RunCampaign(asking(tmp_path, sampling), session=name, lab="sim", seed=7))
    async with client.follow(name) as feed:
        watched = Watched(feed)
        if hangs:  # from now on only a hang is late
            await watched.until(lambda change: _noted(change, sentence))
            monkeypatch.undo()
        assert (await watched.finish()).outcome == "done"
    samples = await stored_samples(client, name)
    assert len({(s.point.configuration, s.point.wl, s.point.repetition) for s in samples}) == len(
        samples
    )
    notes = [line.text for line in watched.view.log if sentence in line.text]
    assert len(notes) == 1, "said once"
    assert "takes over" in notes[0] or "take over" in notes[0]
    if "model" in sampling:  # it is the model's fault, and the sampler goes on as if without it
        assert not [line.text for line in watched.view.log if "the sampler" in line.text]
    if "model" in sampling and "tilts" not in sampling:
        assert [s.point for s in samples] == shipped
    views = watched.view.configurations
    assert all(view.curve is not None for view in views)
    assert {b.rule for view in views for b in view.breakpoints if b.state == "found"} >= {
        "capacity"
    }


def _noted(change: object, sentence: str) -> bool:
    fact = getattr(change, "fact", None)
    return isinstance(fact, Noted) and sentence in fact.text
