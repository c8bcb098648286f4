"""The report of a recommendation as one HTML file."""

from __future__ import annotations

from collections.abc import Mapping

from workbench.domain.recommendations import Recommendation
from workbench.exports.html_text import page_text
from workbench.exports.recommendation.base import Context
from workbench.exports.recommendation.provenance import provenance, stem
from workbench.exports.recommendation.report import report


def export_html(recommendation: Recommendation, context: Context) -> Mapping[str, str]:
    """HTML: a report with plots."""
    text = page_text(report(recommendation, context), provenance(recommendation, context))
    return {f"{stem(recommendation)}.html": text}
