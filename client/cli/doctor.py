"""`odradek doctor`: find out why a cluster cannot be reached or does not work, and print how to repair it.

The exit status is 1 if there is a problem; warnings leave it at 0.
"""

from __future__ import annotations

import argparse
import sys

from odradek.client.cli import FAILED, fail
from odradek.client.cli.arguments.argument_types import positive
from odradek.client.cli.arguments.connection_arguments import add_bootstrap_argument
from odradek.client.cli.output.tables import add_json_argument, print_json
from odradek.client.cli.output.terminal import GREEN, RED, YELLOW, paint

_STYLES = {"OK": GREEN, "NOTE": "", "WARNING": YELLOW, "PROBLEM": RED}
_WIDTH = 7  # of the longest severity


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_bootstrap_argument(parser)
    parser.add_argument(
        "--timeout-ms",
        type=positive,
        default=5000,
        metavar="MS",
        help="for each step: a name, a connection, an answer (default: %(default)s)",
    )
    parser.add_argument(
        "--write", action="store_true", help="create a topic, write and read a record in it, and delete it"
    )
    add_json_argument(parser)


async def run(arguments: argparse.Namespace) -> int:
    from odradek.client.config import parse_bootstrap_servers
    from odradek.client.doctor.diagnosis import diagnose
    from odradek.client.doctor.finding import Severity
    from odradek.client.errors import ConfigurationError
    from odradek.client.network.transport import TcpNetwork

    try:
        servers = parse_bootstrap_servers(arguments.bootstrap_server)
    except ConfigurationError as error:
        return fail(error)
    findings = []
    async for finding in diagnose(servers, TcpNetwork(), arguments.timeout_ms / 1000, writes=arguments.write):
        findings.append(finding)
        if not arguments.json:
            severity = finding.severity.name
            print(f"{paint(severity.lower().ljust(_WIDTH), _STYLES[severity], sys.stdout)}  {finding}", flush=True)
    if arguments.json:
        print_json([{**finding._asdict(), "severity": finding.severity.name.lower()} for finding in findings])
    return FAILED if any(finding.severity is Severity.PROBLEM for finding in findings) else 0
