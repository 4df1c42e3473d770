"""The options of `format("klog")`: those of the connector that apply to files, and two of Spark's file sources.

| option | default | |
|---|---|---|
| path | | a log directory, the argument of `load` |
| subscribe, subscribePattern, assign | all topics but Kafka's internal ones | as the connector's |
| startingOffsets … endingTimestamp | earliest, latest | as the connector's (`options.bounds`) |
| isolation.level | read_uncommitted | read_committed stops at the last stable offset, and leaves out aborted records |
| includeHeaders | false | |
| failOnDataLoss | true | false: read the remaining records, where segments or offsets are missing |
| mode | FAILFAST | FAILFAST, PERMISSIVE, DROPMALFORMED (`records.damage`) |
| minPartitions | one a processor, of 32 MiB or more | approximate minimum of tasks; divided at index entries |
| maxPartitionBytes | 256 MiB | approximate bytes of a task |

The processors are those of the driver. Setting one of the last two options disables the default of the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple, cast

from odradek.client.config import IsolationLevel
from odradek.pipeline.options.bounds import EARLIEST, LATEST, Bound, read_bound
from odradek.pipeline.options.broker_options import Strategy, Subscription, subscription
from odradek.pipeline.options.option_values import boolean, choice, isolation_level, local_path, number
from odradek.pipeline.records.damage import Mode

_SUBSCRIPTIONS: Final = ("subscribe", "subscribepattern", "assign")
_KNOWN: Final = {
    "path", *_SUBSCRIPTIONS, "startingoffsets", "endingoffsets", "startingoffsetsbytimestamp",
    "endingoffsetsbytimestamp", "startingtimestamp", "endingtimestamp", "startingoffsetsbytimestampstrategy",
    "isolation.level", "kafka.isolation.level", "includeheaders", "failondataloss", "mode", "minpartitions",
    "maxpartitionbytes",
}  # fmt: skip


class KlogOptions(NamedTuple):
    """The options of the source; `subscription` is None for all topics."""

    path: str
    subscription: Subscription | None
    start: Bound
    end: Bound
    start_fallback: Strategy
    fail_on_data_loss: bool
    include_headers: bool
    isolation_level: IsolationLevel
    mode: Mode
    min_partitions: int | None
    max_partition_bytes: int | None


def klog_options(given: Mapping[str, str]) -> KlogOptions:
    """Parse the options. Raises ValueError that names the option."""
    options = {name.lower(): value for name, value in given.items()}
    for name in options:
        if name not in _KNOWN:
            raise ValueError(f'option {name!r} is not supported by format("klog")')
    if not options.get("path", "").strip():
        raise ValueError('format("klog") needs a log directory: pass it to load(path), or to a table as its path')
    return KlogOptions(
        path=local_path(options["path"].strip()),
        subscription=subscription(options) if any(name in options for name in _SUBSCRIPTIONS) else None,
        start=read_bound(options, "starting", EARLIEST),
        end=read_bound(options, "ending", LATEST),
        start_fallback=cast(
            "Strategy", choice(options, "startingoffsetsbytimestampstrategy", ("error", "latest"), "error")
        ),
        fail_on_data_loss=boolean(options, "failondataloss", default=True),
        include_headers=boolean(options, "includeheaders", default=False),
        isolation_level=isolation_level(options),
        mode=_mode(options.get("mode", Mode.FAILFAST)),
        min_partitions=number(options, "minpartitions", 1),
        max_partition_bytes=number(options, "maxpartitionbytes", 1),
    )


def _mode(text: str) -> Mode:
    try:
        return Mode(text.upper())
    except ValueError:
        raise ValueError(f"mode is {text!r}: choose one of {', '.join(Mode)}") from None
