"""Unix sockets between Spark's Java and the Python workers on this machine, in place of TCP over loopback.

```
Java ◄── <session directory>/.<uuid>.sock ──► workers
```
All that a worker reads goes to Java through such a socket. TCP costs more processor for each byte, and where one side
writes twice and then waits, 40 ms each time: the second piece is held back until the first is acknowledged, and that is
delayed. Spark can do without since 4.1, and leaves it off; these sockets have no password, so they lie in a directory
that nobody else may enter. Source: SPARK-51688.
"""

from __future__ import annotations

import os
import socket
import uuid
from typing import Final

from odradek.pipeline.spark.session_directory import session_directory

_LONGEST_PATH: Final = 103  # bytes, of macOS; Linux takes four more


def socket_settings() -> dict[str, str]:
    """Settings of a session whose workers run on this machine: none where the system has no such sockets.

    Nor where the path of the temporary directory leaves no room for the name of one.
    """
    directory = str(session_directory())
    longest = len(os.fsencode(os.path.join(directory, f".{uuid.UUID(int=0)}.sock")))  # noqa: PTH118 - as Spark does
    if not hasattr(socket, "AF_UNIX") or longest > _LONGEST_PATH:
        return {}
    return {"spark.python.unix.domain.socket.enabled": "true", "spark.python.unix.domain.socket.dir": directory}
