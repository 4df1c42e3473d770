"""The options of a command line for the printers."""

from __future__ import annotations

from typing import NamedTuple

from odradek.broker.inspection.dump.java import INT32_MAX
from odradek.broker.inspection.dump.record_text import RecordText, string_text


class DumpOptions(NamedTuple):
    """The flags of DumpLogSegments; `is_deep` and `prints_contents` include the flags that imply them.

    `max_bytes` limits how much of a `.log` is read, `max_message_size` the distance in which the end of an index
    entry's batch is searched.
    """

    is_deep: bool = False
    prints_contents: bool = False
    skips_record_metadata: bool = False
    checks_sanity: bool = False
    verifies_only: bool = False
    max_bytes: int = INT32_MAX
    max_message_size: int = 5 * 1024 * 1024
    record_text: RecordText = string_text
