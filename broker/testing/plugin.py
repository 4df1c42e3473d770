"""pytest fixtures: a broker for each test, or one for the session, for any client.

```python
pytest_plugins = ["odradek.broker.testing.plugin"]  # in the conftest.py at the top

def test_orders(kafka_broker):
    producer = Producer({"bootstrap.servers": kafka_broker.bootstrap})
```

A broker starts in some 50 ms and leaves nothing behind. Override `kafka_properties` for other properties than the
defaults, with Kafka's names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from odradek.broker.testing.threaded import ThreadedBroker


@pytest.fixture(scope="session")
def kafka_properties() -> Mapping[str, str]:
    """The properties of the brokers of this plug-in; override it."""
    return {}


@pytest.fixture
def kafka_broker(kafka_properties: Mapping[str, str]) -> Iterator[ThreadedBroker]:
    """A broker of the test's own."""
    with ThreadedBroker(kafka_properties) as broker:
        yield broker


@pytest.fixture(scope="session")
def kafka_session_broker(kafka_properties: Mapping[str, str]) -> Iterator[ThreadedBroker]:
    """One broker for the whole session; tests keep apart by the names of their topics."""
    with ThreadedBroker(kafka_properties) as broker:
        yield broker
