"""The simulated lab against a recorded session of the real one."""

import json
import math

import calibrate_simulation as calibration
import pytest

from workbench.labs.simulated import SimulationOptions
from workbench.labs.simulated.component_models import stand_in


def test_templates_and_defaults_are_what_was_fitted() -> None:
    campaign = calibration.demo()
    fitted = calibration.fit(campaign, calibration.recorded(calibration.SESSION, campaign))
    assert json.loads(calibration.RESULT.read_text())["fitted"] == json.loads(
        json.dumps(calibration.asdict(fitted))
    )
    for template in campaign.templates:
        part = stand_in(template)
        assert part.service(10_000).mean_s * 1e6 == pytest.approx(
            fitted.service_us[template.name], rel=0.01
        )
        assert part.connection_us == pytest.approx(
            fitted.connection_us[template.name], rel=0.01, abs=0.1
        )
    options = SimulationOptions()
    assert options.hop_us == pytest.approx(fitted.hop_us, rel=0.01)
    spread = math.hypot(options.window_sd, options.drift_sd, options.jitter_sd / math.sqrt(6))
    assert spread == pytest.approx(fitted.throughput_sd, rel=0.02)
    assert options.tail_sd == pytest.approx(fitted.tail_sd, rel=0.02)


async def test_simulated_and_real_differ_by_at_most_a_fifth() -> None:
    campaign = calibration.demo()
    real = calibration.recorded(calibration.SESSION, campaign)
    simulated = await calibration.simulate(campaign, real)
    for kpi, difference in calibration.compare(real, simulated).items():
        assert difference.points >= 70
        assert difference.median <= 0.2, kpi
