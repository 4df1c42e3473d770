"""The text of a scrape, written family by family, so that requests run in between.

The formats are prometheus_client's, chosen by the Accept header: the classic text format or OpenMetrics. Both are
sequences of families, so each family is written separately. A broker with a thousand partitions writes tens of
thousands of lines, which in one piece would block the event loop for longer than most requests take.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping

from prometheus_client.core import Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

_END_OF_OPENMETRICS = b"# EOF\n"


class _Family(Collector):
    """A collector of one family, the input of the encoders."""

    def __init__(self, family: Metric) -> None:
        self._family = family

    def collect(self) -> Iterator[Metric]:
        yield self._family


async def exposition(collector: Collector, accept: str, static_labels: Mapping[str, str]) -> tuple[bytes, str]:
    """Return the body and its content type. `static_labels` are added to samples without labels of those names."""
    encode, content_type = choose_encoder(accept)
    body = bytearray()
    for family in collector.collect():
        body += encode(_Family(_labelled(family, static_labels))).removesuffix(_END_OF_OPENMETRICS)
        await asyncio.sleep(0)
    if content_type.startswith("application/openmetrics-text"):
        body += _END_OF_OPENMETRICS
    return bytes(body), content_type


def _labelled(family: Metric, static_labels: Mapping[str, str]) -> Metric:
    if static_labels:
        family.samples = [sample._replace(labels={**static_labels, **sample.labels}) for sample in family.samples]
    return family
