"""The types of groups that this broker has, and the functions that make a group of each.

The first group imports their modules, so that a broker without groups starts without the state machines, the assignors
and RE2, which take a tenth of its start-up time and 4 MB.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

from odradek.broker.coordinator.group_type import CLASSIC, CONSUMER, Group
from odradek.broker.metadata.current_config import CurrentConfig
from odradek.broker.metadata.image import MetadataImage

if TYPE_CHECKING:
    from odradek.broker.coordinator.group_shard import GroupFactories
    from odradek.broker.coordinator.migration import Migration


def group_factories(config: CurrentConfig, image: Callable[[], MetadataImage]) -> GroupFactories:
    """Return the function that makes a group, by type. `image` returns the current metadata."""

    @cache
    def types() -> Migration:
        from odradek.broker.coordinator.classic_group.rebalance import ClassicSettings
        from odradek.broker.coordinator.consumer_group.settings import CurrentSettings
        from odradek.broker.coordinator.migration import Migration

        classic = ClassicSettings(config.broker.group_initial_rebalance_delay_ms, config.broker.group_max_size)
        return Migration(CurrentSettings(config), classic, image)

    def classic_group(group_id: str, now_ms: int) -> Group:
        return types().classic_group(group_id, now_ms)

    def consumer_group(group_id: str, now_ms: int) -> Group:
        return types().consumer_group(group_id, now_ms)

    return {CLASSIC: classic_group, CONSUMER: consumer_group}
