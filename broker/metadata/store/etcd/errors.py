"""The answers of etcd as errors of a store.

| gRPC code, text of etcd | error |
|---|---|
| UNAVAILABLE, DEADLINE_EXCEEDED, CANCELLED, UNKNOWN, INTERNAL, DATA_LOSS | `NoAnswerError`: may have been applied |
| FAILED_PRECONDITION, a member that cannot serve; too many requests | `NotServedError`: certainly not applied |
| UNAUTHENTICATED, or a token of an older state of the users | `TokenRefusedError`: certainly not applied |
| PERMISSION_DENIED; INVALID_ARGUMENT, wrong user or password | `StoreAccessError` |
| RESOURCE_EXHAUSTED, quota | `StoreFullError` |
| NOT_FOUND, lease | `LeaseLostError` |
| OUT_OF_RANGE, compacted | `CompactedError` |
| others | `StoreError` |

etcd's texts are part of its API: its own clients compare them too (`api/v3rpc/rpctypes`).
"""

from __future__ import annotations

import grpc
import grpc.aio

from odradek.broker.metadata.store.store import (
    CompactedError,
    LeaseLostError,
    StoreAccessError,
    StoreError,
    StoreFullError,
)

_NO_ANSWER = {
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.CANCELLED,
    grpc.StatusCode.UNKNOWN,
    grpc.StatusCode.INTERNAL,
    grpc.StatusCode.DATA_LOSS,
}
_TEXTS: tuple[tuple[str, type[StoreError]], ...]
_SECURITY, _CERTIFICATE = "TSI_", "CERTIFICATE"
"""In the texts of gRPC: the results of its transport security, and the errors of TLS."""


class NoAnswerError(StoreError):
    """This endpoint gave no answer. Whether the request was applied is unknown."""


class NotServedError(StoreError):
    """This endpoint does not serve the request now, and has not applied it."""


class TokenRefusedError(StoreError):
    """The token is not valid, or no longer; nothing was applied."""


_TEXTS = (
    ("invalid auth token", TokenRefusedError),
    ("revision of auth store is old", TokenRefusedError),
    ("user name is empty", TokenRefusedError),
    ("authentication failed", StoreAccessError),
    ("permission denied", StoreAccessError),
    ("database space exceeded", StoreFullError),
    ("requested lease not found", LeaseLostError),
    ("has been compacted", CompactedError),
    ("too many requests", NotServedError),
    ("not supported for learner", NotServedError),
    ("not capable", NotServedError),
    ("not leader", NotServedError),
)


def store_error(error: grpc.aio.AioRpcError, address: str) -> StoreError:
    """Return what a failed call to the endpoint at `address` means."""
    details = error.details() or ""
    if error.code() in _NO_ANSWER:
        return NoAnswerError(f"etcd at {address}: {details or error.code().name}")
    return error_of_text(details, address)


def error_of_text(text: str, address: str) -> StoreError:
    """Return the error that etcd reports with `text`: as the details of a call, or the reason of a cancelled watch."""
    kind = next((kind for part, kind in _TEXTS if part in text), StoreError)
    return kind(f"etcd at {address}: {text}")


def is_about_certificates(reason: str) -> bool:
    """Whether a connection failed for `reason` because one side refused the other's certificate."""
    return _SECURITY in reason or _CERTIFICATE in reason
