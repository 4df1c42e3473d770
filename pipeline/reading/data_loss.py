"""`failOnDataLoss`, as the connector has it: what becomes of a query whose records have gone.

Records that were planned to be read and are not in the log any more (deleted by retention, or with their topic) are an
error, or are passed over with a warning. What compaction or an aborted transaction took away is no loss: there, offsets
simply have no records.
"""

from __future__ import annotations

import logging

from odradek.pipeline.options.broker_options import ReadOptions

_LOG = logging.getLogger(__name__)

_FAIL = (
    "So records that were to be read are lost: retention has deleted them, or somebody has, perhaps with their topic. "
    "Set failOnDataLoss to false to go on without them."
)


class DataLossError(Exception):
    """Records that were to be read are gone, and failOnDataLoss is true."""


def report_data_loss(options: ReadOptions, what: str) -> None:
    """Raise DataLossError, or log a warning, as the options say."""
    if options.fail_on_data_loss:
        raise DataLossError(f"{what} {_FAIL}")
    _LOG.warning("%s Records may be lost; failOnDataLoss is false, so the query goes on.", what)
