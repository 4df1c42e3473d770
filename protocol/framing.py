"""The byte stream of one peer, split into frames: a big-endian int32 size, then that many bytes of header and body.

```
| size | frame ........... | size | frame ........... | si     [start, end): received and not yet returned
         ^ next_frame() returns a view of it            ^ an incomplete frame
```

Sans-IO: the caller receives into `buffer()`, reports the number of bytes with `received(n)`, and calls `next_frame()`
until it returns None.

Buffers. In most turns of the event loop whole small frames arrive, so all readers of one thread receive into one shared
`ReceiveArena`. `settle()` moves an incomplete frame at its end into a small buffer of the reader; an idle reader has no
buffer. A large frame has its own buffer, which grows with the bytes received, not with the size announced: a peer that
announces 100 MB and sends nothing costs 64 KiB. The next large frame of a peer starts with a buffer of the size that it
has already filled once, up to 4 MiB, so that successive large frames are not copied while they grow. Buffers over 64
KiB are counted (`receive_memory`); above the limit a buffer grows only as far as the next bytes of its frame need.

Ownership. A frame is a writable view that is valid until the next `buffer()`. After `retain()`, called before that, it
stays valid as long as it is referenced: the next bytes are received elsewhere, and nothing is copied. Frames need no
release: a buffer is reused when no view of it is left.

Not thread-safe: an arena and its readers belong to one thread.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable
from typing import Final

from odradek.protocol.errors import ForeignProtocolError, RemoteProtocolError
from odradek.protocol.receive_memory import ReceiveMemory

SIZE_PREFIX: Final = struct.Struct(">i")
_SIZE_AND_API_KEY: Final = struct.Struct(">ih")
CheckFrame = Callable[[int, int], None]
_unpack_size: Final = SIZE_PREFIX.unpack_from
DEFAULT_MAX_FRAME_SIZE: Final = 100 * 1024 * 1024
"""Kafka's `socket.request.max.bytes`."""

ARENA_SIZE: Final = 256 * 1024
_LARGE: Final = 64 * 1024  # a larger frame has its own buffer
_SMALL: Final = 16 * 1024  # below, copying a cut frame back into the arena is faster than a separate receive
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
_POOL_LIMIT: Final = 8 * 1024 * 1024  # bytes of buffers that are kept for reuse


def frame_size(buffer: bytes | bytearray | memoryview, position: int, limit: int) -> int:
    """Read the size at `position`. Raises RemoteProtocolError if it is negative or over `limit`."""
    size: int = SIZE_PREFIX.unpack_from(buffer, position)[0]
    if not 0 <= size <= limit:
        raise _bad_size(size, limit)
    return size


def _bad_size(size: int, limit: int) -> RemoteProtocolError:
    if size < 0:
        return RemoteProtocolError(f"frame size {size} is negative")
    first_bytes = SIZE_PREFIX.pack(size)
    message = f"frame size {size} is over the limit of {limit}"
    for start, name in _OTHER_PROTOCOLS:
        if first_bytes.startswith(start):
            return ForeignProtocolError(f"{message} ({name}?)", name)
    return RemoteProtocolError(message)


class ReceiveArena:
    """The receive buffer that the readers of one thread share, and a pool of large buffers for reuse.

    `room` is the part of `view` from `position` on, into which the next bytes are received. `memory` counts the large
    buffers.
    """

    __slots__ = ("_buffer", "_pool", "_pool_bytes", "_size", "memory", "position", "room", "view")

    position: int

    def __init__(self, size: int = ARENA_SIZE, memory: ReceiveMemory | None = None) -> None:
        self._size = size
        self.memory = ReceiveMemory() if memory is None else memory
        self._pool: deque[bytearray] = deque()  # oldest first; some may still have views
        self._pool_bytes = 0
        self._use(bytearray(size))

    def keep_up_to(self, position: int, view: memoryview) -> None:
        """Never write before `position` of `view` again: the bytes there are still referenced.

        Does nothing if that was demanded before: the arena may have another buffer by now, and other readers may have
        bytes behind `position`.
        """
        if view is not self.view or position <= self.position:
            return
        if position > self._size // 2:
            full = self._buffer
            self._use(self.acquire(self._size))
            self.release(full)
        else:
            self.position = position
            self.room = self.view[position:]

    def acquire(self, size: int) -> bytearray:
        """Return a new or reused buffer of at least `size` bytes; its content is undefined."""
        for index, buffer in enumerate(self._pool):
            if size <= len(buffer) <= 2 * size and _is_free(buffer):
                del self._pool[index]
                self._pool_bytes -= len(buffer)
                return buffer
        return self.memory.create(size) if size > _LARGE else bytearray(size)

    def release(self, buffer: bytearray) -> None:
        """Add a large buffer to the pool; it is reused when no view of it is left."""
        if self.memory.is_full:
            return  # others need its memory
        self._pool.append(buffer)
        self._pool_bytes += len(buffer)
        while self._pool_bytes > _POOL_LIMIT:
            self._pool_bytes -= len(self._pool.popleft())

    def trim(self) -> None:
        """Empty the pool, so that the memory of its buffers is freed with their last views."""
        self._pool.clear()
        self._pool_bytes = 0

    def _use(self, buffer: bytearray) -> None:
        self._buffer = buffer
        self.view = memoryview(buffer)
        self.room = self.view
        self.position = 0


