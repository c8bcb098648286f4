"""What `canary` says of a proposal, for people."""

from __future__ import annotations

import pytest

from workbench.cli.canary import _text
from workbench.domain.profiles import FittedModel
from workbench.domain.questions import ChainRetrained
from workbench.domain.retraining import HeldOutScores, Proposal


@pytest.mark.parametrize(
    ("gain", "said"),
    [
        (True, "Accept it with --accept, or turn it down with --reject --why."),
        (
            False,
            "It shows no gain, so it is not in force: --accept puts it in force all the same, "
            "--reject --why turns it down.",
        ),
    ],
)
def test_what_can_be_done_with_a_proposal_goes_by_what_it_gains(gain: bool, said: str) -> None:
    scores = HeldOutScores(5, 41.2, 41.0, 40.8, 0.87, 2.1)
    model = FittedModel("correction-offset", {}, ("s1", "s2"), (43.9,))
    made = Proposal(
        "3fa29c", "c", "p95_ms", 0, model, (), "leave-one-load-out", scores, scores, 0.03, gain,
        "Nothing can be gained.", (),
    )  # fmt: skip
    lines = list(_text(ChainRetrained("c", "p95_ms", 0, None, made, None, None)))
    assert lines[-2:] == [said, "In force: the stand-alone profiles"]
