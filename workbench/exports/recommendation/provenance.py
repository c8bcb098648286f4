"""Where a recommendation comes from, in words that every format carries."""

from __future__ import annotations

from datetime import UTC, datetime

from workbench.domain.kpis import of
from workbench.domain.lab import HostFacts
from workbench.domain.parameters import Sla
from workbench.domain.recommendations import Recommendation, priced
from workbench.exports.recommendation.base import Context
from workbench.exports.recommendation.functions import FunctionAllocation
from workbench.exports.recommendation.naming import file_stem, one_line


def provenance(recommendation: Recommendation, context: Context) -> dict[str, str]:
    """Where a recommendation comes from, by kebab-case key; each format adds its own prefix.

    What it rests on that nobody measured comes first (`caution`), then what was said with it
    (`note`), such as that nobody has measured the chain.
    """
    chosen, verified = recommendation.chosen, recommendation.verified
    facts = {
        **({"caution": text} if (text := "; ".join(cautions(context))) else {}),
        **({"note": recommendation.note} if recommendation.note else {}),
        "session": recommendation.session,
        "recommendation": recommendation.id,
        "chain": recommendation.chain,
        "model-version": str(recommendation.model_version),
        "judged-by": recommendation.judged_by,
        "sla": sla_texts(recommendation),
        "confidence": f"{recommendation.confidence:g}",
        "date": iso_date(recommendation.at),
        "tool": f"workbench {context.version}",
    }
    if context.host:
        facts["profiled-on"] = host_in_words(context.host)
    if chosen:
        facts["probability"] = _chance(chosen.probability)
        facts["probability-of"] = recommendation.probability_of.replace("_", " ")
        facts["cost"] = priced(chosen.cost, chosen.cost_unit)
        if chosen.extrapolated:
            facts["extrapolated"] = ", ".join(chosen.extrapolated)
        facts["allocation-profiled"] = "yes" if chosen.profiled else "no"
    if verified:
        facts["verified"] = f"{'held' if verified.met else 'missed'}, sample {verified.sample_id}"
    return {key: one_line(text) for key, text in facts.items()}


def cautions(context: Context) -> tuple[str, ...]:
    """What whoever deploys has to know before anything else."""
    return context.host.caveats if context.host else ()


def _chance(probability: float) -> str:
    """Four digits; nothing that was measured is certain."""
    return "over 0.9999" if probability > 0.9999 else f"{probability:.4g}"


def iso_date(at: float) -> str:
    """ISO 8601 in UTC: `2026-05-17T09:30:00Z`."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def sla_text(sla: Sla) -> str:
    """As the user wrote it; a limit that was made without text is spelt out."""
    at = "" if sla.wl is None else f" at {sla.wl:g}"
    return one_line(sla.text) or f"{limit_text(sla)}{at}"


def sla_texts(recommendation: Recommendation) -> str:
    return "; ".join(dict.fromkeys(map(sla_text, recommendation.slas)))


def limit_text(sla: Sla) -> str:
    """`p95_ms <= 200 ms`."""
    return one_line(f"{sla.kpi} {sla.direction} {sla.limit:g} {of(sla.kpi).unit}")


def host_in_words(host: HostFacts) -> str:
    memory = f"{host.memory_bytes / 2**30:.1f} GiB"
    return (
        f"{host.cpu_model}, {host.cores} cores, {memory}, kernel {host.kernel}, "
        f"engine {host.engine}, cgroup {host.cgroup}, lab {host.lab}"
    )


def stem(recommendation: Recommendation) -> str:
    """What the files of a recommendation are called, without their endings."""
    return file_stem(recommendation.session, recommendation.id)


def function_provenance(
    function: FunctionAllocation, recommendation: Recommendation, context: Context
) -> dict[str, str]:
    """The same for one function, with what it gets and which image was profiled."""
    facts = {"function": function.function, "allocation": function.as_text}
    template = context.templates.get(function.function)
    if template:
        facts["template"] = template.name
        if template.image:
            facts["image"] = template.image
        digest = context.host.image_digests.get(template.name, "") if context.host else ""
        if digest:
            facts["image-digest"] = digest
    return {
        **provenance(recommendation, context),
        **{key: one_line(text) for key, text in facts.items()},
    }


def remarks(recommendation: Recommendation, context: Context) -> tuple[str, ...]:
    """Where a recommendation comes from, as lines of a comment."""
    facts = provenance(recommendation, context)
    return tuple(f"{key}: {text}" for key, text in facts.items())
