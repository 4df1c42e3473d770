"""The failure of a log directory: after one disk error, all requests to its logs fail until the next start.

After an error the contents of the disk are unknown. In particular, a failed fsync may have dropped the very pages that
it could not write, and the next fsync succeeds; so nothing is retried and then reported as durable. Recovery finds the
acknowledged records when the directory is next opened.

A transient error (`disk_errors.is_transient`: no descriptor, no memory, a name that is taken) is raised as
`TransientDiskError` and leaves the directory online. The operation that raises it has changed nothing that would make a
retry fail. A sync itself never raises one: see `files`.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable
from typing import Final

from odradek.broker.clock import Clock
from odradek.broker.storage.disk.disk_errors import TransientDiskError, is_transient
from odradek.protocol.errors import ErrorCode, KafkaError

_LOG = logging.getLogger(__name__)

_WARNED_EVERY: Final = 10.0  # seconds: every request may meet the same transient error


class DiskFailure:
    """Whether a log directory has failed, shared by all its logs; `on_failure` is called once, on any thread.

    With a clock, warnings of transient errors are logged every ten seconds at most.
    """

    def __init__(
        self, path: str, on_failure: Callable[[OSError], None] | None = None, clock: Clock | None = None
    ) -> None:
        self.path = path
        self.error: OSError | None = None
        self._on_failure = on_failure
        self._clock = clock
        self._warned_at: float | None = None

    def check(self) -> None:
        """Raise KAFKA_STORAGE_ERROR if the directory has failed."""
        if self.error is not None:
            raise self.refusal()

    def fail(self, doing: str, error: OSError) -> KafkaError:
        """Take the directory offline because of `error`, unless it is transient; return the error to raise."""
        if is_transient(error):
            self._warn_of_transient(doing, error)
            return TransientDiskError(ErrorCode.KAFKA_STORAGE_ERROR, f"{doing}: {error.strerror or error}")
        if self.error is None:
            self.error = error
            _LOG.error("log directory %s is offline: %s: %s", self.path, doing, error)
            if self._on_failure is not None:
                self._on_failure(error)
        return self.refusal()

    def refuse_all(self) -> None:
        """Refuse everything from now on, as after an error, without a log line: the broker ends as a killed process."""
        if self.error is None:
            self.error = OSError(errno.ESHUTDOWN, "the broker was killed")

    def _warn_of_transient(self, doing: str, error: OSError) -> None:
        now = self._clock.monotonic() if self._clock is not None else 0.0
        if self._warned_at is None or self._clock is None or now - self._warned_at >= _WARNED_EVERY:
            self._warned_at = now
            _LOG.warning("%s could not be done and may be tried again: %s", doing, error)

    def refusal(self) -> KafkaError:
        """The error of every request to a directory that has failed."""
        assert self.error is not None  # the caller has looked
        return KafkaError(
            ErrorCode.KAFKA_STORAGE_ERROR, f"log directory {self.path} is offline: {self.error.strerror or self.error}"
        )
