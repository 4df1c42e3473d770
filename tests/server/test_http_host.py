from __future__ import annotations

from odradek.broker.server.http_host import is_local_host


def test_the_configured_name_is_served() -> None:
    assert is_local_host("Broker.example:9404", "broker.example")
    assert not is_local_host("broker.example.com:9404", "broker.example")
