"""The memory of answers under way: the bytes of large answers, from their encoding until the client has them.

| limit | an answer over it |
|---|---|
| `socket.response.max.bytes`, one answer | is not encoded any further: INVALID_REQUEST |
| `queued.max.response.bytes`, all answers | closes the connection that has taken no byte of its answer for longest |
| ... if no other connection has an unsent answer | is not encoded any further: REQUEST_TIMED_OUT, which clients retry |

An answer is counted while it is encoded, and by the lifetime of its buffer, as large requests are
(`odradek.protocol.receive_memory`): an outbox keeps the buffer until the kernel has taken its last byte. Answers up to
`SMALL` bytes are not counted where they are encoded at once, and never refused. Neither are error responses, whose size
depends on the request alone. File slices are not memory, so that a Fetch counts with its headers and small batches, and
only the size of a frame, an int32, limits it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from odradek.broker.request.context import ConnectionContext
from odradek.protocol.errors import ErrorCode, KafkaError

SMALL: Final = 64 * 1024
LARGEST: Final = 0x7FFF_FFFF
MAX_BYTES_PROPERTY: Final = "socket.response.max.bytes"
QUEUED_PROPERTY: Final = "queued.max.response.bytes"


class AnswerMemory:
    """The counted answers of one event loop. `limit` in bytes is for all, None: no limit; `most_bytes` for each.

    `make_room(connection)` is called when all are over the limit. It frees an answer of another connection, and returns
    true if there was one.
    """

    def __init__(self, most_bytes: int = LARGEST, limit: int | None = None) -> None:
        self.most_bytes = most_bytes
        self.limit = limit
        self.make_room: Callable[[ConnectionContext], bool] = _no_room
        self._held = 0
        self._freed: deque[tuple[ConnectionContext, int]] = deque()  # a garbage collection in a thread may append

    @property
    def held(self) -> int:
        """Bytes of the answers that exist."""
        self._count_freed()
        return self._held

    def grow(self, out: AnswerBuffer, *, is_bounded: bool) -> None:
        """Count the bytes by which an answer has grown. Raises KafkaError if there is no room for them."""
        self.count(out)
        self.check_size(len(out), is_bounded=is_bounded)
        if len(out) > SMALL and self.is_full and not self.make_room(out.owner):
            raise KafkaError(
                ErrorCode.REQUEST_TIMED_OUT,
                f"The answers under way have more than {self.limit} bytes ({QUEUED_PROPERTY}); try again later.",
            )

    def check_size(self, size: int, *, is_bounded: bool) -> None:
        """Raise KafkaError if an answer of `size` bytes is too large. If not `is_bounded`, only a frame limits it."""
        most, name = (self.most_bytes, f" ({MAX_BYTES_PROPERTY})") if is_bounded else (LARGEST, "")
        if size > most:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"The answer would have more than {most} bytes{name}; request fewer items at a time.",
            )

    @property
    def is_full(self) -> bool:
        """Whether all answers are over the limit."""
        return self.limit is not None and self.held > self.limit

    def adopt(self, out: bytearray, owner: ConnectionContext) -> AnswerBuffer:
        """Return a counted buffer with the bytes of `out`, an answer that was encoded at once."""
        buffer = out if isinstance(out, AnswerBuffer) else AnswerBuffer(self, owner, out)
        self.count(buffer)
        if self.is_full:
            self.make_room(owner)
        return buffer

    def count(self, out: AnswerBuffer) -> None:
        """Count the bytes by which an answer has grown, whatever the limits."""
        grown = len(out) - out.counted
        out.counted += grown
        out.owner.answer_bytes += grown
        self._held += grown

    def record_freed(self, out: AnswerBuffer) -> None:
        """Record that a buffer was deleted; the buffer calls it, in any thread."""
        self._freed.append((out.owner, out.counted))

    def _count_freed(self) -> None:
        while self._freed:
            owner, size = self._freed.popleft()
            owner.answer_bytes -= size
            self._held -= size


class AnswerBuffer(bytearray):
    """The bytes of answers to one connection, the `owner`. So many as `counted` says are counted in the memory."""

    __slots__ = ("_memory", "counted", "owner")

    def __init__(self, memory: AnswerMemory, owner: ConnectionContext, start: bytes | bytearray) -> None:
        self._memory = memory
        self.owner = owner
        self.counted = 0
        super().__init__(start)

    def __del__(self) -> None:
        if self.counted:
            self._memory.record_freed(self)


def _no_room(_: ConnectionContext) -> bool:
    return False
