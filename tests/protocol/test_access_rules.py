from __future__ import annotations

import pytest

from odradek.protocol.access_rules import Operation, PatternType, PermissionType, ResourceType


@pytest.mark.parametrize("kind", [ResourceType, Operation, PatternType, PermissionType])
@pytest.mark.parametrize("code", [0, 99, -1])
def test_a_code_that_does_not_exist_is_unknown(kind: type[Operation], code: int) -> None:
    assert kind(code) is kind.UNKNOWN


def test_the_words_of_a_code_are_those_of_kafka() -> None:
    assert Operation.DESCRIBE_CONFIGS.words == "describe configs"
    assert ResourceType.TRANSACTIONAL_ID.words == "transactional id"
