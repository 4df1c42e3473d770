"""The records that the flags of a job select, as a DataFrame with the connector's schema."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from odradek.client.cli.arguments.connection_arguments import read_properties
from odradek.pipeline.jobs import OptionError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from odradek.client.record import TopicPartition

_SUBSCRIPTIONS: Final = ("subscribe", "subscribePattern")


def read_records(spark: SparkSession, arguments: argparse.Namespace, options: Mapping[str, str] = {}) -> DataFrame:
    """Read the source that the flags of `add_source_arguments` select; `options` override those of the command line."""
    settings = source_options(arguments) | dict(options)
    if arguments.log_dir is not None:
        return spark.read.format("klog").options(**settings).load(arguments.log_dir)
    return spark.read.format(arguments.connector).options(**settings).load()


def read_partitions(
    spark: SparkSession, arguments: argparse.Namespace, partitions: Iterable[TopicPartition], options: Mapping[str, str]
) -> DataFrame:
    """Read exactly these partitions of `--log-dir`: topics may be created after a job has planned its offsets."""
    assigned: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        assigned.setdefault(topic, []).append(partition)
    settings = {name: value for name, value in source_options(arguments).items() if name not in _SUBSCRIPTIONS}
    settings |= {"assign": json.dumps(assigned), **options}
    return spark.read.format("klog").options(**settings).load(arguments.log_dir)


def read_new_records(spark: SparkSession, arguments: argparse.Namespace, options: Mapping[str, str] = {}) -> DataFrame:
    """Read from brokers as a stream, which by default starts at the beginning of the topics on its first run."""
    settings = {"startingOffsets": "earliest"} | source_options(arguments) | dict(options)
    return spark.readStream.format(arguments.connector).options(**settings).load()


def source_options(arguments: argparse.Namespace) -> dict[str, str]:
    """Return the flags as options of the connector."""
    options = {"includeHeaders": "true"}
    if arguments.bootstrap_server is not None:
        options["kafka.bootstrap.servers"] = arguments.bootstrap_server
    if arguments.topic is not None:
        options["subscribe"] = ",".join(topic_names(arguments.topic))
    elif arguments.topic_pattern is not None:
        options["subscribePattern"] = arguments.topic_pattern
    return options | client_options(arguments) | dict(arguments.option)


def topic_names(text: str) -> list[str]:
    """Return the names of `--topic`, without the spaces around them, each once."""
    return list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


def client_options(arguments: argparse.Namespace) -> dict[str, str]:
    """Return the settings of `--command-config` as options of the connector. Raises `OptionError` for the file.

    `--bootstrap-server` overrides the addresses of the file, as in Kafka's tools.
    """
    try:
        given = read_properties(arguments.command_config)
        return {f"kafka.{name}": value for name, value in given if name != "bootstrap.servers"}
    except (OSError, ValueError) as error:
        raise OptionError(str(error)) from error
