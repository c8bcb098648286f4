"""JSON: the recommendation as the link and `--json` say it, with where it comes from beside it."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from workbench.domain.codec import dumps, to_plain
from workbench.domain.recommendations import Recommendation
from workbench.exports.recommendation.base import Context
from workbench.exports.recommendation.provenance import provenance, stem


def export_json(recommendation: Recommendation, context: Context) -> Mapping[str, str]:
    """JSON: everything, for programs.

    One object: `provenance`, `host` and `why` (null where unknown), `recommendation`.
    """
    document = {
        "provenance": provenance(recommendation, context),
        "host": to_plain(context.host),
        "why": context.why or None,
        "recommendation": to_plain(recommendation),
    }
    text = msgspec.json.format(dumps(document).decode(), indent=2)
    return {f"{stem(recommendation)}.json": text + "\n"}
