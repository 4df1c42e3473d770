"""What `doctor` finds after a command could not reach or use its cluster, if that says more than the error.

It is asked about errors of connecting, about answers that did not come in time, and about partitions without a leader
or without enough replicas. It is not asked where the error is complete: if no bootstrap server can be resolved or all
refuse connections, and if a login was refused, which another attempt would only repeat.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Collection
from typing import cast

from odradek.client.cli.arguments.connection_arguments import settings_of_each
from odradek.client.cli.output.property_names import with_property_names
from odradek.client.cli.output.terminal import YELLOW, paint
from odradek.client.errors import (
    BootstrapError,
    BrokerError,
    ClientError,
    CommitUnknownError,
    PossiblyPersistedError,
    TimeLimitError,
    TransportError,
)
from odradek.protocol.errors import ErrorCode

_SECONDS = 3.0  # for all checks together
_STEP_SECONDS = 1.0  # for a name, a connection, an answer
_MOST = 3  # problems that are printed; `odradek doctor` prints all
_CODES = (
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
)


def needs_diagnosis(error: BaseException, bootstrap_server: str) -> bool:
    """Return whether `doctor` may say more than the error of a command with this `--bootstrap-server`."""
    if isinstance(error, (PossiblyPersistedError, CommitUnknownError)) and error.__cause__ is not None:
        error = error.__cause__
    if isinstance(error, BrokerError):
        return error.code in _CODES
    if isinstance(error, BootstrapError) and error.failures:
        servers = {server.strip() for server in bootstrap_server.split(",")}
        return not all(_is_complete(failure, servers) for failure in error.failures)
    return isinstance(error, (TransportError, TimeLimitError))


async def print_diagnosis(arguments: argparse.Namespace, printed: str) -> None:
    """Print the first problems that `doctor` finds, and that `printed` does not have, on standard error.

    Never raises ClientError or OSError.
    """
    try:
        async with asyncio.timeout(_SECONDS):
            await _print_problems(arguments, printed)
    except (ClientError, OSError):  # TimeoutError is an OSError
        pass


async def _print_problems(arguments: argparse.Namespace, printed: str) -> None:
    from odradek.client.admin.admin import Admin
    from odradek.client.config import parse_bootstrap_servers
    from odradek.client.consumer.consumer import Consumer
    from odradek.client.doctor.diagnosis import diagnose
    from odradek.client.doctor.finding import Severity
    from odradek.client.network.transport import TcpNetwork
    from odradek.client.producer.producer import Producer
    from odradek.client.security.settings import SecurityKeywords, SecuritySettings

    given, *_ = settings_of_each(arguments, Admin, Consumer, Producer)
    names = given.keys() & SecurityKeywords.__annotations__.keys()
    settings = cast("SecurityKeywords", {name: given[name] for name in names})
    network = TcpNetwork(SecuritySettings(**settings))
    servers = parse_bootstrap_servers(arguments.bootstrap_server)
    count = 0
    async for finding in diagnose(servers, network, _STEP_SECONDS, settings=settings):
        text = with_property_names(str(finding))
        if finding.severity is Severity.PROBLEM and text.rstrip(".") not in printed:
            print(f"{paint('doctor:', YELLOW, sys.stderr)} {text}", file=sys.stderr)
            count += 1
            if count == _MOST:
                return


def _is_complete(failure: ClientError, servers: Collection[str]) -> bool:
    """Return whether a bootstrap server, not an advertised address, has no address or refuses connections."""
    is_unknown = getattr(failure, "is_unknown_host", False)
    return failure.broker in servers and (is_unknown or failure.cause == "connection refused")
