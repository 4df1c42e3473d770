"""The option `failOnDataLoss`, with the meaning that it has in the connector.

Planned records that are no longer in the log (deleted by retention, or with their topic) are an error, or are skipped
with a warning. Offsets without records because of compaction or an aborted transaction are not data loss.
"""

from __future__ import annotations

import logging

from odradek.pipeline.options.broker_options import ReadOptions

_LOG = logging.getLogger(__name__)

_FAIL = (
    "The query should have read records that are lost: they were deleted by retention, by a user, or with their topic. "
    "Set failOnDataLoss to false to continue without them."
)


class DataLossError(Exception):
    """Planned records no longer exist, and failOnDataLoss is true."""


def report_data_loss(options: ReadOptions, loss: str) -> None:
    """Raise DataLossError, or log a warning if failOnDataLoss is false; `loss` is a sentence."""
    if options.fail_on_data_loss:
        raise DataLossError(f"{loss} {_FAIL}")
    _LOG.warning("%s Records may be lost; failOnDataLoss is false, so the query continues.", loss)
