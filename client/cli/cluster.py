"""`odradek cluster describe|brokers|features|api-versions|log-dirs`: brokers, features, APIs, log directories."""

from __future__ import annotations

import argparse
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Final

from odradek.client.cli import FAILED, fail
from odradek.client.cli.admin_command import status_of, with_admin
from odradek.client.cli.arguments.argument_types import milliseconds, named
from odradek.client.cli.arguments.command_parser import CommandParser
from odradek.client.cli.arguments.connection_arguments import add_connection_arguments
from odradek.client.cli.output.tables import add_json_argument, print_json, print_rows

if TYPE_CHECKING:
    from odradek.client.admin.admin import Admin
    from odradek.client.admin.results import BrokerDescription

_NUM_WORKERS: Final = "num.workers"
_NODE_IDS_APART: Final = 1000
"""Worker k of several on one machine has the node id of the first plus this times k, and the first a smaller one."""

_ACTIONS = {
    "describe": "Print the cluster's id, its controller and its brokers",
    "brokers": "Print each broker's address and rack, and which worker of its machine it is",
    "features": "Print the feature levels of the cluster",
    "api-versions": "Print which versions of each API the brokers serve, beside those of this client",
    "log-dirs": "Print the log directories of the brokers, and the partitions in them",
}


def add_arguments(parser: CommandParser) -> None:
    parser.default_action = "describe"
    actions = parser.add_actions(_ACTIONS)
    for action in actions.values():
        add_connection_arguments(action)
        add_json_argument(action)
    actions["brokers"].add_argument(
        "--timeout-ms",
        type=milliseconds,
        default=5000,
        metavar="MS",
        help="how long to wait for the answer of each broker (default: %(default)s)",
    )
    actions["log-dirs"].add_argument("--topic", type=named, metavar="NAME", help="partitions of this topic only")


def run(arguments: argparse.Namespace) -> Coroutine[None, None, int]:
    work = {
        "describe": _describe,
        "brokers": _brokers,
        "features": _features,
        "api-versions": _api_versions,
        "log-dirs": _log_dirs,
    }[arguments.action]
    return with_admin(arguments, work)


async def _describe(admin: Admin, arguments: argparse.Namespace) -> int:
    cluster = await admin.describe_cluster()
    brokers = [{"broker": one.node_id, "host": one.host, "port": one.port, "rack": one.rack} for one in cluster.brokers]
    if arguments.json:
        print_json({"cluster_id": cluster.cluster_id, "controller": cluster.controller, "brokers": brokers})
        return 0
    controller = "no controller" if cluster.controller is None else f"controller {cluster.controller}"
    print(f"cluster {cluster.cluster_id}  {controller}")
    print_rows(("broker", "host", "port", "rack"), brokers, as_json=False)
    return 0


async def _brokers(admin: Admin, arguments: argparse.Namespace) -> int:
    cluster = await admin.describe_cluster()
    # A call for each: the answers of the others are not lost if one does not answer.
    import asyncio  # not at the top: --help needs none of it

    rows = await asyncio.gather(*[_broker_row(admin, broker, arguments.timeout_ms) for broker in cluster.brokers])
    status = FAILED if any(row["error"] is not None for row in rows) else 0
    columns = ["broker", "host", "port", "rack", "worker"]
    if arguments.json:
        print_rows([*columns, "workers", "error"], rows, as_json=True)
        return status
    for row in rows:
        if row["error"] is not None:
            row["worker"] = f"unknown ({row['error']})"
        elif row["workers"] is not None:
            row["worker"] = f"{row['worker']} of {row['workers']}"
    print_rows(columns, rows, as_json=False)
    return status


async def _broker_row(admin: Admin, broker: BrokerDescription, timeout_ms: int) -> dict[str, Any]:
    """Return a broker's address, with `worker` and `workers`, None if it is alone, or why they are unknown, `error`."""
    from odradek.client.admin.arguments import ConfigResource
    from odradek.client.errors import ClientError

    row: dict[str, Any] = {"broker": broker.node_id, "host": broker.host, "port": broker.port, "rack": broker.rack}
    row |= {"worker": None, "workers": None, "error": None}
    resource = ConfigResource.broker(broker.node_id)
    try:
        results = await admin.describe_configs([resource], names=[_NUM_WORKERS], timeout_ms=timeout_ms)
        entry = results.value(resource).get(_NUM_WORKERS)  # Apache Kafka does not have it
    except ClientError as error:
        return row | {"error": error.cause}
    workers = 1 if entry is None else int(entry.value or 1)
    return row if workers == 1 else row | {"worker": broker.node_id // _NODE_IDS_APART, "workers": workers}


async def _features(admin: Admin, arguments: argparse.Namespace) -> int:
    features = await admin.describe_features()
    rows = [
        {
            "feature": name,
            "level": features.finalized[name][1] if name in features.finalized else None,
            "min_supported": features.supported[name][0] if name in features.supported else None,
            "max_supported": features.supported[name][1] if name in features.supported else None,
        }
        for name in sorted(features.finalized.keys() | features.supported.keys())
    ]
    print_rows(("feature", "level", "min_supported", "max_supported"), rows, as_json=arguments.json)
    return 0


async def _api_versions(admin: Admin, arguments: argparse.Namespace) -> int:
    results = await admin.api_versions()
    rows = []
    for broker, ranges in results.succeeded.items():
        for one in ranges:
            theirs, ours = one.theirs or (None, None), one.ours or (None, None)
            rows.append(
                {
                    "broker": broker,
                    "key": one.api_key,
                    "api": one.name,
                    "min_version": theirs[0],
                    "max_version": theirs[1],
                    "our_min": ours[0],
                    "our_max": ours[1],
                    "used": one.chosen,
                }
            )
    columns = ("broker", "key", "api", "min_version", "max_version", "our_min", "our_max", "used")
    print_rows(columns, rows, as_json=arguments.json)
    return await status_of(admin, results)


async def _log_dirs(admin: Admin, arguments: argparse.Namespace) -> int:
    from odradek.client.cli.output.property_names import error_text

    results = await admin.describe_log_dirs()
    rows = []
    status = await status_of(admin, results)
    for broker, directories in results.succeeded.items():
        for directory in directories:
            if directory.error is not None:
                status = fail(error_text(directory.error))
            rows += [
                {
                    "broker": broker,
                    "log_dir": directory.path,
                    "topic": partition.topic,
                    "partition": partition.partition,
                    "bytes": replica.size,
                    "offset_lag": replica.offset_lag,
                }
                for partition, replica in sorted(directory.replicas.items())
                if arguments.topic in (None, partition.topic)
            ]
    print_rows(("broker", "log_dir", "topic", "partition", "bytes", "offset_lag"), rows, as_json=arguments.json)
    return status
