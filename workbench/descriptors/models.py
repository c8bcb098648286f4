"""Which model describes which kind of descriptor."""

from __future__ import annotations

from collections.abc import Mapping

from workbench.descriptors.campaign import CampaignText
from workbench.descriptors.chain import ChainText
from workbench.descriptors.lab_hosts import HostsText
from workbench.descriptors.lookups import Kind
from workbench.descriptors.mapping import MappingText
from workbench.descriptors.metrics import MetricsText
from workbench.descriptors.prices import PricesText
from workbench.descriptors.reading import Descriptor
from workbench.descriptors.vnf import VnfText

MODELS: Mapping[Kind, type[Descriptor]] = {
    "vnf": VnfText,
    "chain": ChainText,
    "campaign": CampaignText,
    "metrics": MetricsText,
    "prices": PricesText,
    "mapping": MappingText,
    "hosts": HostsText,
}
