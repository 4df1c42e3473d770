"""Send one script of requests to two servers, and find the differences between their responses.

```
Step(request, version) ─┬─► reference ─► answer ─► plain ─┐
                        └─► subject ───► answer ─► plain ─┴─► differences: path, reference's value, subject's value
```

A request may depend on a value of the server, such as a topic's id: then it is a function of `Seen`, which stores
values of that server's earlier responses. `plain` converts a response to dictionaries and lists without accidental
differences: ids become the names of their objects, times and throttling are removed, lists of structures (which Kafka
keeps in the order of its hash tables) are sorted. An error message must begin with the words of the reference, because
programs search for them; ours may go on. Those of `_OWN_WORDS` are compared only by their presence.

Apache Kafka's controller responds before its broker has applied a change: a step that only reads is repeated, a bounded
number of times, until both responses are equal.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from odradek.protocol.messages.end_txn import EndTxnResponse
from odradek.protocol.messages.init_producer_id import InitProducerIdResponse
from odradek.protocol.messages.join_group import JoinGroupResponse
from odradek.protocol.schema import ZERO_UUID, Message
from tests.wire import Wire

ATTEMPTS = 100
PAUSE = 0.05
"""Seconds between two attempts."""

_UNPREDICTABLE = frozenset(
    {
        "throttle_time_ms", "cluster_id", "host", "port", "usable_bytes",
        "transaction_start_time_ms", "last_timestamp", "coordinator_epoch",
    }
)  # fmt: skip
_SETS = frozenset({"partitions", "subscribed_topic_names"})
"""Lists of plain values that Kafka keeps in hash tables."""
_TEXT = "error_message"
_OWN_WORDS = {
    "This most likely occurs because of a request being malformed": "Kafka's text of INVALID_REQUEST; ours is exact",
    "Local controller 1 ": "a broker has no controller of its own",
    "A feature version cannot be less than 0.": "ours names the versions that can be set",
    "Tiered Storage functionality is disabled": "there is none to enable",
    "These security configs can be dynamically updated only per-listener": "they cannot be set at run time at all",
    " is not allowed for config key": "ours is Kafka's text for a topic",
    "requirement failed: ": "a Scala text; ours names the property",
    "Request Request(": "a Java object; ours names the right that is missing",
    "Error parsing configuration property": "a Java exception; ours shows the form",
    "For input string: ": "a Java exception; ours shows the form",
    "Client metrics subscription name must not be empty": "there are no client metrics",
    " must be greater than or equal to group.": "Kafka 4.4 writes the range, as ours does",
    " must be less than or equal to group.": "Kafka 4.4 writes the range, as ours does",
    " is not a valid regular expression: ": "the reason is RE2's, not that of RE2/J",
    "Unknown operation type 9 is not allowed": "as for every other resource",
}
"""Parts of Kafka's messages that ours do not repeat, with the reason."""
_UUID_LENGTH = 36
"""The end of a member id that a server assigned; no id of a script ends like this."""


class Seen:
    """Values of a server's responses so far."""

    def __init__(self, log_dir: str) -> None:
        self.log_dir = log_dir
        self.topic_ids: dict[str, bytes] = {}
        self.member_ids: list[str] = []  # of classic groups, in the order of their assignment
        self.producer_ids: list[int] = []  # likewise

    def note(self, answer: Any) -> None:
        for structure in _structures(answer):
            name, topic_id = getattr(structure, "name", None), getattr(structure, "topic_id", ZERO_UUID)
            if name and topic_id != ZERO_UUID:
                self.topic_ids[name] = topic_id
        if isinstance(answer, JoinGroupResponse):
            self._note_member(answer.member_id)

    def _note_member(self, member_id: str) -> None:
        if len(member_id) > _UUID_LENGTH and member_id not in self.member_ids:
            self.member_ids.append(member_id)

    def note_producer(self, answer: Any) -> None:
        if isinstance(answer, InitProducerIdResponse | EndTxnResponse):
            new = {answer.producer_id} - {-1, *self.producer_ids}
            self.producer_ids += new


class Step(NamedTuple):
    """One request.

    `reads`: it changes nothing and may be repeated, until both responses are `ready` and equal. `differs`: the reason
    why the responses are not equal. `counts`: the part of a response that is compared, if other tests may affect the
    rest.
    """

    request: Message | Callable[[Seen], Message]
    version: int
    reads: bool = False
    differs: str = ""
    counts: Callable[[Any], Any] = lambda answer: answer
    ready: Callable[[Any], bool] = lambda _: True


