"""A failed log directory stays failed: every request to any of its logs is refused until the broker is started again.

After an error nobody knows what is on the disk. In particular a failed fsync may have thrown away the very pages that
it could not write, and the next one says that all is well; so nothing is tried again and passed off as durable. What
had been acknowledged is found again by recovery, when the directory is next opened.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from protocol.errors import ErrorCode, KafkaError

_LOG = logging.getLogger(__name__)


class DiskFailure:
    """Whether a log directory has failed, shared by all its logs; `on_failure` is called once, by whatever thread."""

    def __init__(self, path: str, on_failure: Callable[[OSError], None] | None = None) -> None:
        self.path = path
        self.error: OSError | None = None
        self._on_failure = on_failure

    def check(self) -> None:
        """Raise KAFKA_STORAGE_ERROR if the directory has failed."""
        if self.error is not None:
            raise self._refusal(self.error)

    def fail(self, doing: str, error: OSError) -> KafkaError:
        """Take the directory offline because of `error`; returns what to raise to the one who asked."""
        if self.error is None:
            self.error = error
            _LOG.error("log directory %s is offline: %s: %s", self.path, doing, error)
            if self._on_failure is not None:
                self._on_failure(error)
        return self._refusal(error)

    def _refusal(self, error: OSError) -> KafkaError:
        return KafkaError(
            ErrorCode.KAFKA_STORAGE_ERROR, f"log directory {self.path} is offline: {error.strerror or error}"
        )
