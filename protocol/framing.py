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
again, up to 4 MiB, so that steady large frames are not copied while they grow.

Who owns a frame. A frame is a writable view, good until the next `buffer()`. `retain()` makes every frame returned so
far good for as long as anything refers to it: the reader goes on behind it or takes another buffer, nothing is copied.
`release()` says that the retained frames are done with, so that a large buffer may be used again; a buffer that
something still views is left alone even then.

Not thread-safe: an arena and its readers belong to one thread.
"""

from __future__ import annotations

import struct

from protocol.errors import RemoteProtocolError

SIZE_PREFIX = struct.Struct(">i")
DEFAULT_MAX_FRAME_SIZE = 100 * 1024 * 1024
"""Kafka's `socket.request.max.bytes`."""

ARENA_SIZE = 256 * 1024
_LARGE = 64 * 1024  # a frame over this has a buffer of its own
_SMALL = 16 * 1024  # up to this, copying the rest of a cut frame back into the arena beats a receive of its own
_OTHER_PROTOCOLS = [(b"\x16\x03", "a TLS handshake"), (b"GET ", "HTTP"), (b"POST", "HTTP"), (b"HEAD", "HTTP")]
_TRUST_LIMIT = 4 * 1024 * 1024
_SPARE_LIMIT = 8 * 1024 * 1024  # bytes of large buffers kept for the next large frame


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
    """The receive buffer that the readers of one thread share, and the large buffers that wait for their next use."""

    __slots__ = ("_size", "_spare_bytes", "_spares", "position", "view")

    def __init__(self, size: int = ARENA_SIZE) -> None:
        self._size = size
        self._spares: list[bytearray] = []
        self._spare_bytes = 0
        self.view = memoryview(bytearray(size))
        self.position = 0

    def keep_up_to(self, position: int) -> None:
        """What stands before `position` is retained by somebody: never write there again."""
        self.position = position
        if self._size - position < self._size // 2:
            self.view = memoryview(bytearray(self._size))
            self.position = 0

    def take(self, size: int) -> bytearray:
        """A buffer of at least `size` bytes, used before or new; its content is anything."""
        for index, spare in enumerate(self._spares):
            if size <= len(spare) <= 2 * size:
                self._spare_bytes -= len(spare)
                return self._spares.pop(index)
        return bytearray(size)

    def give(self, buffer: bytearray) -> None:
        """Keep a large buffer for later, unless there are enough or something still views it."""
        if self._spare_bytes + len(buffer) > _SPARE_LIMIT:
            return
        try:
            buffer.pop()  # a bytearray refuses to change its size while a view of it lives
            buffer.append(0)
        except BufferError:
            return
        self._spares.append(buffer)
        self._spare_bytes += len(buffer)

    def trim(self) -> None:
        """Give the memory of all spare buffers back."""
        self._spares.clear()
        self._spare_bytes = 0


class FrameReader:
    """The frames of one peer; see the module's docstring for whose the bytes are.

    After a RemoteProtocolError the stream has lost its frames: close it.
    """

    __slots__ = ("_arena", "_end", "_limit", "_own", "_proven", "_retained", "_start", "_view", "max_frame_size")

    def __init__(self, arena: ReceiveArena, max_frame_size: int = DEFAULT_MAX_FRAME_SIZE) -> None:
        self.max_frame_size = max_frame_size
        self._arena = arena
        self._view: memoryview | None = None  # of `_own`, or of the arena within a turn; None: nothing is buffered
        self._own: bytearray | None = None
        self._start = 0  # what is buffered, in `_view`
        self._end = 0
        self._limit = 0  # up to where `_own` may be filled
        self._retained: bytearray | None = None
        self._proven = 0  # size of the largest frame so far that had a large buffer, up to what is trusted

    @property
    def buffered(self) -> int:
        """Bytes received and not yet returned as frames."""
        return self._end - self._start

    def buffer(self) -> memoryview:
        """Where the next bytes of the peer must be received; never empty. Raises RemoteProtocolError for a bad size."""
        if self._view is not None:
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
        size: int = SIZE_PREFIX.unpack_from(view, body - 4)[0]
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

    def settle(self) -> None:
        """Keep what is left where no other reader writes; at the end of every turn.

        Raises RemoteProtocolError for a bad size.
        """
        rest = self._end - self._start
        if not rest:
            self._finish()
        elif self._own is None:
            self._move_to_own(rest, room=0)

    def retain(self) -> None:
        """Keep every frame returned so far as it is for as long as anything refers to it."""
        if self._own is None:
            if self._view is not None:
                self._arena.keep_up_to(self._start)
                self.settle()
            return
        self._retained = self._own
        rest = self._end - self._start
        if rest:
            self._move_to_own(rest, room=0)
        else:
            self._finish()

    def release(self) -> None:
        """Nobody will read or write the retained frames any more."""
        retained, self._retained = self._retained, None
        if retained is not None and len(retained) > _LARGE:
            self._arena.give(retained)

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
            self._own = None
        self._view = arena.view
        self._start = start
        self._end = end
        if self._proven:
            # The next frame is probably large: receive its beginning alone, to learn its size, and the rest in place.
            return arena.view[end : start + _SMALL]
        return arena.view[end:]

    def _move_to_own(self, rest: int, room: int) -> None:
        """Move what is buffered into an own buffer. A cut frame gets as much room as its peer has earned."""
        assert self._view is not None
        view = self._view[self._start : self._end]
        frame = self._first_frame(rest)
        if frame <= rest:  # whole frames that wait to be executed, and whatever comes behind them
            capacity = limit = rest + room
        elif rest < _SMALL and frame <= _LARGE:
            capacity = limit = rest
        else:
            capacity = limit = min(frame, max(_LARGE, 2 * rest, self._proven))
        own = self._arena.take(capacity) if capacity > rest else bytearray(view)
        if capacity > rest:
            own[:rest] = view
        self._own = own
        self._view = memoryview(own)
        self._start = 0
        self._end = rest
        self._limit = limit

    def _finish(self) -> None:
        """Nothing is buffered any more: hold nothing."""
        own = self._own
        self._own = self._view = None
        self._start = self._end = 0
        if own is not None and len(own) > _LARGE:
            self._proven = max(self._proven, min(len(own), _TRUST_LIMIT))
            if own is not self._retained:
                self._arena.give(own)
