"""The byte stream of one peer, split into frames: a big-endian int32 size, then that many bytes of header and body.

```
| size | frame ........... | size | frame ........... | si     [start, end): received and not yet returned
         ^ next_frame() returns a view of it            ^ a cut frame waits until its rest has come
```

Sans-IO: the caller receives into `buffer()`, says how much came with `received(n)`, and takes frames until there are
none.

Where the bytes live. Most turns bring whole small frames, so all readers of one thread receive into one shared
`ReceiveArena`; what is cut off at its end is moved into a small buffer of the reader's own by `settle()`, and idle
readers hold nothing. A large frame gets a buffer of its own, which grows as its bytes arrive and not as its size
claims: a peer that announces 100 MB and sends nothing costs 64 KiB. What a peer has once sent it is trusted to send
again, up to 4 MiB, so that steady large frames are not copied while they grow. Buffers over 64 KiB are counted
(`receive_memory`); while there are too many, none gets more room than a frame's next bytes need.

Who owns a frame. A frame is a writable view, good until the next `buffer()`. `retain()`, called before that, makes it
good for as long as anything refers to it: whatever is received next goes elsewhere, nothing is copied. Nobody has to
give a frame back: a buffer is used again when no view of it is left.

Not thread-safe: an arena and its readers belong to one thread.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable
from typing import Final

from odradek.protocol.errors import RemoteProtocolError
from odradek.protocol.receive_memory import ReceiveMemory

SIZE_PREFIX: Final = struct.Struct(">i")
_SIZE_AND_API_KEY: Final = struct.Struct(">ih")
CheckFrame = Callable[[int, int], None]
_unpack_size: Final = SIZE_PREFIX.unpack_from
DEFAULT_MAX_FRAME_SIZE: Final = 100 * 1024 * 1024
"""Kafka's `socket.request.max.bytes`."""

ARENA_SIZE: Final = 256 * 1024
_LARGE: Final = 64 * 1024  # a frame over this has a buffer of its own
_SMALL: Final = 16 * 1024  # up to this, copying the rest of a cut frame back into the arena beats a receive of its own
_OTHER_PROTOCOLS: Final = [
    (b"\x16\x03", "a TLS handshake"),
    (b"\x15\x03", "a TLS server"),
    (b"GET ", "HTTP"),
    (b"POST", "HTTP"),
    (b"HEAD", "HTTP"),
    (b"HTTP", "an HTTP server"),
    (b"SSH-", "SSH"),
]
_TRUST_LIMIT: Final = 4 * 1024 * 1024
_POOL_LIMIT: Final = 8 * 1024 * 1024  # bytes of buffers that wait for their next use


def frame_size(buffer: bytes | bytearray | memoryview, position: int, limit: int) -> int:
    """Read the size at `position`. Raises RemoteProtocolError when it is negative or over `limit`."""
    size: int = SIZE_PREFIX.unpack_from(buffer, position)[0]
    if not 0 <= size <= limit:
        raise _bad_size(size, limit)
    return size


def _bad_size(size: int, limit: int) -> RemoteProtocolError:
    if size < 0:
        return RemoteProtocolError(f"frame size {size} is negative")
    first_bytes = SIZE_PREFIX.pack(size)
    hint = next((f" ({protocol}?)" for start, protocol in _OTHER_PROTOCOLS if first_bytes.startswith(start)), "")
    return RemoteProtocolError(f"frame size {size} is over the limit of {limit}{hint}")


