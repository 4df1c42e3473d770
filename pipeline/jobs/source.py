"""The records that a job was told to read, as a DataFrame of the connector's schema."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read_records(spark: SparkSession, arguments: argparse.Namespace, options: Mapping[str, str] = {}) -> DataFrame:
    """What the flags of `add_source_arguments` name, once; `options` go before those of the command line."""
    settings = source_options(arguments) | dict(options)
    if arguments.log_dir is not None:
        return spark.read.format("klog").options(**settings).load(arguments.log_dir)
    return spark.read.format(arguments.connector).options(**settings).load()


def read_new_records(spark: SparkSession, arguments: argparse.Namespace) -> DataFrame:
    """The same as a stream, of brokers only; what it starts with on its first run is the beginning of the topics."""
    settings = {"startingOffsets": "earliest"} | source_options(arguments)
    return spark.readStream.format(arguments.connector).options(**settings).load()


def source_options(arguments: argparse.Namespace) -> dict[str, str]:
    """The flags in the words of the connector."""
    options = {"includeHeaders": "true"}
    if arguments.bootstrap_server is not None:
        options["kafka.bootstrap.servers"] = arguments.bootstrap_server
    if arguments.topic is not None:
        options["subscribe"] = arguments.topic
    elif arguments.topic_pattern is not None:
        options["subscribePattern"] = arguments.topic_pattern
    return options | dict(arguments.option)
