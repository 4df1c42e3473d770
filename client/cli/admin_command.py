"""What commands of administration share: an Admin for their time, and an exit status from results with errors."""

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
"""What an action does with an Admin; it returns the exit status."""


async def with_admin(arguments: argparse.Namespace, work: Work) -> int:
    """Run `work`; what it raises of the client is told in a line."""
    from odradek.client.admin.admin import Admin
    from odradek.client.errors import ClientError

    try:
        async with Admin(arguments.bootstrap_server, **client_settings(arguments, Admin)) as admin:
            return await work(admin, arguments)
    except BrokenPipeError:
        raise
    except (ClientError, OSError, ValueError) as error:
        return fail(error)


def status_of(results: Results[Any, Any]) -> int:
    """Tell the error of each item that has one; 0 if there is none."""
    for error in results.failed.values():
        fail(error)
    return FAILED if results.failed else 0
