"""Applies the rules for requests: an interceptor of the routes of a broker.

```
request ─► the rules that fit, in their order ─┬─ none: the handler, directly
                                               └─ wait (mute, pause, delay) ─► drop ─► handler, or an error in its place
                                                    ─► throttle ─► drop
```

A rule counts its hit when the request arrives. The first rule that fails a request, or a row of it, decides; a rule
that has nothing left to do is not hit. Requests that waited already when a rule was made are not changed.

If the connection ends meanwhile, the server cancels a request that waits for others, and lets any other end. A request
that was held back, and whose client has gone, is not executed, unless it carries records: those the broker executes, as
Kafka does. A result that is not sent is released.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any

from odradek.broker.request.context import ConnectionContext, RequestContext
from odradek.broker.request.handler import Answer, Handle, Handler, Result
from odradek.broker.request.services import Services
from odradek.broker.request.time_slices import ClientDisconnected
from odradek.broker.testing.faults import fetched_rows
from odradek.broker.testing.faults.error_rows import (
    DETAIL,
    carries,
    replaced,
    split,
    with_error_everywhere,
    with_rows,
)
from odradek.broker.testing.faults.execution import execute, release_records
from odradek.broker.testing.faults.request_rules import BEFORE, Drop, Fail, RequestRule, Throttle, Wanted
from odradek.broker.testing.faults.topic_rows import NameOfId, topics_of
from odradek.protocol.codec import with_decoded_parts
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.fetch import FetchRequest
from odradek.protocol.schema import Message

__tracebackhide__ = True  # pytest shows the line of the test, and none of this module


class RequestFaults:
    """The rules for the requests of one broker; `intercept` is the interceptor. Used on the broker's event loop."""

    def __init__(self) -> None:
        self.rules: list[RequestRule] = []
        self._muted: dict[ConnectionContext, asyncio.Future[None]] = {}

    def intercept(self, handler: Handler) -> Handle:
        """Return a function that applies the rules for an API; without any for it, the handler's own."""
        throttles = any(isinstance(rule, Throttle) for rule in self.rules)
        if not throttles and not any(rule.api in (None, handler.api) for rule in self.rules):
            return handler.handle

        def handle(services: Services, context: RequestContext, request: Any) -> Answer:
            taken = self._take(handler, services, context, request)
            if not taken and context.connection not in self._muted:
                return handler.handle(services, context, request)
            return self._serve(handler, taken, services, context, request)

        return handle

    def unmute(self) -> None:
        """Let the connections go on that a throttle has muted."""
        for muted in tuple(self._muted.values()):
            if not muted.done():
                muted.set_result(None)
        self._muted.clear()

    def _take(
        self, handler: Handler, services: Services, context: RequestContext, request: Message
    ) -> list[RequestRule]:
        """Return the rules that change this request, each with one hit more."""
        taken: list[RequestRule] = []
        wanted: Wanted | None = None
        for rule in self.rules:
            if rule.api not in (None, handler.api):
                continue
            if wanted is None:
                wanted = _wanted(handler, services, context, request)
            if rule.fits(context, wanted) and not _is_done_by(taken, rule, wanted) and rule.take():
                taken.append(rule)
                if isinstance(rule, Drop) and rule.when == BEFORE:
                    break
        return taken

    async def _serve(
        self, handler: Handler, taken: list[RequestRule], services: Services, context: RequestContext, request: Any
    ) -> Result:
        await self._muting_over(context.connection)
        for rule in taken:
            await rule.before()
        if context.connection.is_disconnected and not handler.row.carries_records:
            raise ClientDisconnected
        fails = [rule for rule in taken if isinstance(rule, Fail)]
        answer = await _Execution(handler, services, context, fails).answer(request)
        try:
            for rule in taken:
                if isinstance(rule, Throttle):
                    self._mute(context.connection, rule.ms / 1000)
                answer = rule.after(answer, context.api_version)
        except BaseException:
            release_records(answer)
            raise
        return answer

    async def _muting_over(self, connection: ConnectionContext) -> None:
        while (muted := self._muted.get(connection)) is not None:
            await asyncio.wait((muted,))

    def _mute(self, connection: ConnectionContext, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        muted = self._muted[connection] = loop.create_future()
        loop.call_later(seconds, self._unmute, connection, muted)

    def _unmute(self, connection: ConnectionContext, muted: asyncio.Future[None]) -> None:
        if self._muted.get(connection) is muted:
            del self._muted[connection]
        if not muted.done():
            muted.set_result(None)


class _Execution:
    """The execution of one request, with the rules that fail it or rows of it."""

    def __init__(self, handler: Handler, services: Services, context: RequestContext, fails: Sequence[Fail]) -> None:
        self._handler = handler
        self._services = services
        self._context = context
        self._version = context.api_version
        self._fails = fails
        self._name_of = _names(services)

    async def answer(self, request: Any) -> Result:
        """Return the answer. Raises KafkaError if the request as a whole fails."""
        if not self._fails:
            return await self._execute(request)
        if not self._fails[0].is_of_rows:
            return await self._fail_whole(self._fails[0], request)
        if isinstance(request, FetchRequest):
            answer = await fetched_rows.executed(request, self._services, self._name_of, self._code_of, self._execute)
            return self._replaced(answer)
        topics = topics_of(self._handler.api.request, self._version)
        if self._handler.row.only_reads or topics is None or topics.are_all(request):
            return self._replaced(await self._execute(request))
        return await self._split(request)

    def _code_of(self, topic: str, index: int | None) -> ErrorCode | None:
        return next((rule.code for rule in self._fails if rule.concerns(topic, index)), None)

    async def _fail_whole(self, rule: Fail, request: Message) -> Result:
        answer = self._handler.error_response(request, rule.code, DETAIL)
        if answer is None:
            raise KafkaError(rule.code, DETAIL)  # Produce with acks=0: the connection is closed, as for any error
        answer = with_error_everywhere(answer, self._version, rule.code)
        if carries(answer, self._version, rule.code):
            return answer
        answer = await self._execute(request)  # it has errors in rows only, and the request does not name them
        if answer is not None:
            answer = with_error_everywhere(answer, self._version, rule.code)
        if answer is None or not carries(answer, self._version, rule.code):
            rule.give_back()
        return answer

    def _replaced(self, answer: Result) -> Result:
        """Replace the rows that fail; a rule without any has not been hit."""
        topics = None if answer is None else topics_of(type(answer), self._version)
        done: list[tuple[str, int | None]] = []
        if answer is not None and topics is not None:
            answer, done = replaced(answer, self._version, topics, self._name_of, self._code_of)
        for rule in self._fails:
            if not any(rule.concerns(*each) for each in done):
                rule.give_back()
        return answer

    async def _split(self, request: Message) -> Result:
        """Execute the rows that do not fail, and add those that do."""
        version, api = self._version, self._handler.api
        topics, answers = topics_of(api.request, version), topics_of(api.response, version)
        assert topics is not None
        assert answers is not None
        rest, failed = split(request, topics, self._name_of, self._code_of)
        answer = api.response() if rest is None else await self._execute(rest)
        if answer is None or self._handler.error_response(request, failed[0].code, DETAIL) is None:
            raise KafkaError(failed[0].code, DETAIL)  # as in `_fail_whole`
        return with_rows(answer, version, answers, failed)

    async def _execute(self, request: Any) -> Result:
        answer = await execute(self._handler, self._services, self._context, request)
        return None if answer is None else with_decoded_parts(answer)


def _wanted(handler: Handler, services: Services, context: RequestContext, request: Any) -> Wanted:
    """What a request asks for."""
    name_of = _names(services)
    if isinstance(request, FetchRequest):
        return Wanted(tuple(fetched_rows.named_in(request, services, name_of)), False)
    topics = topics_of(handler.api.request, context.api_version)
    if topics is None:
        return Wanted((), False)
    return Wanted(tuple(topics.named(request, name_of)), topics.are_all(request))


def _names(services: Services) -> NameOfId:
    return partial(_name_of, services)


def _name_of(services: Services, topic_id: bytes) -> str | None:
    topic = services.metadata.image.topics_by_id.get(topic_id)
    return None if topic is None else topic.name


def _is_done_by(taken: Sequence[RequestRule], rule: RequestRule, wanted: Wanted) -> bool:
    """Whether the rules taken so far leave nothing to a rule that fails requests."""
    fails = [each for each in taken if isinstance(each, Fail)]
    if not fails or not isinstance(rule, Fail):
        return False
    if not rule.is_of_rows or not fails[0].is_of_rows:
        return True  # one of both fails the request as a whole
    rows = [each for each in wanted.named if rule.concerns(*each)]
    return bool(rows) and all(any(each.concerns(*row) for each in fails) for row in rows)
