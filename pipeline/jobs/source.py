"""The records that the flags of a job select, as a DataFrame with the connector's schema."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING

from odradek.client.cli.arguments.connection_arguments import read_properties
from odradek.pipeline.jobs import OptionError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read_records(spark: SparkSession, arguments: argparse.Namespace, options: Mapping[str, str] = {}) -> DataFrame:
    """Read the source that the flags of `add_source_arguments` select; `options` override those of the command line."""
    settings = source_options(arguments) | dict(options)
    if arguments.log_dir is not None:
        return spark.read.format("klog").options(**settings).load(arguments.log_dir)
    return spark.read.format(arguments.connector).options(**settings).load()


def read_new_records(spark: SparkSession, arguments: argparse.Namespace) -> DataFrame:
    """Read the same from brokers as a stream, which starts at the beginning of the topics on its first run."""
    settings = {"startingOffsets": "earliest"} | source_options(arguments)
    return spark.readStream.format(arguments.connector).options(**settings).load()


def source_options(arguments: argparse.Namespace) -> dict[str, str]:
    """Return the flags as options of the connector."""
    options = {"includeHeaders": "true"}
    if arguments.bootstrap_server is not None:
        options["kafka.bootstrap.servers"] = arguments.bootstrap_server
    if arguments.topic is not None:
        options["subscribe"] = arguments.topic
    elif arguments.topic_pattern is not None:
        options["subscribePattern"] = arguments.topic_pattern
    return options | client_options(arguments) | dict(arguments.option)


def client_options(arguments: argparse.Namespace) -> dict[str, str]:
    """Return the settings of `--command-config` as options of the connector. Raises `OptionError` for the file."""
    try:
        return {f"kafka.{name}": value for name, value in read_properties(arguments.command_config)}
    except (OSError, ValueError) as error:
        raise OptionError(str(error)) from error