def _is_free(buffer: bytearray) -> bool:
    """Whether the buffer has no view: a bytearray with a view cannot change its size."""
    try:
        buffer.pop()
        buffer.append(0)
    except BufferError:
        return False
    return True


class FrameReader:
    """The frames of one peer; for buffers and ownership see the docstring of the module.

    | `_view` is of | when | `_limit` |
    |---|---|---|
    | nothing (None) | nothing is buffered | |
    | the arena | during a turn, and after `retain` until the next one | the end of the buffered bytes |
    | `_own`, as large as the buffered bytes | a small cut frame, or whole frames | the end of the buffered bytes |
    | `_own`, larger | the rest of a large frame is being received | the end of the frame, or of the room for it |

    `check` is called with the API key and the size of a large request before memory is allocated for its rest. It may
    raise RemoteProtocolError to reject the request.

    After a RemoteProtocolError the frames of the stream are lost: close the connection.
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
        self._start = 0  # the bytes buffered in `_view`
        self._end = 0
        self._limit = 0  # the end of the room in `_own`
        self._keep = False  # `retain` was called in this turn
        self._proven = 0  # size of the largest buffer that a frame has filled, up to _TRUST_LIMIT

    @property
    def buffered(self) -> int:
        """Bytes received and not yet returned as frames."""
        return self._end - self._start

    @property
    def is_within_large_frame(self) -> bool:
        """Whether a large frame is incomplete. Raises RemoteProtocolError for a bad size."""
        rest = self._end - self._start
        frame = self._first_frame(rest)
        return frame > _LARGE and rest < frame

    def discard(self) -> None:
        """Drop the buffered bytes. Afterwards nothing may be received."""
        self._view = self._own = None
        self._start = self._end = self._limit = 0

    def buffer(self) -> memoryview:
        """Return where to receive the next bytes; never empty. Raises RemoteProtocolError for a bad size."""
        if self._view is None and not self._proven:  # nothing is buffered, and no large frame is expected
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
        """Record that `count` bytes were received into the last `buffer()`."""
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
        """Keep every frame of this turn valid as long as it is referenced."""
        if self._view is not None and self._own is None:
            self._arena.keep_up_to(self._end, self._view)
            self._keep = True
        # `_own` is never written before `_start`, and not reused while a frame views it.

    def settle(self) -> None:
        """Move an incomplete frame out of the arena. Call it at the end of every turn.

        Raises RemoteProtocolError for a bad size.
        """
        rest = self._end - self._start
        if not rest:
            self._view = None  # keep no buffer
            if self._own is not None:
                self._finish_own()
        elif self._own is None and not self._keep:
            self._move_to_own(rest, room=0)
        self._keep = False

    def _first_frame(self, rest: int) -> int:
        """Return the size of the first buffered frame with its prefix, or of the prefix if that is incomplete."""
        if rest < 4:
            return 4
        assert self._view is not None
        return 4 + frame_size(self._view, self._start, self.max_frame_size)

    def _arena_room(self, rest: int) -> memoryview:
        """Continue in the arena; copy a small incomplete frame there."""
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
            # The next frame is probably large: receive only its start, with its size; its own buffer takes the rest.
            return arena.view[end : start + _SMALL]
        return arena.view[end:]

    def _move_to_own(self, rest: int, room: int) -> None:
        """Move the buffered bytes into another own buffer, large enough for what this peer has sent before."""
        assert self._view is not None
        view = self._view[self._start : self._end]
        frame = self._first_frame(rest)
        if frame <= rest:  # whole frames that are not executed yet, and the bytes after them
            limit = rest + room
        elif rest < _SMALL and frame <= _LARGE:
            limit = rest
        else:
            if self._check is not None and rest >= _SIZE_AND_API_KEY.size:
                self._check(_SIZE_AND_API_KEY.unpack_from(self._view, self._start)[1], frame - 4)
            # With little memory left, it gets no additional room at the end of a turn: it may have to wait.
            earned = rest if self._arena.memory.is_full and not room else max(2 * rest, self._proven)
            limit = min(frame, max(_LARGE, earned))
        if limit == rest <= _LARGE:
            own = bytearray(view)
        else:
            own = self._arena.acquire(limit)
            own[:rest] = view
        if self._start:
            self._drop_own()  # otherwise its frame has outgrown it, and the next ones start with a larger buffer
        self._own = own
        self._view = memoryview(own)
        self._start = 0
        self._end = rest
        self._limit = limit

    def _finish_own(self) -> None:
        """Drop the own buffer, and store its size if it was large."""
        if self._own is not None and len(self._own) > _LARGE:
            self._proven = max(self._proven, min(len(self._own), _TRUST_LIMIT))
        self._drop_own()

    def _drop_own(self) -> None:
        own, self._own = self._own, None
        if own is not None and len(own) > _LARGE:
            self._arena.release(own)
