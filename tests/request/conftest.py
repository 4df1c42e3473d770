"""The broker and the connection to it that the tests of handlers use."""

from __future__ import annotations

from tests.handlers.conftest import apache_port, broker, only_here, wire

__all__ = ["apache_port", "broker", "only_here", "wire"]
