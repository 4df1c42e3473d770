"""A worker's end of a connection: requests that wait for their answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import count
from typing import NamedTuple

from odradek.broker.metadata.store.shared.framing import FramedConnection
from odradek.broker.metadata.store.shared.messages import (
    Answer,
    Changes,
    Failed,
    Page,
    Request,
    SessionLost,
    decode_answer,
    encode,
)
from odradek.broker.metadata.store.store import KV, StoreError

Pushed = Changes | Failed | SessionLost
"""What arrives without a request that waits: for a watch, or a session."""


class ConnectionLostError(StoreError):
    """The connection has ended before the answer. `was_sent`: the request may have been received."""

    def __init__(self, was_sent: bool) -> None:
        super().__init__("the connection to the metadata store was lost")
        self.was_sent = was_sent


class _Pending(NamedTuple):
    answer: asyncio.Future[Answer]
    writes_before: int
    kvs: list[KV]


class Connection(FramedConnection):
    """`on_push` gets what nobody waits for, `on_end` is called when the connection has ended."""

    def __init__(self, on_push: Callable[[Pushed], None], on_end: Callable[[Connection], None]) -> None:
        super().__init__()
        self._on_push = on_push
        self._on_end = on_end
        self._ids = count()
        self._pending: dict[int, _Pending] = {}

    def next_id(self) -> int:
        """Return an id for a request."""
        return next(self._ids)

    async def call(self, request: Request) -> Answer:
        """Send a request and return its answer; a range's has the keys of all pages.

        Raises `ConnectionLostError`, and the error with which it was answered: `StoreError`, `ValueError`.
        """
        if not self.is_open:
            raise ConnectionLostError(was_sent=False)
        self.send(encode(request))
        pending = _Pending(asyncio.get_running_loop().create_future(), self.writes, [])
        self._pending[request.id] = pending
        try:
            return await pending.answer
        finally:
            self._pending.pop(request.id, None)

    async def answered(self, seconds: float) -> None:
        """Wait until no request waits for its answer, at most so long."""
        if waiting := [pending.answer for pending in self._pending.values()]:
            await asyncio.wait(waiting, timeout=seconds)

    def frame_received(self, frame: bytearray) -> None:
        answer = decode_answer(frame)
        if isinstance(answer, SessionLost | Changes):
            self._on_push(answer)
        elif (pending := self._pending.get(answer.id)) is None:
            # That of a watch, or its caller was cancelled.
            if isinstance(answer, Failed):
                self._on_push(answer)
        elif isinstance(answer, Page):
            pending.kvs.extend(answer.kvs)
            if not answer.more:
                _finish(pending, Page(answer.id, pending.kvs, answer.revision, more=False))
        elif isinstance(answer, Failed):
            if not pending.answer.done():
                pending.answer.set_exception(answer.error())
        else:
            _finish(pending, answer)

    def connection_ended(self) -> None:
        for pending in self._pending.values():
            if not pending.answer.done():
                pending.answer.set_exception(ConnectionLostError(was_sent=self.writes > pending.writes_before))
        self._on_end(self)


def _finish(pending: _Pending, answer: Answer) -> None:
    if not pending.answer.done():
        pending.answer.set_result(answer)
