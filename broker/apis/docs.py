"""The generator of `docs/apis.md`: served APIs, their versions and rights, and why the others are not served.

`python -m broker.apis` writes the page; a test fails if the page and the tables differ.
"""

from __future__ import annotations

from collections.abc import Iterator

from odradek.broker.apis.not_served import NOT_SERVED
from odradek.broker.apis.rights_table import RIGHTS, Right, Rights
from odradek.broker.apis.table import ROWS
from odradek.protocol.api import NAMES, by_key, by_name

PAGE = "docs/apis.md"

_UNSTABLE = {"InitProducerId": 6}
"""The first versions that Apache Kafka 4.3.1 marks as unstable, and serves only if the user enables such versions."""

_HEAD = """\
# APIs

<!-- Generated from the tables in broker/apis by `make docs`; change those, not this. -->

The part of the Kafka protocol that Odradek serves. The module of an API's name in `broker/handlers` describes it, and
the module in `protocol/messages` its messages.

## Served

| key | API | versions | versions of Apache Kafka 4.3.1 |
|---|---|---|---|
"""

_RIGHTS = """
There are no delegation tokens: their four APIs are answered as by a Kafka without a secret key for them, with
DELEGATION_TOKEN_AUTH_DISABLED or DELEGATION_TOKEN_REQUEST_NOT_ALLOWED.

## Rights

What a client needs if the broker has an authorizer. Alter, Delete, Read and Write on a resource include Describe, and
AlterConfigs includes DescribeConfigs. In a request with several resources each succeeds or fails by its own right.

| API | rights |
|---|---|
"""

_NOT_SERVED = """
## Not served

These are not in the answer to ApiVersions. A connection that requests one nevertheless is closed, as by Kafka.

| key | API | versions of Apache Kafka 4.3.1 | reason |
|---|---|---|---|
"""


def apis_page() -> str:
    return f"{_HEAD}{_lines(_served())}{_RIGHTS}{_lines(_rights())}{_NOT_SERVED}{_lines(_not_served())}"


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


def _rights() -> Iterator[str]:
    for key in sorted(ROWS):
        yield f"| {by_key(key).name} | {_all_of(RIGHTS[key]) or 'none'} |"


def _all_of(rights: Rights) -> str:
    on_cluster = " or ".join(_words(operation.name) for operation in rights.on_cluster)
    if on_cluster:
        return f"{on_cluster} on the cluster"
    return "; ".join(_one(right) for right in rights.on_resources)


def _one(right: Right) -> str:
    resource = right.resource_type.name.lower().replace("_", " ")
    return f"{_words(right.operation.name)} on the {resource}{', ' if right.when else ''}{right.when}"


def _words(operation: str) -> str:
    """Return Kafka's spelling of an operation: `DescribeConfigs`."""
    return "".join(word.capitalize() for word in operation.split("_"))


def _not_served() -> Iterator[str]:
    for key, name in NAMES.items():
        if key not in ROWS:
            yield f"| {key} | {name} | {_range(kafka_versions(name))} | {NOT_SERVED[name]} |"


def _range(versions: tuple[int, int]) -> str:
    first, last = versions
    return str(first) if first == last else f"{first}–{last}"
