"""The types of groups that this broker knows, and how a group of each is made.

Their modules are imported by the first group: a broker without groups starts without the state machines, the assignors
and RE2, which would take a tenth of its start-up time and 4 MB.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

from odradek.broker.config import BrokerConfig
from odradek.broker.coordinator.group_type import CLASSIC, CONSUMER, Group
from odradek.broker.metadata.image import MetadataImage

if TYPE_CHECKING:
    from odradek.broker.coordinator.group_shard import GroupFactories
    from odradek.broker.coordinator.migration import Migration


def group_factories(config: BrokerConfig, image: Callable[[], MetadataImage]) -> GroupFactories:
    """What makes a group of each type. `image` gives the metadata of the moment."""

    @cache
    def types() -> Migration:
        from odradek.broker.coordinator.classic_group.rebalance import ClassicSettings
        from odradek.broker.coordinator.consumer_group.settings import CurrentSettings
        from odradek.broker.coordinator.migration import Migration

        classic = ClassicSettings(config.group_initial_rebalance_delay_ms, config.group_max_size)
        return Migration(CurrentSettings(config, image), classic, image)

    def classic_group(group_id: str, now_ms: int) -> Group:
        return types().classic_group(group_id, now_ms)

    def consumer_group(group_id: str, now_ms: int) -> Group:
        return types().consumer_group(group_id, now_ms)

    return {CLASSIC: classic_group, CONSUMER: consumer_group}
