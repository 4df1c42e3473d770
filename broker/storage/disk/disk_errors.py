"""Errors of the operating system that say nothing against the disk.

| error | means | what is done |
|---|---|---|
| EMFILE, ENFILE | no descriptor is left, in the process or the system | unpinned files are closed; it is tried again |
| ENOMEM, EAGAIN, EINTR | no memory, no process, a signal | the one who asked gets an error that he may retry |
| EEXIST | another name is in the way | the same |
| EACCES, EPERM, EBUSY, … of a removal or a renaming | permission, a mount point, an open directory | a warning |

Every other error of a log directory takes it offline (`disk_failure`).
"""

from __future__ import annotations

import errno
from typing import Final

from odradek.protocol.errors import KafkaError

_EXHAUSTED: Final = frozenset({errno.EMFILE, errno.ENFILE})
_TRANSIENT: Final = _EXHAUSTED | {errno.ENOMEM, errno.EAGAIN, errno.EINTR, errno.EEXIST}
_IN_THE_WAY: Final = frozenset(
    {errno.EACCES, errno.EPERM, errno.EBUSY, errno.ENOTEMPTY, errno.ENOTDIR, errno.ELOOP, errno.EXDEV}
)


class TransientDiskError(KafkaError):
    """KAFKA_STORAGE_ERROR, which clients try again, of a log directory that works."""


def is_exhausted(error: OSError) -> bool:
    """Whether a file could not be opened because too many are open."""
    return error.errno in _EXHAUSTED


def is_transient(error: OSError) -> bool:
    """Whether the same may succeed later, and the disk is as good as before."""
    return error.errno in _TRANSIENT


def is_in_the_way(error: OSError) -> bool:
    """Whether a name could not be removed or renamed because of what it is, or who owns it."""
    return error.errno in _IN_THE_WAY
