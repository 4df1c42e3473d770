"""Separate topics for each test, on any server."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

_numbers = itertools.count(1)


def name_for(node: pytest.Item) -> str:
    """A unique name that contains the name of its test."""
    return f"{re.sub('[^a-z0-9]+', '-', node.name.removeprefix('test_').lower())[:60]}{next(_numbers)}"


def maker(admin: AdminClient, prefix: str) -> Callable[..., str]:
    """A function that creates topics whose names begin with `prefix`, and returns the name of each."""

    def make(partitions: int = 1, **configs: Any) -> str:
        """Create a topic; `configs` are its properties with underscores for dots."""
        properties = {name.replace("_", "."): str(value) for name, value in configs.items()}
        name = f"{prefix}-{next(_numbers)}"
        admin.create_topics([NewTopic(name, partitions, 1, config=properties)])[name].result(30)
        return name

    return make
