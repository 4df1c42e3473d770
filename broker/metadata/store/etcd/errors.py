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

import re
from collections.abc import Mapping

import grpc
import grpc.aio

from odradek.broker.metadata.store.store import (
    CompactedError,
    LeaseLostError,
    StoreAccessError,
    StoreError,
    StoreFullError,
    StoreUnreachableError,
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
_UNUSABLE = "Failed to create security handshaker"
"""In the texts of gRPC: a file of certificates, or of a key, that it cannot use."""
_PREAMBLE = re.compile(r"failed to connect to all addresses; last error: \w+: (ipv[46]:\S+: )?")


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

_ADVICE = {
    "authentication failed": "; correct metadata.etcd.username and metadata.etcd.password",
    "user name is empty": "; set metadata.etcd.username and metadata.etcd.password",
    "permission denied": "; the user needs to read and write all keys under /<metadata.etcd.namespace>/",
}


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


def connection_error(reasons: Mapping[str, str]) -> StoreError:
    """Return the error of a store without a connection; `reasons` are those of gRPC, by the address of the endpoint."""
    text = "; ".join(f"{address}: {_PREAMBLE.sub('', reason)}" for address, reason in reasons.items() if reason)
    if reasons and all(_UNUSABLE in reason for reason in reasons.values()):
        return StoreAccessError(
            "metadata.etcd.ca.file, metadata.etcd.certificate.file or metadata.etcd.key.file cannot be used: they must"
            f" be PEM, and the key that of the certificate ({text})"
        )
    if reasons and all(_SECURITY in reason or _CERTIFICATE in reason for reason in reasons.values()):
        return StoreAccessError(f"etcd and this broker do not trust each other: {text}")
    return StoreUnreachableError(f"no etcd server can be reached: {text}")


def with_advice(error: StoreAccessError) -> StoreAccessError:
    """Return the error of a refused user, with what the operator can do."""
    advice = next((advice for part, advice in _ADVICE.items() if part in str(error)), "")
    return StoreAccessError(f"{error}{advice}")
