"""Lines of a descriptor as they come, for an event loop that must not wait for them.

A file is never "not ready", and a terminal may be silent for hours: the descriptor is read in a thread of its own, a
chunk at a time and one chunk ahead. The thread is a daemon, since a read that waits for a terminal cannot be ended.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator

_CHUNK = 256 * 1024
_AHEAD = 2  # chunks


async def read_lines(descriptor: int) -> AsyncIterator[list[bytes]]:
    """Yield the lines of each chunk that comes, without their ends (LF or CR LF); the last need not have one.

    Raises OSError.
    """
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
    rest = b""
    while True:
        chunk = await chunks.get()
        room.release()
        if isinstance(chunk, OSError):
            raise chunk
        if not chunk:
            break
        *lines, rest = (rest + chunk).split(b"\n")
        if lines:
            yield [line.removesuffix(b"\r") for line in lines]
    if rest:
        yield [rest.removesuffix(b"\r")]
