from __future__ import annotations

import pytest

from odradek.broker.apis import rights_table
from odradek.broker.apis.rights_table import RIGHTS
from odradek.broker.apis.table import ROWS, HandlerTable
from odradek.protocol.access_rules import Operation
from odradek.protocol.api import by_key


def test_every_api_has_a_row() -> None:
    missing = {by_key(key).name for key in ROWS.keys() - RIGHTS.keys()}
    assert not missing, f"the rights that these need belong into broker/apis/rights_table.py: {missing}"


def test_an_api_without_a_row_is_served_to_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    key = 18
    monkeypatch.delitem(rights_table.RIGHTS, key)
    with pytest.raises(KeyError):
        HandlerTable()[key]


@pytest.mark.parametrize("key", sorted(ROWS))
def test_a_row_names_operations_and_not_both_kinds_of_rights(key: int) -> None:
    rights = RIGHTS[key]
    assert not (rights.on_cluster and rights.on_resources)
    operations = [*rights.on_cluster, *(right.operation for right in rights.on_resources)]
    assert all(operation > Operation.ALL for operation in operations)
