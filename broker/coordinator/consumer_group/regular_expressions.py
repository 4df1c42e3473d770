r"""Subscriptions by regular expression: checked, and matched against topic names, by RE2.

A pattern comes from a client and runs in the broker, so it must take linear time, which Python's `re` does not
guarantee and RE2 does. Compiling holds the interpreter's lock, so patterns have bounds: 32 KB of `\pL` took 2.6
seconds; within the three bounds below the slowest pattern that was tried takes 12 ms of the processor. Both are done
on threads of their own (`DiskThreads.compile` and `match`): a topic's name may take 5 ms, and an id of 32 KB a second,
of a pattern whose states do not fit in its memory. RE2 keeps the last 128 compiled patterns, some 25 MB at most. Kafka
uses RE2/J, whose syntax is the same. A pattern must match the whole name. Source: KIP-848, Kafka's
`TopicRegexResolver`.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache

import msgspec
import re2

from odradek.broker.structured_logging import StructuredLogger
from odradek.protocol.errors import ErrorCode, KafkaError

_LOG = StructuredLogger(__name__)

MAX_PATTERN_BYTES = 4096
MAX_UNICODE_CLASSES = 10
r"""Such as `\pL`, each of which may match a hundred thousand characters. No topic's name needs one."""
_MAX_COMPILED_BYTES = 192 * 1024
_UNICODE_CLASS = re.compile(r"\\[pP]")


class ResolvedExpression(msgspec.Struct, frozen=True):
    """The topics that a pattern matched in the metadata of revision `version`, and the time (`timestamp`, ms)."""

    topics: frozenset[str] = frozenset()
    version: int = 0
    timestamp: int = 0


def check(pattern: str) -> None:
    """Raise INVALID_REGULAR_EXPRESSION if RE2 refuses the pattern, or would take long to compile it.

    On the event loop, call it only after `refusal` in a thread.
    """
    refused = refusal(pattern)
    if refused is not None:
        raise KafkaError(ErrorCode.INVALID_REGULAR_EXPRESSION, refused)


@lru_cache(maxsize=128)
def refusal(pattern: str) -> str | None:
    """Return why the pattern is refused, or None. The last answers are kept; another takes up to 12 ms."""
    # Differs from Kafka: it has none of these bounds, because a request there blocks only a thread.
    if len(pattern.encode()) > MAX_PATTERN_BYTES:
        return _refusal(f"{pattern[:100]}…", f"it is longer than {MAX_PATTERN_BYTES} bytes")
    if len(_UNICODE_CLASS.findall(pattern)) > MAX_UNICODE_CLASSES:
        return _refusal(pattern, f"it has more than {MAX_UNICODE_CLASSES} Unicode classes")
    try:
        _compiled(pattern)
    except re2.error as error:
        return _refusal(pattern, _reason(error))
    return None


def resolve(
    patterns: Collection[str], topic_names: Collection[str], version: int, timestamp: int
) -> dict[str, ResolvedExpression]:
    """Return the topics that each pattern matches. Call it in a thread."""
    return {pattern: ResolvedExpression(matching(pattern, topic_names), version, timestamp) for pattern in patterns}


def matching(pattern: str, names: Collection[str]) -> frozenset[str]:
    """Return the names that the pattern matches. Takes time linear in their length; call it in a thread."""
    try:
        matches = _compiled(pattern).fullmatch
    except re2.error as error:
        # Patterns are checked when they come. This one was stored by a broker whose engine accepts more.
        _LOG.warning("stored regular expression matches nothing", pattern=pattern, reason=_reason(error))
        return frozenset()
    return frozenset(name for name in names if matches(name) is not None)


def _compiled(pattern: str) -> re2._Regexp[str]:
    """Return the pattern as RE2 runs it. Raises `re2.error`."""
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True  # groups would need a slower engine
    options.max_mem = _MAX_COMPILED_BYTES
    return re2.compile(pattern, options)


def _refusal(pattern: str, reason: str) -> str:
    return f"SubscribedTopicRegex `{pattern}` is not a valid regular expression: {reason}."


def _reason(error: re2.error) -> str:
    (reason,) = error.args
    return reason.decode() if isinstance(reason, bytes) else str(reason)
