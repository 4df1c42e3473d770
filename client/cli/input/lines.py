"""Lines of a descriptor as they come, for an event loop that must not wait for them.

A file is never "not ready", and a terminal may be silent for hours: the descriptor is read in a thread of its own, a
chunk at a time and one chunk ahead. The thread is a daemon, since a read that waits for a terminal cannot be ended.
What is kept in memory is a line and a few chunks; a line that has no end is refused when it is too long.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator

from odradek.client.cli.input.input_record import LineError

_CHUNK = 256 * 1024
_AHEAD = 2  # chunks


async def read_lines(descriptor: int, longest: int) -> AsyncIterator[list[bytes]]:
    """Yield the lines of each chunk that comes, without their ends (LF or CR LF); the last need not have one.

    Raises OSError, and LineError for a line that goes on after `longest` bytes.
    """
    pieces: list[bytes] = []  # of the line that has begun
    size = count = 0
    async for chunk in _read_chunks(descriptor):
        pieces.append(chunk)
        size += len(chunk)
        if b"\n" in chunk:
            *lines, rest = b"".join(pieces).split(b"\n")
            yield [line.removesuffix(b"\r") for line in lines]
            pieces, size = [rest], len(rest)
            count += len(lines)
        if size > longest:
            raise LineError(f"line {count + 1} is longer than {longest} bytes: it is not sent, nor is what follows")
    if size:
        yield [b"".join(pieces).removesuffix(b"\r")]


async def _read_chunks(descriptor: int) -> AsyncIterator[bytes]:
    """Yield what a thread reads. Raises OSError."""
    loop = asyncio.get_running_loop()
    chunks: asyncio.Queue[bytes | OSError] = asyncio.Queue()
    room = threading.Semaphore(_AHEAD)

    def read() -> None:
        while True:
            room.acquire()
            chunk: bytes | OSError
            try:
                chunk = os.read(descriptor, _CHUNK)
            except OSError as error:
                chunk = error
            try:
                loop.call_soon_threadsafe(chunks.put_nowait, chunk)
            except RuntimeError:
                return  # the loop was closed: nobody is interested any more
            if not isinstance(chunk, bytes) or not chunk:
                return

    threading.Thread(target=read, name="read-lines", daemon=True).start()
    while True:
        chunk = await chunks.get()
        room.release()
        if isinstance(chunk, OSError):
            raise chunk
        if not chunk:
            return
        yield chunk
