"""The flags that jobs share: source, output, Spark.

| flag | source |
|---|---|
| `--bootstrap-server B` | topics of a cluster, by `format("broker")` |
| the same with `--connector kafka` | the same by Spark's own connector, whose jars must be in the session |
| `--log-dir D` | the segment files of a log directory, by `format("klog")`, without a broker |
"""

from __future__ import annotations

import argparse

from odradek.client.cli.arguments.argument_types import assignment


def add_spark_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("Spark")
    group.add_argument(
        "--master",
        metavar="URL",
        help="where Spark runs: local[4], spark://host:7077, yarn, k8s://… (default: this machine, or spark-submit's)",
    )
    group.add_argument(
        "--conf",
        action="append",
        default=[],
        type=assignment,
        metavar="NAME=VALUE",
        help="a setting of Spark, such as spark.executor.memory=4g (repeatable)",
    )


def add_source_arguments(parser: argparse.ArgumentParser, *, needs_topic: bool = True) -> None:
    """Add the flags for the source of records and for topics."""
    group = parser.add_argument_group("source")
    where = group.add_mutually_exclusive_group(required=True)
    where.add_argument("--bootstrap-server", metavar="HOST:PORT[,HOST:PORT]", help="read from the brokers of a cluster")
    where.add_argument("--log-dir", metavar="DIR", help="read the files of a log directory; every worker must see them")
    which = group.add_mutually_exclusive_group(required=needs_topic)
    which.add_argument("--topic", metavar="NAME[,NAME]", help="the topics")
    which.add_argument("--topic-pattern", metavar="REGEX", help="the topics whose names match")
    group.add_argument(
        "--connector",
        choices=("broker", "kafka"),
        default="broker",
        help="the connector to brokers: this project's, or Spark's own (default: %(default)s)",
    )
    add_command_config_argument(group)
    group.add_argument(
        "--option",
        action="append",
        default=[],
        type=assignment,
        metavar="NAME=VALUE",
        help="an option of the source, such as isolation.level=read_committed (repeatable; docs/pipeline.md)",
    )


def add_command_config_argument(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--command-config",
        metavar="PATH",
        help="a .properties file with settings of Kafka's clients, such as a user and a password (docs/client.md)",
    )


def add_output_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("output")
    group.add_argument(
        "--output", required=True, metavar="DIR", help="the directory of the result, on any file system of Spark"
    )
    group.add_argument("--overwrite", action="store_true", help="replace an existing result")


def add_json_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print the summary as one JSON object on standard output")
