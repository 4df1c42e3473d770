"""The configuration of an embedded broker, which a program starts in its own process, in a test for example."""

from __future__ import annotations

from collections.abc import Mapping

from odradek.broker.config import BrokerConfig, ConfigError
from odradek.broker.startup.temporary_log_dir import TemporaryLogDir

Properties = Mapping[str, str | int]
"""Properties by their names in Kafka. The value True is `true`, False is `false`."""

READ_ONLY = {"auto.create.topics.enable": "false"}
"""Properties of a read-only broker, which override its configuration."""

_FAR_FUTURE_MS = 1 << 62  # 146 million years; 2^63 - 1 would also allow -2^63, which is "no time" in NumPy and pandas
_DEFAULTS = {
    "listeners": "PLAINTEXT://127.0.0.1:0",
    "group.initial.rebalance.delay.ms": "0",
    # A test may set or freeze the clock of its clients, and the broker's stays right.
    "log.message.timestamp.after.max.ms": f"{_FAR_FUTURE_MS}",
}
_DEFAULTS_OF_TEMPORARY = {
    # With Kafka's 50, each test of a group would make and remove as many logs: more work than the rest of the test.
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
}


def embedded_config(properties: Properties) -> tuple[BrokerConfig, TemporaryLogDir | None]:
    """Return the configuration, and the temporary log directory if the properties name none.

    Raises `ConfigError`, also for values of other types.
    """
    overrides = {**_DEFAULTS, **property_texts(properties)}
    if {"log.dirs", "log.dir"} & overrides.keys():
        return BrokerConfig.load(None, overrides), None
    directory = TemporaryLogDir()
    try:
        return BrokerConfig.load(
            None, {**_DEFAULTS_OF_TEMPORARY, **overrides, "log.dirs": str(directory.path)}
        ), directory
    except BaseException:
        directory.remove()
        raise


def property_texts(properties: Mapping[str, object]) -> dict[str, str]:
    """Return the properties with values as in a file. Raises `ConfigError` for what is no text, integer or boolean."""
    problems = [
        f"{name} = {value!r}: a value is a str, an int or a bool, and this is of type {type(value).__name__}"
        for name, value in properties.items()
        if not isinstance(value, str | int)
    ]
    if problems:
        raise ConfigError(problems)
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in properties.items()}
