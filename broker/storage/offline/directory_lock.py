"""A look at the lock of a log directory: does a broker hold it? The lock is not taken.

| broker | its lock on `.lock` |
|---|---|
| Odradek | `flock`; there is no query, so a shared lock is taken and released at once |
| Apache Kafka on Linux | a record lock of the file, which can be queried |

The lock of a broker on another machine is seen only if the file system passes locks on.
"""

from __future__ import annotations

import fcntl
import os
import struct
from typing import Final

from odradek.broker.storage.names import LOCK

_RECORD_LOCK: Final = struct.Struct("hhqqi4x")  # struct flock of Linux: type, whence, start, length, process
_QUERY: Final = getattr(fcntl, "F_OFD_GETLK", None)  # also finds a lock of this process


def is_locked(directory: str) -> bool:
    """Whether a broker is using `directory`, as far as this machine can see. A missing lock file is not locked."""
    try:
        descriptor = os.open(f"{directory}/{LOCK}", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        if _QUERY is not None:
            query = _RECORD_LOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
            if _RECORD_LOCK.unpack(fcntl.fcntl(descriptor, _QUERY, query))[0] != fcntl.F_UNLCK:
                return True
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except BlockingIOError:
        return True
    except OSError:
        return False  # a file system without locks
    finally:
        os.close(descriptor)  # which releases the shared lock