def accepted(step: Step, reason: str) -> Step:
    """The same step, with the reason why its responses differ."""
    return step._replace(differs=reason)


class Difference(NamedTuple):
    """A difference between two responses; members of lists are `[]` in `path`."""

    path: str
    reference: Any
    subject: Any


class Server(NamedTuple):
    """One of the two servers."""

    port: int
    log_dir: str


async def play(steps: Sequence[Step], reference: Server, subject: Server) -> dict[int, list[Difference]]:
    """Send the script to both servers; return the steps with differences."""
    found = {}
    async with Wire("127.0.0.1", reference.port) as first, Wire("127.0.0.1", subject.port) as second:
        sides = ((first, Seen(reference.log_dir)), (second, Seen(subject.log_dir)))
        for number, step in enumerate(steps):
            differences = await differences_of(step, sides)
            if differences:
                found[number] = differences
    return found


async def differences_of(step: Step, sides: Collection[tuple[Wire, Seen]]) -> list[Difference]:
    """Send one step to both servers; return the differences between the responses."""
    found: list[Difference] = []
    answers: list[Any] = []
    ready = True
    for _ in range(ATTEMPTS if step.reads else 1):
        answers, ready = [], True
        for wire, seen in sides:
            request = step.request if isinstance(step.request, Message) else step.request(seen)
            answer = await wire.ask(request, step.version)
            seen.note(answer)
            if not step.reads:
                seen.note_producer(answer)
            answers.append(plain(step.counts(answer), seen))
            ready = ready and step.ready(answer)
        found = [Difference(*difference) for difference in compare(*answers)]
        if ready and not found:
            break
        await asyncio.sleep(PAUSE)
    return found or ([] if ready else [Difference("never ready", *answers)])


def plain(value: Any, seen: Seen, name: str = "") -> Any:
    """Return the comparable part of a response."""
    if isinstance(value, msgspec.Struct):
        fields = {name: getattr(value, name) for name in value.__struct_fields__ if name not in _UNPREDICTABLE}
        return {name: _plain_field(name, field, seen) for name, field in fields.items()}
    if isinstance(value, list):
        members = [plain(member, seen) for member in value]
        if members and isinstance(members[0], dict):
            return sorted(members, key=_order)
        return sorted(members) if name in _SETS else members
    if isinstance(value, bytes):
        return next((f"id of {name}" for name, topic_id in seen.topic_ids.items() if topic_id == value), value)
    return int(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _plain_field(name: str, value: Any, seen: Seen) -> Any:
    if isinstance(value, str) and seen.log_dir in value:
        return value.replace(seen.log_dir, "LOG_DIR")
    if name == "producer_id" and value in seen.producer_ids:
        return f"producer {seen.producer_ids.index(value)}"
    if isinstance(value, str) and value in seen.member_ids:
        return f"id of member {seen.member_ids.index(value)}"
    return plain(value, seen, name)


def compare(reference: Any, subject: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield the path and both values of each difference."""
    if isinstance(reference, dict) and isinstance(subject, dict):
        for name in reference:
            if name == _TEXT and is_same_message(reference[name], subject[name]):
                continue
            yield from compare(reference[name], subject[name], f"{path}.{name}" if path else name)
    elif isinstance(reference, list) and isinstance(subject, list) and len(reference) == len(subject):
        for one, other in zip(reference, subject, strict=True):
            yield from compare(one, other, f"{path}[]")
    elif reference != subject:
        yield path, reference, subject


def is_same_message(reference: str | None, subject: str | None) -> bool:
    """Return whether a message begins with the reference's words. A message may also be added where it has none."""
    if not reference:
        return True
    return (subject or "").startswith(reference) or (bool(subject) and any(words in reference for words in _OWN_WORDS))


def _order(member: dict[str, Any]) -> str:
    return repr({name: value for name, value in member.items() if name != _TEXT})


def _structures(value: Any) -> Iterator[Any]:
    if isinstance(value, msgspec.Struct):
        yield value
        for name in value.__struct_fields__:
            yield from _structures(getattr(value, name))
    elif isinstance(value, list):
        for member in value:
            yield from _structures(member)
