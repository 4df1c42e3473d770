r"""Subscriptions by regular expression: checked, and matched against topic names, by RE2.

A pattern comes from a client and runs in the broker, so it must take linear time, which Python's `re` does not
guarantee and RE2 does. Compiling blocks the event loop, so patterns have bounds: 32 KB of `\pL` took 2.6 seconds;
within the three bounds below the slowest pattern that was tried takes 20 ms. Kafka uses RE2/J, whose syntax is the
same. A pattern must match the whole name. Source: KIP-848, Kafka's `TopicRegexResolver`.
"""

from __future__ import annotations

import re
from collections.abc import Collection

import msgspec
import re2

from odradek.broker.structured_logging import StructuredLogger
from odradek.protocol.errors import ErrorCode, KafkaError

_LOG = StructuredLogger(__name__)

MAX_PATTERN_BYTES = 4096
MAX_UNICODE_CLASSES = 10
r"""Such as `\pL`, each of which may match a hundred thousand characters. No topic's name needs one."""
_MAX_COMPILED_BYTES = 1 << 20
_UNICODE_CLASS = re.compile(r"\\[pP]")


class ResolvedExpression(msgspec.Struct, frozen=True):
    """The topics that a pattern matched in the metadata of revision `version`, and the time (`timestamp`, ms)."""

    topics: frozenset[str] = frozenset()
    version: int = 0
    timestamp: int = 0


def check(pattern: str) -> None:
    """Raise INVALID_REGULAR_EXPRESSION if RE2 refuses the pattern, or would take long to compile it."""
    # Differs from Kafka: it has none of these bounds, because a request there blocks only a thread.
    if len(pattern.encode()) > MAX_PATTERN_BYTES:
        detail = f"it is longer than {MAX_PATTERN_BYTES} bytes"
        raise KafkaError(ErrorCode.INVALID_REGULAR_EXPRESSION, _refusal(f"{pattern[:100]}…", detail))
    if len(_UNICODE_CLASS.findall(pattern)) > MAX_UNICODE_CLASSES:
        detail = f"it has more than {MAX_UNICODE_CLASSES} Unicode classes"
        raise KafkaError(ErrorCode.INVALID_REGULAR_EXPRESSION, _refusal(pattern, detail))
    try:
        compiled(pattern)
    except re2.error as error:
        raise KafkaError(ErrorCode.INVALID_REGULAR_EXPRESSION, _refusal(pattern, _reason(error))) from error


def resolve(
    patterns: Collection[str], topic_names: Collection[str], version: int, timestamp: int
) -> dict[str, ResolvedExpression]:
    """Return the topics that each pattern matches. Takes linear time; call it in a thread."""
    return {pattern: ResolvedExpression(_matches(pattern, topic_names), version, timestamp) for pattern in patterns}


def _matches(pattern: str, topic_names: Collection[str]) -> frozenset[str]:
    try:
        matches = compiled(pattern).fullmatch
    except re2.error as error:
        # Patterns are checked when they come. This one was stored by a broker whose engine accepts more.
        _LOG.warning("stored regular expression matches nothing", pattern=pattern, reason=_reason(error))
        return frozenset()
    return frozenset(name for name in topic_names if matches(name) is not None)


def compiled(pattern: str) -> re2._Regexp[str]:
    """Return the pattern as RE2 runs it. Raises `re2.error`; call `check` before."""
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MAX_COMPILED_BYTES
    return re2.compile(pattern, options)


def _refusal(pattern: str, reason: str) -> str:
    return f"SubscribedTopicRegex `{pattern}` is not a valid regular expression: {reason}."


def _reason(error: re2.error) -> str:
    (reason,) = error.args
    return reason.decode() if isinstance(reason, bytes) else str(reason)
