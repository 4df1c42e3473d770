from __future__ import annotations

import socket

import pytest

from odradek.broker.server.reserved_ports import ReservedPorts


def test_a_reserved_port_is_kept_from_others_and_refuses_connections() -> None:
    with socket.create_server(("127.0.0.1", 0)) as used:
        address = used.getsockname()
    ports = ReservedPorts()
    ports.addresses = [address]
    for _ in range(2):
        ports.reserve()
    try:
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind(address)
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(address)
    finally:
        ports.release()
    with socket.socket() as other:
        other.bind(address)


def test_a_port_that_another_has_taken_is_left_to_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        ports = ReservedPorts()
        ports.addresses = [other.getsockname()]
        ports.reserve()
        ports.release()
