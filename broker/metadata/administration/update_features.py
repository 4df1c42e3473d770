"""Changing the finalized levels of features; `features` lists them.

| new level | allowed with |
|---|---|
| the present one | any type of change |
| a higher one | UPGRADE |
| a lower one | SAFE_DOWNGRADE, UNSAFE_DOWNGRADE |

The broker keeps no data of a feature that a lower level could not read, so both downgrades are the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from odradek.broker.metadata.administration.topic_writes import Pause, no_pause
from odradek.broker.metadata.features import FEATURES, GROUP_VERSION
from odradek.broker.metadata.metadata import Metadata
from odradek.broker.metadata.store.store import Put, still
from odradek.broker.metadata.values import encode_levels
from odradek.protocol.errors import ErrorCode, KafkaError


class UpgradeType(IntEnum):
    """The type of a change, with its number in UpdateFeatures."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


_TYPES = frozenset(UpgradeType)
_NOT_A_DOWNGRADE = (
    "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe downgrade."
)


class FeatureUpdate(NamedTuple):
    """A new level; `upgrade_type` is the number of an `UpgradeType`, or an invalid one."""

    name: str
    level: int
    upgrade_type: int


async def update_features(
    metadata: Metadata,
    updates: Sequence[FeatureUpdate],
    *,
    validate_only: bool = False,
    pause: Pause = no_pause,
) -> None:
    """Change all of these levels, or none. The last one of several updates of a feature counts, as in Kafka.

    `pause` lets others run between two updates.

    Raises `KafkaError` INVALID_UPDATE_VERSION, KAFKA_STORAGE_ERROR.
    """
    key = metadata.keys.features
    while True:
        image = metadata.image
        present = image.features
        for update in updates:
            await pause()
            _check(update, present)
        changed = {each.name: each.level for each in updates if each.level != present[each.name]}
        if validate_only or not changed:
            return
        value = encode_levels({**image.feature_levels, **{each.name: each.level for each in updates}})
        if (await metadata.commit((still(key, image.features_revision),), (Put(key, value),))).ok:
            return


def _check(update: FeatureUpdate, present: Mapping[str, int]) -> None:
    name, level, kind = update
    feature = FEATURES.get(name)
    if kind not in _TYPES:
        raise _refused(update, "The controller does not support the given upgrade type.")
    if feature is None:
        raise _refused(update, f"This broker does not support this feature; there are {', '.join(FEATURES)}.")
    if not feature.lowest <= level <= feature.highest:
        raise _refused(update, f"This broker only supports versions {feature.lowest}-{feature.highest}")
    if level < present[name] and kind == UpgradeType.UPGRADE:
        raise _refused(
            update,
            _NOT_A_DOWNGRADE,
        )
    if level > present[name] and kind != UpgradeType.UPGRADE:
        raise _refused(update, "The version is lower now; send the change as an upgrade.")
    if name == GROUP_VERSION and level != present[name]:
        # Differs from Kafka, where the consumer protocol can be switched off.
        raise _refused(update, "groups of the consumer protocol are always served")


def _refused(update: FeatureUpdate, reason: str) -> KafkaError:
    detail = (
        "The update failed for all features since the following feature had an error:"
        f" Invalid update version {update.level} for feature {update.name}. {reason}"
    )
    return KafkaError(ErrorCode.INVALID_UPDATE_VERSION, detail)
