"""pytest fixtures: a broker for each test, or one for the session, for any client.

```python
pytest_plugins = ["odradek.broker.testing.plugin"]  # in the top-level conftest.py

def test_orders(kafka_broker):
    producer = Producer({"bootstrap.servers": kafka_broker.bootstrap})
```

A broker starts in about 50 ms; its directory is removed at the end. Override `kafka_properties` to set properties, by
their names in Kafka.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from odradek.broker.testing.threaded import ThreadedBroker


@pytest.fixture(scope="session")
def kafka_properties() -> Mapping[str, str]:
    """The properties of the brokers that these fixtures start; override it."""
    return {}


@pytest.fixture
def kafka_broker(kafka_properties: Mapping[str, str]) -> Iterator[ThreadedBroker]:
    """One broker for each test."""
    with ThreadedBroker(kafka_properties) as broker:
        yield broker


@pytest.fixture(scope="session")
def kafka_session_broker(kafka_properties: Mapping[str, str]) -> Iterator[ThreadedBroker]:
    """One broker for the whole session; tests use different names of topics."""
    with ThreadedBroker(kafka_properties) as broker:
        yield broker
