"""The broker and its connection, shared with the tests of handlers."""

from __future__ import annotations

from tests.handlers.conftest import apache_port, broker, only_here, wire

__all__ = ["apache_port", "broker", "only_here", "wire"]
