"""The policies of `auto_offset_reset`: the position of a partition that has none, or one that is out of range.

| policy | position |
|---|---|
| `"latest"` | the end |
| `"earliest"` | the beginning |
| `"none"` | none: an error |
| `"by_duration:PT1H30M"` | the first record that is not older, or the end if there is none (KIP-1106) |

A duration is in ISO 8601, without years, months and weeks as in Kafka: `P1DT2H3M4.5S` and parts of it.
"""

from __future__ import annotations

import re
import time

from odradek.client.errors import NoOffsetError
from odradek.protocol.messages.list_offsets import EARLIEST, LATEST

_BY_DURATION = "by_duration:"
_DURATION = re.compile(
    r"P(?=.)(?:(\d+)D)?(?:T(?=.)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?", re.IGNORECASE | re.ASCII
)
_UNITS_MS = (86_400_000, 3_600_000, 60_000, 1000)


def is_policy(text: str) -> bool:
    """Whether the text is a policy of the table."""
    return text in ("latest", "earliest", "none") or _duration_ms(text) is not None


def reset_time(policy: str, topic: str, partition: int) -> int:
    """The time (ms, EARLIEST or LATEST) to look up. Raises NoOffsetError for that partition if the policy is "none"."""
    if policy == "latest":
        return LATEST
    if policy == "earliest":
        return EARLIEST
    duration = _duration_ms(policy)
    if duration is None:
        raise NoOffsetError(
            "read",
            'there is no position, and auto_offset_reset is "none"',
            "Call seek(), or set auto_offset_reset to earliest or latest",
            topic=topic,
            partition=partition,
        )
    return max(0, time.time_ns() // 1_000_000 - duration)


def _duration_ms(policy: str) -> int | None:
    if not policy.startswith(_BY_DURATION):
        return None
    found = _DURATION.fullmatch(policy.removeprefix(_BY_DURATION))
    if found is None:
        return None
    return round(sum(float(number or 0) * unit for number, unit in zip(found.groups(), _UNITS_MS, strict=True)))
