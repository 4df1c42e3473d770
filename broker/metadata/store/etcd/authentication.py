"""The token of a user with a password.

A token expires when it is not used for some time (etcd's `--auth-token-ttl`, 5 minutes), when the member that keeps it
restarts, or when users or roles change. Then etcd refuses it before it applies anything, and the call is made again
with a new one.
"""

from __future__ import annotations

import asyncio

import grpc.aio

from odradek.broker.metadata.store.etcd.endpoints import Endpoint
from odradek.broker.metadata.store.etcd.errors import NoAnswerError, NotServedError, store_error
from odradek.broker.metadata.store.etcd.messages import AUTHENTICATE, authenticate_request, authenticate_response
from odradek.broker.metadata.store.etcd.options import EtcdOptions

_NOT_ENABLED = "authentication is not enabled"
_PASSWORD_HASH_TIME = 4
"""A member hashes the password on purpose slowly, a tenth of a second or more: as many times the usual time limit."""


class Authentication:
    """The token of one store. Belongs to one event loop."""

    def __init__(self, options: EtcdOptions) -> None:
        self._username = options.username
        self._request = authenticate_request(options.username, options.password)
        self.seconds = options.timeout * _PASSWORD_HASH_TIME
        """The most seconds that a call may take, with its own attempt at a token."""
        self._token = ""
        self._authenticating = asyncio.Lock()

    @property
    def has_user(self) -> bool:
        return bool(self._username)

    async def token(self, endpoint: Endpoint) -> str:
        """Return the token for a call; "" if there is no user, or etcd requires none.

        Raises `NotServedError` if `endpoint` does not answer, because the call itself has not been made, and
        `StoreAccessError` for a wrong user or password.
        """
        if not self._username or self._token:
            return self._token
        async with self._authenticating:
            if not self._token:
                self._token = await self._authenticate(endpoint)
            return self._token

    def forget(self, token: str) -> None:
        """Get a new token for the next call, after etcd has refused `token`."""
        if token == self._token:
            self._token = ""

    async def _authenticate(self, endpoint: Endpoint) -> str:
        try:
            return authenticate_response(await endpoint.call(AUTHENTICATE, self._request, self.seconds))
        except grpc.aio.AioRpcError as rpc_error:
            if _NOT_ENABLED in (rpc_error.details() or ""):
                return ""
            error = store_error(rpc_error, endpoint.address)
            raise (NotServedError(str(error)) if isinstance(error, NoAnswerError) else error) from rpc_error
