"""What a run needs to know besides its draft: seed, and what to do on a small host."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace

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

    @classmethod
    def remembered(cls, stored: Mapping[str, str]) -> RunTerms:
        """As `changed` gave them; what is not one of the terms says nothing."""
        too_large = stored.get("too_large", REFUSE)
        return cls(
            stored.get("seed", cls.seed),
            too_large if too_large in TOO_LARGE else REFUSE,
            stored.get("session", cls.session),
        )

    @property
    def changed(self) -> dict[str, str]:
        """What is not as it is where nobody says anything."""
        usual = asdict(RunTerms())
        return {name: value for name, value in asdict(self).items() if value != usual[name]}

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
