"""Lines of a file descriptor, read on a thread so that the event loop never waits for them.

An event loop cannot wait for a regular file, and a terminal may send nothing for hours. So a thread reads the
descriptor, a chunk at a time and one chunk ahead. The thread is a daemon, because a read from a terminal cannot be
interrupted. Memory holds one line and a few chunks; a line that is too long is refused.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncGenerator, AsyncIterator

from odradek.client.cli.input.input_record import LineError

_CHUNK = 256 * 1024
_AHEAD = 2  # chunks


async def read_lines(descriptor: int, longest: int) -> AsyncGenerator[list[bytes]]:
    """Yield the lines of each chunk, without their ends (LF or CR LF), which the last line may lack.

    Raises OSError, and LineError for a line of more than `longest` bytes.
    """
    pieces: list[bytes] = []  # of a line whose end has not been read
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
            raise LineError(
                f"line {count + 1} is longer than {longest} bytes: neither it nor the lines after it are sent"
            )
    if size:
        yield [b"".join(pieces).removesuffix(b"\r")]


async def _read_chunks(descriptor: int) -> AsyncIterator[bytes]:
    """Yield the chunks that a thread reads. Raises OSError."""
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
                return  # the loop was closed
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
