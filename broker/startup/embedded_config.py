"""The configuration of an embedded broker, which a program starts in its own process, in a test for example."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

from odradek.broker.config import BrokerConfig

READ_ONLY = {"auto.create.topics.enable": "false"}
"""Properties of a read-only broker, which override its configuration."""

_DEFAULTS = {"listeners": "PLAINTEXT://127.0.0.1:0", "group.initial.rebalance.delay.ms": "0"}


def embedded_config(properties: Mapping[str, str]) -> tuple[BrokerConfig, Path | None]:
    """Return the configuration, and the temporary log directory if the properties name none.

    Raises as `BrokerConfig.load` does.
    """
    directory = None
    overrides = {**_DEFAULTS, **properties}
    if not {"log.dirs", "log.dir"} & overrides.keys():
        directory = Path(tempfile.mkdtemp(prefix="odradek-"))
        overrides["log.dirs"] = str(directory)
    return BrokerConfig.load(None, overrides), directory