class ReceiveArena:
    """The receive buffer that the readers of one thread share, and buffers that wait for their next use.

    `room` is what of `view` begins at `position`: where the next bytes of whoever receives go. `memory` counts the
    large buffers.
    """

    __slots__ = ("_buffer", "_pool", "_pool_bytes", "_size", "memory", "position", "room", "view")

    def __init__(self, size: int = ARENA_SIZE, memory: ReceiveMemory | None = None) -> None:
        self._size = size
        self.memory = ReceiveMemory() if memory is None else memory
        self._pool: deque[bytearray] = deque()  # given back, the longest ago first; some may still be viewed
        self._pool_bytes = 0
        self._use(bytearray(size))

    def keep_up_to(self, position: int) -> None:
        """What stands before `position` is kept by somebody: never write there again."""
        if position > self._size // 2:
            full = self._buffer
            self._use(self.take(self._size))
            self.give(full)
        else:
            self.position = position
            self.room = self.view[position:]

    def take(self, size: int) -> bytearray:
        """A buffer of at least `size` bytes, used before or new; its content is anything."""
        for index, buffer in enumerate(self._pool):
            if size <= len(buffer) <= 2 * size and _is_free(buffer):
                del self._pool[index]
                self._pool_bytes -= len(buffer)
                return buffer
        return self.memory.create(size) if size > _LARGE else bytearray(size)

    def give(self, buffer: bytearray) -> None:
        """Give a large buffer back, which may be used again when no view of it is left."""
        if self.memory.is_full:
            return  # its memory is needed elsewhere
        self._pool.append(buffer)
        self._pool_bytes += len(buffer)
        while self._pool_bytes > _POOL_LIMIT:
            self._pool_bytes -= len(self._pool.popleft())

    def trim(self) -> None:
        """Forget the buffers that wait for their next use, so that their memory goes when the last view has gone."""
        self._pool.clear()
        self._pool_bytes = 0

    def _use(self, buffer: bytearray) -> None:
        self._buffer = buffer
        self.view = memoryview(buffer)
        self.room = self.view
        self.position = 0


def _is_free(buffer: bytearray) -> bool:
    """Whether nothing views the buffer: a bytearray does not change its size while a view of it lives."""
    try:
        buffer.pop()
        buffer.append(0)
    except BufferError:
        return False
    return True


