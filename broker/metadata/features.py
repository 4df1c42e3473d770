"""The features of a cluster and their finalized levels (KIP-584), which UpdateFeatures changes.

| feature | levels | where none is stored | meaning |
|---|---|---|---|
| `group.version` | 0–1 | 1 | 1: groups of the consumer protocol (KIP-848); they are always served |
| `transaction.version` | 0–2 | 2 | the version of stored transactions: 0, or from 1 on 1, which allows tagged fields; \
2: the second transaction protocol (KIP-890) |
| `metadata.version` | 30 | 30 | 4.3-IV0: the release of Apache Kafka whose APIs are served; there is no metadata log \
that another level would change |

The store has one value with the levels that were changed; every broker reads it from its image. Clients choose their
transaction protocol by the level in ApiVersions. Programs for administrators read the release from `metadata.version`,
and without it do not use IncrementalAlterConfigs, quotas or the descriptions of properties (kafbat's Kafka UI). They
know the level 30, and not all know the later ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

GROUP_VERSION: Final = "group.version"
TRANSACTION_VERSION: Final = "transaction.version"
METADATA_VERSION: Final = "metadata.version"


class Feature(NamedTuple):
    """The lowest and highest level of a feature that this version supports, and the level where none is stored."""

    lowest: int
    highest: int
    default: int


FEATURES: Final[Mapping[str, Feature]] = {
    GROUP_VERSION: Feature(0, 1, 1),
    TRANSACTION_VERSION: Feature(0, 2, 2),
    METADATA_VERSION: Feature(30, 30, 30),
}


def level_of(name: str, stored: Mapping[str, int]) -> int:
    """Return the level of a feature: the stored one, as near as this version supports, or the default."""
    feature = FEATURES[name]
    return max(feature.lowest, min(stored.get(name, feature.default), feature.highest))
