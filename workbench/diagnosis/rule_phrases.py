"""What the sentences of several rules share."""

from __future__ import annotations

from workbench.diagnosis.base import Case
from workbench.diagnosis.readings import Reading


def beside_alone(case: Case, component: str, name: str, what: str) -> list[str]:
    alone = case.alone_mean(component, name)
    return [] if alone is None else [f"on its own: {alone:.2f} {what}"]


def not_cpu(case: Case) -> str:
    """What is known of CPU, where it is not the cause."""
    used = max((case.seen.sample.usage[n].cpu_share for n in case.order), default=0.0)
    waits = [wait_share(case.seen, name) for name in case.order]
    known = [wait for wait in waits if wait is not None]
    waited = f", waiting at most {max(known):.0%} of a request" if known else ""
    return f"not CPU (usage at most {used:.0%}{waited})"


def wait_share(seen: Reading, name: str) -> float | None:
    """Waiting for CPU as a share of what a request takes; None where it is not known."""
    waited = seen.per_request(name, "cpu_wait_s")
    return None if waited is None or not seen.mean_s else min(1.0, waited / seen.mean_s)


def extra_cpu(case: Case, name: str) -> float:
    """What a function's requests lose to CPU that they do not take on its own, 0 to 1.

    As a share of a request's time; where the function has little CPU left and requests queue for
    it, as a share of its CPU.
    """
    here = cpu_per_request(case.seen, name)
    known = [cpu for one in case.alone.get(name, ()) if (cpu := cpu_per_request(one, name))]
    used, mean_s = case.seen.usage(name), case.seen.mean_s
    if not here or not known or used is None or not mean_s:
        return 0.0
    more_s = max(0.0, here - sum(known) / len(known))
    return min(1.0, max(more_s / mean_s, min(1.0, used.cpu_share) * more_s / here))


def cpu_per_request(seen: Reading, name: str) -> float | None:
    """CPU seconds that a component spends on a request; None where nobody says."""
    used = seen.usage(name)
    return used.cpu_cores / seen.rate if used is not None and seen.rate else None


def most_throttled(case: Case) -> tuple[str, float]:
    shares = {n: u.throttled_share for n in case.order if (u := case.seen.usage(n)) is not None}
    name = max(shares, key=lambda one: shares[one], default="")
    return name, shares.get(name, 0.0)
