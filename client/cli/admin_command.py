"""The Admin of a command and the exit status of its results, for the commands that administer."""

from __future__ import annotations

import argparse
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from odradek.client.cli import FAILED, fail
from odradek.client.cli.arguments.connection_arguments import client_settings

if TYPE_CHECKING:
    from odradek.client.admin.admin import Admin
    from odradek.client.admin.results import Results

Work = Callable[["Admin", argparse.Namespace], Awaitable[int]]
"""The function of an action. Returns the exit status."""


async def with_admin(arguments: argparse.Namespace, work: Work) -> int:
    """Run `work` with an Admin and return its exit status. Prints errors of the client and of files as one line."""
    from odradek.client.admin.admin import Admin
    from odradek.client.cli.failures import report_failure
    from odradek.client.errors import ClientError

    try:
        async with Admin(arguments.bootstrap_server, **client_settings(arguments, Admin)) as admin:
            return await work(admin, arguments)
    except BrokenPipeError:
        raise
    except (ClientError, OSError, ValueError) as error:
        return await report_failure(error, arguments)


async def status_of(admin: Admin, results: Results[Any, Any]) -> int:
    """Print the error of each item that failed; return 0 if none did."""
    from odradek.client.cli.failures import texts_of

    for text in await texts_of(admin, results.failed.values()):
        fail(text)
    return FAILED if results.failed else 0
