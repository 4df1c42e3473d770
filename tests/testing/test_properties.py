from __future__ import annotations

from typing import Any

import pytest

from odradek.testing.properties import as_text


def test_numbers_and_booleans_become_text() -> None:
    given = {"a": "text", "b": 3, "c": True, "d": False, "e": 0.5}
    assert as_text(given) == {"a": "text", "b": "3", "c": "true", "d": "false", "e": "0.5"}


@pytest.mark.parametrize("value", [None, ["a"], b"bytes"])
def test_another_type_is_refused_by_the_name_of_the_property(value: Any) -> None:
    with pytest.raises(
        TypeError, match=r"the property num\.partitions is .*: give it a str, an int, a float or a bool"
    ):
        as_text({"num.partitions": value})
