"""`odradek doctor`: find out why a cluster cannot be reached or does not work, and print how to repair it.

The exit status is 1 if there is a problem; warnings leave it at 0.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, cast

from odradek.client.cli import FAILED, fail
from odradek.client.cli.arguments.argument_types import milliseconds
from odradek.client.cli.arguments.connection_arguments import add_connection_arguments, client_settings
from odradek.client.cli.output.tables import add_json_argument, print_json
from odradek.client.cli.output.terminal import GREEN, RED, YELLOW, paint

if TYPE_CHECKING:
    from odradek.client.security.settings import SecurityKeywords

_STYLES = {"OK": GREEN, "NOTE": "", "WARNING": YELLOW, "PROBLEM": RED}
_WIDTH = 7  # of the longest severity


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_connection_arguments(parser)
    parser.add_argument(
        "--timeout-ms",
        type=milliseconds,
        default=5000,
        metavar="MS",
        help="for each step: a name, a connection, an answer (default: %(default)s)",
    )
    parser.add_argument(
        "--write", action="store_true", help="create a topic, write and read a record in it, and delete it"
    )
    add_json_argument(parser)


async def run(arguments: argparse.Namespace) -> int:
    from odradek.client.cli.output.property_names import error_text, with_property_names
    from odradek.client.config import parse_bootstrap_servers
    from odradek.client.doctor.diagnosis import diagnose
    from odradek.client.doctor.finding import Severity
    from odradek.client.errors import ConfigurationError
    from odradek.client.network.transport import TcpNetwork
    from odradek.client.security.settings import SecuritySettings

    try:
        servers = parse_bootstrap_servers(arguments.bootstrap_server)
        settings = _settings(arguments)
        network = TcpNetwork(SecuritySettings(**settings))
        findings = []
        seconds = arguments.timeout_ms / 1000
        async for found in diagnose(servers, network, seconds, writes=arguments.write, settings=settings):
            finding = found._replace(text=with_property_names(found.text), cure=with_property_names(found.cure))
            findings.append(finding)
            if not arguments.json:
                severity = finding.severity.name
                print(f"{paint(severity.lower().ljust(_WIDTH), _STYLES[severity], sys.stdout)}  {finding}", flush=True)
    except (ConfigurationError, OSError) as error:
        if isinstance(error, BrokenPipeError):
            raise
        return fail(error_text(error))
    if arguments.json:
        print_json([{**finding._asdict(), "severity": finding.severity.name.lower()} for finding in findings])
    return FAILED if any(finding.severity is Severity.PROBLEM for finding in findings) else 0


def _settings(arguments: argparse.Namespace) -> SecurityKeywords:
    """Return the settings of TLS and SASL. Raises ConfigurationError, OSError."""
    if not arguments.command_config and not arguments.command_property:
        return {}
    from odradek.client.admin.admin import Admin
    from odradek.client.security.settings import SecurityKeywords

    given = client_settings(arguments, Admin)
    return cast("SecurityKeywords", {name: given[name] for name in given if name in SecurityKeywords.__annotations__})
