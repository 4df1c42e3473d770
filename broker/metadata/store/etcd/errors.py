"""The answers of etcd as errors of a store.

| gRPC code, text of etcd | error |
|---|---|
| UNAVAILABLE, DEADLINE_EXCEEDED | `NoAnswerError`: may have been applied |
| CANCELLED, UNKNOWN, INTERNAL, DATA_LOSS, without a text below | the same |
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

_NEVER_DEFINITE = {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED}
_NO_ANSWER = {
    grpc.StatusCode.CANCELLED,
    grpc.StatusCode.UNKNOWN,
    grpc.StatusCode.INTERNAL,
    grpc.StatusCode.DATA_LOSS,
}
_SECURITY, _CERTIFICATE = "TSI_", "CERTIFICATE"
"""In the texts of gRPC: the results of its transport security, and the errors of TLS."""


class NoAnswerError(StoreError):
    """This endpoint gave no answer. Whether the request was applied is unknown."""


class NotServedError(StoreError):
    """This endpoint does not serve the request now, and has not applied it."""


class TokenRefusedError(StoreError):
    """The token is not valid, or no longer; nothing was applied."""


_TEXTS: tuple[tuple[str, type[StoreError]], ...] = (
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
    kind = _kind(details)
    if error.code() in _NEVER_DEFINITE or (kind is StoreError and error.code() in _NO_ANSWER):
        return NoAnswerError(f"etcd at {address}: {details or error.code().name}")
    return kind(f"etcd at {address}: {details or error.code().name}")


def error_of_text(text: str, address: str) -> StoreError:
    """Return the error that etcd reports with `text`: as the details of a call, or the reason of a cancelled watch."""
    return _kind(text)(f"etcd at {address}: {text}")


def _kind(text: str) -> type[StoreError]:
    return next((kind for part, kind in _TEXTS if part in text), StoreError)


def is_about_certificates(reason: str) -> bool:
    """Whether a connection failed for `reason` because one side refused the other's certificate."""
    return _SECURITY in reason or _CERTIFICATE in reason
