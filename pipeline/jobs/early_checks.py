"""Check options, addresses and topics before Spark starts: Spark reports them after half a minute.

| wrong | reported as |
|---|---|
| an option of the source or the sink | OptionError: exit status 2 |
| no broker at the addresses, no such topic, no such log directory | `JobError`: exit status 1 |

The bundled client connects to the brokers, also for jobs that use Spark's connector; but with an `--option` Spark's
connector is not checked, because it has options that this client lacks. A restarting broker gets two seconds.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Final

from odradek.argument_parser import nearest
from odradek.broker.storage.disk.read_only_files import ReadOnlyFiles
from odradek.broker.storage.names import META_PROPERTIES
from odradek.broker.storage.offline.listing import list_partitions
from odradek.client import Admin, ClientError, UnknownTopicError
from odradek.client.cli.failures import texts_of
from odradek.client.cli.output.property_names import error_text
from odradek.pipeline.jobs import JobError, OptionError
from odradek.pipeline.jobs.planned_options import OF_SINK, OF_SOURCE, refuse_flags_of_brokers, refuse_planned
from odradek.pipeline.jobs.source import client_options, source_options, topic_names
from odradek.pipeline.options.broker_options import (
    Cluster,
    batch_read_options,
    stream_read_options,
    write_options,
)
from odradek.pipeline.options.option_values import local_path
from odradek.pipeline.spark.spark_session import check_requirements

_PATIENCE_S: Final = 2  # for a broker that is restarting
_PAUSE_S: Final = 0.2


def check_source(
    arguments: argparse.Namespace, *, is_stream: bool = False, planned: Collection[str] = frozenset()
) -> None:
    """Check the flags of `add_source_arguments`; `planned` are the options that the job sets itself, in lower case.

    Raises UsageError, OptionError, `JobError`, RequirementMissingError, OSError.
    """
    refuse_flags_of_brokers(arguments)
    check_requirements()
    refuse_planned(arguments, OF_SOURCE, planned)
    options = source_options(arguments)
    if arguments.log_dir is not None:
        from odradek.pipeline.klog.options import klog_options

        try:
            klog_options(options | {"path": arguments.log_dir})
        except ValueError as error:
            raise OptionError(str(error)) from error
        check_log_dir(arguments)
        return
    if _has_options_of_java(arguments):
        return
    try:
        read = stream_read_options(options) if is_stream else batch_read_options(options)
    except ValueError as error:
        raise OptionError(str(error)) from error
    asyncio.run(_check_topics(read.cluster, sorted(read.subscription.named_topics)))


def check_log_dir(arguments: argparse.Namespace) -> None:
    """Check that `--log-dir` has the topics of `--topic`. Raises `JobError`, RequirementMissingError, OSError."""
    check_requirements()
    found = {each.key[0] for each in list_partitions(ReadOnlyFiles(), local_path(arguments.log_dir))}
    wanted = [] if arguments.topic is None else topic_names(arguments.topic)
    missing = [name for name in wanted if name not in found]
    if missing:
        hints = dict.fromkeys(hint for name in missing if (hint := nearest(name, found)))
        text = f"{arguments.log_dir} does not contain {', '.join(missing)}"
        raise JobError("; ".join([text, *hints]))


def check_sink(arguments: argparse.Namespace) -> None:
    """Check `--bootstrap-server`, `--topic` and `--option` of a job that writes to a topic. Raises as check_source."""
    check_requirements()
    refuse_planned(arguments, OF_SINK)
    if _has_options_of_java(arguments):
        return
    options = {"kafka.bootstrap.servers": arguments.bootstrap_server, "topic": arguments.topic}
    options |= client_options(arguments)
    try:
        written = write_options(options | dict(arguments.option))
    except ValueError as error:
        raise OptionError(str(error)) from error
    asyncio.run(_check_topics(written.cluster, [written.topic or arguments.topic]))


def check_output(arguments: argparse.Namespace) -> None:
    """Raise `JobError` if `--output` is, contains, or lies in a log directory on this machine."""
    scheme, separator, _ = arguments.output.partition(":/")
    if separator and scheme.lower() != "file":
        return
    output = Path(local_path(arguments.output)).resolve()
    for place in (output, *output.parents):
        if (place / META_PROPERTIES).exists():
            raise JobError(f"--output {arguments.output} is in the log directory {place}: name another directory")
    if arguments.log_dir is not None:
        log_dir = Path(local_path(arguments.log_dir)).resolve()
        if output == log_dir or output in log_dir.parents or log_dir in output.parents:
            raise JobError(
                f"--output {arguments.output} and --log-dir {arguments.log_dir} contain each other: name another output"
            )


def _has_options_of_java(arguments: argparse.Namespace) -> bool:
    """Whether Spark's connector gets options: it has others than ours, and ignores those it lacks."""
    return arguments.connector == "kafka" and bool(arguments.option or arguments.command_config)


async def _check_topics(cluster: Cluster, topics: Iterable[str]) -> None:
    """Raise `JobError` if no broker responds or a topic does not exist."""
    deadline = asyncio.get_running_loop().time() + _PATIENCE_S
    while True:
        try:
            async with Admin(cluster.bootstrap_servers, **cluster.settings) as admin:
                described = await admin.describe_topics(topics)
                if any(isinstance(error, UnknownTopicError) for error in described.failed.values()):
                    raise JobError("; ".join(await texts_of(admin, described.failed.values())))
                described.values_or_raise()
                return
        except ClientError as error:
            if not error.retriable or asyncio.get_running_loop().time() > deadline:
                raise JobError(error_text(error)) from error
            await asyncio.sleep(_PAUSE_S)
