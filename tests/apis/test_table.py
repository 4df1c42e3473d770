from __future__ import annotations

from odradek.broker.apis.table import ROWS, HandlerTable
from odradek.protocol.api import by_key, by_name


def test_every_row_has_a_handler_and_versions_that_exist() -> None:
    table = HandlerTable()
    assert len(table) == len(ROWS)
    for key in table:
        handler, api = table[key], by_key(key)
        assert handler.api == api
        assert api.min_version <= handler.row.min_version <= handler.row.max_version <= api.max_version
        assert callable(handler.handle)
        assert callable(handler.error_response)


def test_produce_alone_is_advertised_from_an_earlier_version_than_is_served() -> None:
    earlier = {
        key: versions
        for key, versions in HandlerTable().advertised_versions.items()
        if versions != (ROWS[key].min_version, ROWS[key].max_version)
    }
    assert earlier == {by_name("produce").key: (0, 13)}
