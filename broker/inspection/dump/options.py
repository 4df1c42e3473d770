"""What a command line asks of the printers."""

from __future__ import annotations

from typing import NamedTuple

from odradek.broker.inspection.dump.java import INT32_MAX
from odradek.broker.inspection.dump.record_text import RecordText, string_text


class DumpOptions(NamedTuple):
    """The flags of DumpLogSegments; `is_deep` and `prints_contents` are what they imply for each other.

    `max_bytes` bounds how much of a `.log` is looked at, `max_message_size` how far an index looks for the end of the
    batch that an entry leads to.
    """

    is_deep: bool = False
    prints_contents: bool = False
    skips_record_metadata: bool = False
    checks_sanity: bool = False
    verifies_only: bool = False
    max_bytes: int = INT32_MAX
    max_message_size: int = 5 * 1024 * 1024
    record_text: RecordText = string_text
