"""A handler and the row that describes its API: everything that the server needs to serve a request.

`broker.apis.table` has the rows. The server reads them, so it needs no numbers of APIs, with two exceptions:
ApiVersions is answered in version 0 if its version is unknown, and Fetch has separate counts for followers.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from odradek.broker.request.context import RequestContext
from odradek.broker.request.time_slices import Steps
from odradek.protocol.api import Api
from odradek.protocol.errors import ErrorCode
from odradek.protocol.schema import Message

Result = Message | None
"""A response; None for a request that gets none."""

Answer = Result | Awaitable[Result] | Steps[Any]
"""The return value of `handle`: a result, an awaitable of one, or steps that return either."""


class ApiRow(NamedTuple):
    """One API: its handler's module in `broker.handlers`, the versions that are served (inclusive), and its traits.

    - `only_reads`: it changes nothing, so a read-only broker serves it, too.
    - `waits_for_others`: it waits, perhaps for minutes, for another client or a timer. When its client disconnects, the
      server cancels it. Any other request ends soon by itself, and is finished.
    - `carries_records`: the request has record batches, which refer to the bytes of the frame. So the server keeps the
      frame until the answer, accepts frames of up to `socket.request.max.bytes`, and finishes a request although its
      client has disconnected. The answer is short, so it is encoded at once.
    - `sends_file_slices`: the answer has parts of files, which the server releases if it does not send them.
    - `advertised_from`: the lowest version in the answer to ApiVersions, if that is not `min_version`.
    """

    module: str
    min_version: int
    max_version: int
    only_reads: bool = False
    waits_for_others: bool = False
    carries_records: bool = False
    sends_file_slices: bool = False
    advertised_from: int | None = None


Handle = Callable[[Any, RequestContext, Any], Answer]
"""The function of a handler, of services, context and request."""


class Handler(NamedTuple):
    """An API that is served, with the two functions of its handler."""

    api: Api
    row: ApiRow
    handle: Handle
    error_response: Callable[[Any, ErrorCode, str], Result]


Interceptor = Callable[[Handler], Handle]
"""Returns a function that is called in place of the handler's, which it may call, for tests and for tracing."""
