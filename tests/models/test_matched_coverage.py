"""The 95 % intervals of every registered model, where its own family made the data."""

from __future__ import annotations

import numpy as np
import pytest
from matched_surfaces import MATCHED
from registered import once_a_kind

from workbench import plugins
from workbench.models.scales import NORMAL_95

OURS = "vnf-workbench"
SURFACES = {"catalogue": 8, "curve-fit": 8, "neural-network": 8}
"""Six of all others: surfaces differ among each other more than rows of one do."""
FEW = 2
"""Outside of `make accept`; bounds are wider for it."""
LEAST_OF_TRUTHS = 0.9
"""Of the band by itself: what 1,800 rows of six surfaces say of it scatters by 2 %, and where a
model errs by far less than the noise its band is wider than it need be (`Conformal`)."""


def test_every_model_has_a_family() -> None:
    own = {n for n in plugins.names("models") if plugins.distribution("models", n) == OURS}
    assert set(MATCHED) == own


def shares(name: str, surfaces: int) -> tuple[float, float]:
    """Of samples not seen, within the band widened by their noise as scores are; of truths."""
    samples, truths = [], []
    for seed in range(surfaces):
        drawn = MATCHED[name].draw(seed)
        model = plugins.load("models", name)()
        told = {
            key: value
            for key in model.get_params()
            for known, value in drawn.told.items()
            if key.rpartition("__")[2] == known
        }
        model.set_params(**told).fit(drawn.X, drawn.y, drawn.noise)
        mean, (low, high) = model.predict(drawn.rows), model.predict_band(drawn.rows)
        below = np.hypot(mean - low, NORMAL_95 * drawn.its_noise)
        above = np.hypot(high - mean, NORMAL_95 * drawn.its_noise)
        samples.append(np.mean((mean - below <= drawn.seen) & (drawn.seen <= mean + above)))
        # At its ceiling a truth is known for certain, and its band has no width.
        truths.append(np.mean((low - 1e-9 <= drawn.truth) & (drawn.truth <= high + 1e-9)))
    return float(np.mean(samples)), float(np.mean(truths))


@pytest.mark.parametrize("name", once_a_kind(MATCHED))
def test_intervals_cover_what_they_say_on_matched_data(name: str, full_length: bool) -> None:
    samples, truths = shares(name, SURFACES.get(name, 6) if full_length else FEW)
    slack = 0.0 if full_length else 0.025
    assert 0.93 - slack <= samples <= 0.97 + slack
    assert truths >= LEAST_OF_TRUTHS - 2.0 * slack
