"""`docs/apis.md`, made from the tables: what is served, in which versions, and why the rest is not.

`python -m broker.apis` writes it, and a test fails when it is not what the tables say.
"""

from __future__ import annotations

from collections.abc import Iterator

from odradek.broker.apis.not_served import NOT_SERVED
from odradek.broker.apis.table import ROWS
from odradek.protocol.api import NAMES, by_key, by_name

PAGE = "docs/apis.md"

_UNSTABLE = {"InitProducerId": 6}
"""Versions from which on Apache Kafka 4.3.1 knows an API, but offers it only to those who ask for what is unstable."""

_HEAD = """\
# APIs

<!-- Made from the tables in broker/apis by `make docs`; change those, not this. -->

What Odradek serves of the Kafka protocol. Each API is described in the module of its name in `broker/handlers`, its
messages in `protocol/messages`.

## Served

| key | API | versions | versions of Apache Kafka 4.3.1 |
|---|---|---|---|
"""

_NOT_SERVED = """
## Not served

These are not in the answer to ApiVersions, so clients know; a connection that asks for one all the same is closed, as
by Kafka.

| key | API | versions of Apache Kafka 4.3.1 | why not |
|---|---|---|---|
"""


def apis_page() -> str:
    return f"{_HEAD}{_lines(_served())}{_NOT_SERVED}{_lines(_not_served())}"


def kafka_versions(name: str) -> tuple[int, int]:
    """The versions of an API, both inclusive, that Apache Kafka 4.3.1 offers."""
    api = by_name(name)
    return api.min_version, min(api.max_version, _UNSTABLE.get(name, api.max_version + 1) - 1)


def _lines(lines: Iterator[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _served() -> Iterator[str]:
    for key, row in sorted(ROWS.items()):
        name = by_key(key).name
        served, kafkas = _range((row.min_version, row.max_version)), _range(kafka_versions(name))
        yield f"| {key} | {name} | {served} | {kafkas} |"


def _not_served() -> Iterator[str]:
    for key, name in NAMES.items():
        if key not in ROWS:
            yield f"| {key} | {name} | {_range(kafka_versions(name))} | {NOT_SERVED[name]} |"


def _range(versions: tuple[int, int]) -> str:
    first, last = versions
    return str(first) if first == last else f"{first}–{last}"
