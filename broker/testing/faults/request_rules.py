"""The rules for requests: which requests each fits, and what it does before and after their execution."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Final, NamedTuple, Self, TypedDict, Unpack

import msgspec

from odradek.broker.apis.table import ROWS
from odradek.broker.request.context import CloseConnection, RequestContext
from odradek.broker.testing.faults import arguments
from odradek.broker.testing.faults.rule import Rule
from odradek.broker.testing.faults.topic_rows import Named, topics_of
from odradek.protocol.api import Api
from odradek.protocol.errors import ErrorCode
from odradek.protocol.schema import Message, Structure, fields

__tracebackhide__ = True  # pytest shows the line of the test, and none of this module

BEFORE: Final = "before"
AFTER: Final = "after"
THROTTLE_TIME: Final = "throttle_time_ms"


class Filters(TypedDict, total=False):
    """The arguments that all rules for requests have: see `Faults`."""

    topic: str | None
    partition: int | None
    client_id: str | None
    times: int | None
    probability: float
    seed: int | None
    optional: bool


class Wanted(NamedTuple):
    """What a request asks for: the partitions that it names, and whether it means all topics."""

    named: tuple[Named, ...]
    means_all: bool


class RequestRule(Rule):
    """A rule for the requests of one API, or of all (None). Raises ValueError for filters that do not fit the API."""

    def __init__(
        self,
        action: str,
        api: Api | None,
        *,
        topic: str | None = None,
        partition: int | None = None,
        client_id: str | None = None,
        times: int | None = None,
        probability: float = 1.0,
        seed: int | None = None,
        optional: bool = False,
    ) -> None:
        super().__init__(action, times=times, probability=probability, seed=seed, optional=optional)
        self.api = api
        self.topic = None if topic is None else arguments.text("topic", topic)
        self.partition = None if partition is None else arguments.whole_number("partition", partition, 0)
        self.client_id = client_id
        if self.is_of_rows:
            self.check_rows()

    @property
    def filters(self) -> dict[str, object]:
        return {"topic": self.topic, "partition": self.partition, "client_id": self.client_id}

    @property
    def is_of_rows(self) -> bool:
        """Whether the rule is limited to a topic or a partition."""
        return self.topic is not None or self.partition is not None

    def check_rows(self) -> None:
        """Raise ValueError if the requests of the API name no topics, or no partitions."""
        if self.api is None:
            raise ValueError("topic= and partition= need the name of an API, because not all requests have them")
        found = [topics_of(self.api.request, version) for version in served_versions(self.api)]
        if not any(found):
            raise ValueError(f"{self.api.name} names no topics, so it takes no topic= and no partition=")
        if self.partition is not None and not any(each is not None and each.partitions for each in found):
            raise ValueError(f"{self.api.name} names no partitions, only topics, so it takes no partition=")

    def concerns(self, topic: str, index: int | None) -> bool:
        """Whether the rule is for this partition, or for this topic as a whole (None)."""
        return self.topic in (None, topic) and (self.partition is None or self.partition == index)

    def is_named_by(self, named: Named) -> bool:
        """Whether a request that names this partition or topic is one for the rule."""
        return self.concerns(*named)

    def fits(self, context: RequestContext, wanted: Wanted) -> bool:
        """Whether the rule is for this request of its API."""
        if self.client_id is not None and self.client_id != context.client_id:
            return False
        if not self.is_of_rows:
            return True
        return wanted.means_all or any(self.is_named_by(each) for each in wanted.named)

    async def before(self) -> None:
        """Do what comes before the execution of a request. Raises CloseConnection."""

    def after(self, answer: Message | None, version: int) -> Message | None:  # noqa: ARG002 - for those that differ
        """Return what is sent in place of the answer. Raises CloseConnection."""
        return answer


class Fail(RequestRule):
    """Requests, or the rows of a topic or partition in them, fail with an error and are not executed."""

    def __init__(self, api: Api, code: ErrorCode, **filters: Unpack[Filters]) -> None:
        self.code = code
        super().__init__(f"fail {api.name} with {code.name}", api, **filters)

    def check_rows(self) -> None:
        """Raise ValueError if the answers of the API have no errors of topics, or none of partitions."""
        assert self.api is not None
        name = self.api.name
        found = [each for version in served_versions(self.api) if (each := topics_of(self.api.response, version))]
        if not any(each.error or each.partition_error for each in found):
            raise ValueError(
                f"an answer to {name} has no errors of single topics, so it takes no topic=, no partition="
            )
        if self.partition is not None and not any(each.partition_error for each in found):
            raise ValueError(f"an answer to {name} has no errors of single partitions, so it takes no partition=")

    def is_named_by(self, named: Named) -> bool:
        """The answer to a request that names topics without partitions may have partitions (Metadata)."""
        topic, partition = named
        return self.concerns(topic, self.partition if partition is None else partition)


class Holding(RequestRule):
    """A rule that holds requests back, until it is removed at the latest."""

    def __init__(self, action: str, api: Api | None, **filters: Unpack[Filters]) -> None:
        super().__init__(action, api, **filters)
        self._is_released = False
        self._held: set[asyncio.Future[None]] = set()  # of the loop that runs at the time: a broker may start again

    def release(self) -> None:
        self._is_released = True
        for held in self._held:
            if not held.done():
                held.set_result(None)

    async def hold(self, seconds: float | None) -> None:
        """Wait so long, but not longer than until the rule is removed. None: until then."""
        if self._is_released:
            return
        held = asyncio.get_running_loop().create_future()
        self._held.add(held)
        try:
            await asyncio.wait((held,), timeout=seconds)
        finally:
            self._held.discard(held)


class Delay(Holding):
    """Requests wait for some seconds before they are executed."""

    def __init__(self, api: Api, seconds: float, **filters: Unpack[Filters]) -> None:
        self._seconds = arguments.duration("seconds", seconds)
        super().__init__(f"delay {api.name} by {seconds} s", api, **filters)

    async def before(self) -> None:
        await self.hold(self._seconds)


class Pause(Holding):
    """Requests wait until the block ends: `with faults.pause(…) as rule`, or `async with`.

    The rule applies from the moment when it is made.
    """

    def __init__(self, api: Api | None, **filters: Unpack[Filters]) -> None:
        super().__init__(f"pause {'all requests' if api is None else api.name}", api, **filters)

    async def before(self) -> None:
        await self.hold(None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()


class Drop(RequestRule):
    """The connection is closed: before the request is executed, or after it, so that only the answer is lost."""

    def __init__(self, api: Api, when: str, **filters: Unpack[Filters]) -> None:
        self.when = arguments.one_of("when", when, (BEFORE, AFTER))
        super().__init__(f"drop {api.name} {when} it is executed", api, **filters)

    async def before(self) -> None:
        if self.when == BEFORE:
            raise CloseConnection("a test drops the request")

    def after(self, answer: Message | None, version: int) -> Message | None:
        if self.when == AFTER:
            raise CloseConnection("a test drops the answer")
        return super().after(answer, version)


class Throttle(RequestRule):
    """Answers have a throttle time, and the next request of their connection waits for so long."""

    def __init__(self, api: Api, ms: int, **filters: Unpack[Filters]) -> None:
        self.ms = arguments.whole_number("ms", ms, 1, (1 << 31) - 1)  # a throttle time is an int32
        if not any(has_field(api.response, version, THROTTLE_TIME) for version in served_versions(api)):
            raise ValueError(f"an answer to {api.name} has no throttle time")
        super().__init__(f"throttle {api.name} by {ms} ms", api, **filters)

    def after(self, answer: Message | None, version: int) -> Message | None:
        if answer is None or not has_field(type(answer), version, THROTTLE_TIME):
            return answer
        return msgspec.structs.replace(answer, **{THROTTLE_TIME: max(self.ms, getattr(answer, THROTTLE_TIME))})


def served_versions(api: Api) -> range:
    """The versions of an API that the broker serves."""
    row = ROWS[api.key]
    return range(row.min_version, row.max_version + 1)


def has_field(cls: type[Structure], version: int, name: str) -> bool:
    return any(field.name == name and field.exists_in(version) for field in fields(cls))