class FrameReader:
    """The frames of one peer; see the module's docstring for whose the bytes are.

    | `_view` is of | when | `_limit` |
    |---|---|---|
    | nothing (None) | nothing is buffered | |
    | the arena | within a turn, and after `retain` until the next one | the end of what is buffered |
    | `_own`, as large as what is buffered | a small rest, or whole frames, wait | the end of what is buffered |
    | `_own`, larger | the rest of a large frame is being received | the end of the frame, or of the room for it |

    `check` is called with the API key and the size of a large request before room is made for the rest of it, and may
    refuse it with a RemoteProtocolError.

    After a RemoteProtocolError the stream has lost its frames: close it.
    """

    __slots__ = ("_arena", "_check", "_end", "_keep", "_limit", "_own", "_proven", "_start", "_view", "max_frame_size")

    def __init__(
        self, arena: ReceiveArena, max_frame_size: int = DEFAULT_MAX_FRAME_SIZE, check: CheckFrame | None = None
    ) -> None:
        self.max_frame_size = max_frame_size
        self._check = check
        self._arena = arena
        self._view: memoryview | None = None
        self._own: bytearray | None = None
        self._start = 0  # what is buffered, in `_view`
        self._end = 0
        self._limit = 0  # up to where `_own` may be filled
        self._keep = False  # `retain` was called in this turn
        self._proven = 0  # size of the largest frame so far that had a large buffer, up to what is trusted

    @property
    def buffered(self) -> int:
        """Bytes received and not yet returned as frames."""
        return self._end - self._start

    @property
    def is_within_large_frame(self) -> bool:
        """Whether the rest of a large frame is yet to come. Raises RemoteProtocolError for a bad size."""
        rest = self._end - self._start
        frame = self._first_frame(rest)
        return frame > _LARGE and rest < frame

    def discard(self) -> None:
        """Drop what is buffered: nothing more is received, and no frame taken."""
        self._view = self._own = None
        self._start = self._end = self._limit = 0

    def buffer(self) -> memoryview:
        """Where the next bytes of the peer must be received; never empty. Raises RemoteProtocolError for a bad size."""
        if self._view is None and not self._proven:  # nothing waits, and no large frame is to be expected
            arena = self._arena
            self._view = arena.view
            self._start = self._end = arena.position
            return arena.room
        if self._view is not None:
            self._keep = False
            self.settle()
        if self._own is None:
            return self._arena_room(0)
        rest = self._end - self._start
        if rest < _SMALL and self._first_frame(rest) <= _LARGE:
            return self._arena_room(rest)
        if self._start or self._end == self._limit:
            self._move_to_own(rest, room=_LARGE)
        assert self._view is not None
        return self._view[self._end : self._limit]

    def received(self, count: int) -> None:
        """`count` bytes have come into what `buffer()` returned last."""
        self._end += count

    def next_frame(self) -> memoryview | None:
        """Return the next whole frame without its size, or None. Raises RemoteProtocolError for a bad size."""
        body = self._start + 4
        end = self._end
        if body > end:
            return None
        view = self._view
        assert view is not None
        size: int = _unpack_size(view, body - 4)[0]
        if not 0 <= size <= self.max_frame_size:
            raise _bad_size(size, self.max_frame_size)
        after = body + size
        if after > end:
            return None
        self._start = after
        return view[body:after]

    def has_frame(self) -> bool:
        """Whether `next_frame` would return one. Raises RemoteProtocolError for a bad size."""
        rest = self._end - self._start
        return rest >= self._first_frame(rest)

    def retain(self) -> None:
        """Keep every frame of this turn as it is for as long as anything refers to it."""
        if self._view is not None and self._own is None:
            self._arena.keep_up_to(self._end)
            self._keep = True
        # An own buffer is never written before `_start`, and not used again while a frame views it.

    def settle(self) -> None:
        """Keep what is left where no other reader writes; at the end of every turn.

        Raises RemoteProtocolError for a bad size.
        """
        rest = self._end - self._start
        if not rest:
            self._view = None  # hold nothing
            if self._own is not None:
                self._finish_own()
        elif self._own is None and not self._keep:
            self._move_to_own(rest, room=0)
        self._keep = False

    def _first_frame(self, rest: int) -> int:
        """Size of the first buffered frame with its prefix, or of the prefix alone while that is not whole."""
        if rest < 4:
            return 4
        assert self._view is not None
        return 4 + frame_size(self._view, self._start, self.max_frame_size)

    def _arena_room(self, rest: int) -> memoryview:
        """Go on in the arena, taking a small rest along."""
        arena = self._arena
        start = arena.position
        end = start + rest
        if rest:
            assert self._view is not None
            arena.view[start:end] = self._view[self._start : self._end]
            self._drop_own()
        self._view = arena.view
        self._start = start
        self._end = end
        if self._proven:
            # The next frame is probably large: receive its beginning alone, to learn its size, and the rest in place.
            return arena.view[end : start + _SMALL]
        return arena.view[end:]

    def _move_to_own(self, rest: int, room: int) -> None:
        """Move what is buffered into another own buffer. A cut frame gets as much room as its peer has earned."""
        assert self._view is not None
        view = self._view[self._start : self._end]
        frame = self._first_frame(rest)
        if frame <= rest:  # whole frames that wait to be executed, and whatever comes behind them
            limit = rest + room
        elif rest < _SMALL and frame <= _LARGE:
            limit = rest
        else:
            if self._check is not None and rest >= _SIZE_AND_API_KEY.size:
                self._check(_SIZE_AND_API_KEY.unpack_from(self._view, self._start)[1], frame - 4)
            # At the end of a turn it gets no more than it has while there is little memory: it may have to wait.
            earned = rest if self._arena.memory.is_full and not room else max(2 * rest, self._proven)
            limit = min(frame, max(_LARGE, earned))
        if limit == rest <= _LARGE:
            own = bytearray(view)
        else:
            own = self._arena.take(limit)
            own[:rest] = view
        if self._start:
            self._drop_own()  # else its one frame has outgrown it, and the next ones of this peer will begin larger
        self._own = own
        self._view = memoryview(own)
        self._start = 0
        self._end = rest
        self._limit = limit

    def _finish_own(self) -> None:
        """The own buffer has served: remember whether it was a large one, and drop it."""
        if self._own is not None and len(self._own) > _LARGE:
            self._proven = max(self._proven, min(len(self._own), _TRUST_LIMIT))
        self._drop_own()

    def _drop_own(self) -> None:
        own, self._own = self._own, None
        if own is not None and len(own) > _LARGE:
            self._arena.give(own)
