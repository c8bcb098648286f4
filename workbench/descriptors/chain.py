"""`chains/NAME.yaml`: VNFs in series and in parallel."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from workbench.descriptors.composition import Composition, node_of, whole_mistakes
from workbench.descriptors.fields import Summary
from workbench.descriptors.lookups import Chain, Lookups
from workbench.descriptors.reading import Descriptor, Located
from workbench.descriptors.references import SinkName, SourceName


class ChainText(Composition, Descriptor):
    """VNFs in series and in parallel, between a source and a sink."""

    kind: Literal["chain"] = "chain"
    summary: Summary = ""
    source: SourceName = "source"
    sink: SinkName = "sink"

    def mistakes_among(self, library: Lookups) -> Iterator[Located]:
        yield from whole_mistakes(self, library)

    def resolved(self, library: Lookups) -> Chain | None:
        node = node_of(self, library)
        return Chain(node, self.source, self.sink) if node else None
