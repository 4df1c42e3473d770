"""The execution of a request by its handler, from an interceptor: whatever the handler returns, it is waited for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, cast

from odradek.broker.request.context import RequestContext
from odradek.broker.request.handler import Handler, Result
from odradek.broker.request.services import Services
from odradek.broker.request.time_slices import is_steps
from odradek.protocol.code_generation.encoder_writer import BYTES_LIKE
from odradek.protocol.messages.fetch import FetchResponse


async def execute(handler: Handler, services: Services, context: RequestContext, request: Any) -> Result:
    """Call the handler, and return the answer when it has one. On cancellation, nothing is left behind."""
    result: Any = handler.handle(services, context, request)
    if is_steps(result):
        peer = None if handler.row.carries_records else context.connection
        result = await services.time_slices.finish(result, peer)
    if not isinstance(result, Awaitable):
        return cast("Result", result)
    future = asyncio.ensure_future(result)
    try:
        return cast("Result", await future)
    except asyncio.CancelledError:
        if future.done() and not future.cancelled() and future.exception() is None:
            release_records(future.result())
        raise


def release_records(answer: Result) -> None:
    """Release the parts of files in an answer that will not be sent."""
    if isinstance(answer, FetchResponse):
        for topic in answer.responses:
            for row in topic.partitions:
                if row.records is not None and not isinstance(row.records, BYTES_LIKE):
                    row.records.release()
