"""Errors of the operating system that do not mean a failed disk.

| error | means | action |
|---|---|---|
| EMFILE, ENFILE | no descriptor is left, in the process or the system | close unpinned files and retry |
| ENOMEM, EAGAIN, EINTR | no memory, no process, a signal | report an error that may be retried; own work is retried |
| EEXIST | the name is taken | the same |
| EACCES, EPERM, EBUSY, … of a removal or a renaming | permission, a mount point, an open directory | log a warning |

Every other error of a log directory takes it offline (`disk_failure`).
"""

from __future__ import annotations

import errno
from typing import Final

from odradek.protocol.errors import KafkaError

_EXHAUSTED: Final = frozenset({errno.EMFILE, errno.ENFILE})
_TRANSIENT: Final = _EXHAUSTED | {errno.ENOMEM, errno.EAGAIN, errno.EINTR, errno.EEXIST}
_NAME_ERRORS: Final = frozenset(
    {errno.EACCES, errno.EPERM, errno.EBUSY, errno.ENOTEMPTY, errno.ENOTDIR, errno.ELOOP, errno.EXDEV}
)

RETRY_SECONDS: Final = 0.1
"""The pause before this broker retries its own work after a transient error."""


class TransientDiskError(KafkaError):
    """KAFKA_STORAGE_ERROR of a log directory that still works; clients retry it."""


def is_exhausted(error: OSError) -> bool:
    """Whether a file could not be opened because too many are open."""
    return error.errno in _EXHAUSTED


def is_transient(error: OSError) -> bool:
    """Whether a retry may succeed, and the disk has not failed."""
    return error.errno in _TRANSIENT


def is_name_error(error: OSError) -> bool:
    """Whether a name could not be removed or renamed because of its kind or its owner."""
    return error.errno in _NAME_ERRORS
