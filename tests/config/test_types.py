from __future__ import annotations

from typing import Any

import pytest

from odradek.broker.config.bounds import RangeOr, at_least, between, one_of
from odradek.broker.config.endpoints import ENDPOINTS, Endpoint, parse_endpoint
from odradek.broker.config.types import (
    BOOLEAN,
    DOUBLE,
    INT,
    LIST,
    LONG,
    SHORT,
    STRING,
    InvalidValueError,
    Type,
    invalid_value,
)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (BOOLEAN, " TRUE ", True),
        (BOOLEAN, "false", False),
        (INT, " -5 ", -5),
        (INT, "+7", 7),
        (INT, "2147483647", 2**31 - 1),
        (LONG, "-9223372036854775808", -(2**63)),
        (SHORT, "32767", 2**15 - 1),
        (DOUBLE, "1e-3", 0.001),
        (DOUBLE, ".5", 0.5),
        (LIST, "a , b,c", ["a", "b", "c"]),
        (LIST, "", []),
        (STRING, " x ", "x"),
        (
            ENDPOINTS,
            "A://h:1, b://[::1]:2,C://:0",
            [Endpoint("A", "h", 1), Endpoint("B", "::1", 2), Endpoint("C", "", 0)],
        ),
    ],
)
def test_a_text_is_parsed(kind: Type[Any], text: str, value: object) -> None:
    assert kind.parse(text) == value


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (BOOLEAN, "yes"),
        (BOOLEAN, "1"),
        (INT, "2147483648"),
        (INT, "1_000"),
        (INT, "١"),
        (INT, "1e6"),
        (INT, ""),
        (LONG, "9223372036854775808"),
        (SHORT, "-32769"),
        (DOUBLE, "1,5"),
        (DOUBLE, "nan"),
        (ENDPOINTS, "localhost:9092"),
        (ENDPOINTS, "A://h:70000"),
        (ENDPOINTS, "A://h:-1"),
        (ENDPOINTS, "A://a:b:1"),
        (ENDPOINTS, "A://h"),
    ],
)
def test_an_invalid_text_is_refused(kind: Type[Any], text: str) -> None:
    with pytest.raises(InvalidValueError):
        kind.parse(text)


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        (BOOLEAN, False, "false"),
        (LIST, ["a", "b"], "a,b"),
        (LIST, [], ""),
        (DOUBLE, 1.0, "1.0"),
        (DOUBLE, 1e7, "1.0E7"),
        (DOUBLE, 2.5e-7, "2.5E-7"),
        (DOUBLE, 1.7976931348623157e308, "1.7976931348623157E308"),
        (INT, None, None),
    ],
)
def test_a_value_is_converted_to_text(kind: Type[Any], value: object, text: str | None) -> None:
    assert kind.text(value) == text


@pytest.mark.parametrize(
    ("bound", "inside", "outside", "notation"),
    [
        (at_least(0), [0, 5], [-1], "[0,...]"),
        (between(0, 1), [0, 0.5, 1], [-0.1, 1.1], "[0,...,1]"),
        (one_of("a", "b"), ["a", ["a", "b"], []], ["c", ["a", "c"]], "[a, b]"),
        (RangeOr(1, 9, -1), [-1, 1, 9], [0, 10, -2], "[1,...,9] or -1"),
    ],
)
def test_a_bound_checks_values_and_is_written_as_in_kafka(
    bound: Any, inside: list[Any], outside: list[Any], notation: str
) -> None:
    for value in inside:
        bound(value)
    for value in outside:
        with pytest.raises(InvalidValueError):
            bound(value)
    assert str(bound) == notation


@pytest.mark.parametrize(
    ("kind", "name", "text", "problem"),
    [
        (INT, "segment.bytes", "1MB", "Not a number of type INT; write a number of bytes, such as 1048576"),
        (LONG, "retention.ms", "7d", "Not a number of type LONG; write a number of milliseconds, such as 3600000"),
        (INT, "partitions", "x", "Not a number of type INT"),
        (BOOLEAN, "preallocate", "y", "Expected value to be either true or false"),
    ],
)
def test_a_client_is_told_kafkas_words_and_the_unit(kind: Type[Any], name: str, text: str, problem: str) -> None:
    with pytest.raises(InvalidValueError) as error:
        kind.parse(text)

    assert invalid_value(name, text, error.value) == f"Invalid value {text} for configuration {name}: {problem}"


def test_a_client_is_told_the_unit_of_a_number_that_is_out_of_bounds() -> None:
    with pytest.raises(InvalidValueError) as error:
        at_least(14)(5)
    problem = "Value must be at least 14; write a number of bytes, such as 1048576"
    assert invalid_value("segment.bytes", "5", error.value).endswith(f"segment.bytes: {problem}")
    assert invalid_value("partitions", "5", error.value).endswith("partitions: Value must be at least 14")


def test_a_secret_is_not_told_and_one_item_of_a_list_is() -> None:
    assert invalid_value("a", "s", InvalidValueError("no"), sensitive=True) == (
        "Invalid value [hidden] for configuration a: no"
    )
    with pytest.raises(InvalidValueError) as error:
        one_of("a", "b")(["a", "c"])
    assert invalid_value("list", "a,c", error.value) == (
        "Invalid value c for configuration list: String must be one of: a, b"
    )


def test_an_endpoint_is_converted_from_text_and_back() -> None:
    for text in ("PLAINTEXT://host:9092", "PLAINTEXT://[::1]:9092", "PLAINTEXT://:0"):
        assert str(parse_endpoint(text)) == text
