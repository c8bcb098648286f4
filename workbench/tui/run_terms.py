"""What a run needs to know besides its draft: seed, and what to do on a small host."""

from __future__ import annotations

from dataclasses import dataclass, replace

from workbench.domain.drafts import campaign_of
from workbench.domain.messages import PlanCampaign, RunCampaign
from workbench.tui.watch import WATCHED_PACE

REFUSE, FIT, OVERSUBSCRIBE = "refuse", "leave it out", "oversubscribe"
TOO_LARGE = (REFUSE, FIT, OVERSUBSCRIBE)
"""What to do with configurations that this host cannot give."""


@dataclass(frozen=True)
class RunTerms:
    """As they are typed; `seed` may be no number."""

    seed: str = "1"
    too_large: str = REFUSE
    session: str = ""

    def with_(self, name: str, text: str) -> RunTerms:
        return replace(self, **{name: text})

    @property
    def mistakes(self) -> dict[str, str]:
        """By field; whoever runs it would refuse it."""
        number = self.seed.isascii() and self.seed.isdigit() and len(self.seed) <= 9
        return {} if number else {"seed": "must be a whole number, such as 1"}

    def plan(self, draft: str, lab: str | None, budget_s: float | None) -> PlanCampaign:
        return PlanCampaign(
            campaign_of(draft), lab, int(self.seed), budget_s, self.too_large == FIT
        )

    def run(self, draft: str, lab: str | None, budget_s: float | None) -> RunCampaign:
        return RunCampaign(
            campaign_of(draft),
            self.session or None,
            lab,
            int(self.seed),
            budget_s,
            self.too_large == OVERSUBSCRIBE,
            self.too_large == FIT,
            WATCHED_PACE,
        )
