"""The flags of `acls`: which rules they mean, and which of them exclude each other."""

from __future__ import annotations

import pytest

from odradek.client.cli import UsageError, acls
from odradek.client.cli.arguments.acl_arguments import removal_filters, rules
from odradek.client.cli.arguments.command_parser import CommandParser


def parse(line: str) -> object:
    parser = CommandParser(prog="acls")
    acls.add_arguments(parser)
    return parser.parse_args(line.split())


def texts(line: str) -> list[str]:
    return sorted(str(rule) for rule in rules(parse(f"add {line}")))  # type: ignore[arg-type] # a namespace


def test_each_combination_is_a_rule() -> None:
    line = "--allow-principal User:a --deny-principal User:b --allow-host 1.1.1.1 --operation read"
    assert texts(f"{line} --operation Describe-Configs --topic t --topic u") == sorted(
        text
        for topic in ("t", "u")
        for operation in ("read", "describe configs")
        for text in (
            f"User:a may {operation} topic {topic} from 1.1.1.1",
            f"User:b may not {operation} topic {topic}",
        )
    )


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("--allow-principal User:a --topic t", ["User:a may all topic t"]),
        ("--allow-principal User:a --topic t --resource-pattern-type PREFIXED", ["User:a may all topic prefix t"]),
        (
            "--allow-principal User:a --producer --topic t --idempotent",
            [
                "User:a may create topic t",
                "User:a may describe topic t",
                "User:a may idempotent write cluster kafka-cluster",
                "User:a may write topic t",
            ],
        ),
        (
            "--allow-principal User:a --consumer --topic t --group g",
            ["User:a may describe topic t", "User:a may read group g", "User:a may read topic t"],
        ),
        (
            "--allow-principal User:a --cluster --operation Alter --resource-pattern-type prefixed",
            ["User:a may alter cluster kafka-cluster"],
        ),
        (
            "--allow-principal User:a --user-principal User:b --operation CreateTokens",
            ["User:a may create tokens user User:b"],
        ),
    ],
)
def test_what_flags_mean(line: str, expected: list[str]) -> None:
    assert texts(line) == expected


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("--topic t", "name a principal"),
        ("--allow-principal User:a", "name a resource"),
        (
            "--allow-principal User:a --topic t --operation ClusterAction",
            "there is no ClusterAction of a topic; there are",
        ),
        ("--allow-principal User:a --producer", "name the topics"),
        ("--allow-principal User:a --consumer --topic t", "name the groups"),
        ("--allow-principal User:a --producer --topic t --operation Read", "leave --operation out"),
        ("--deny-principal User:a --producer --topic t", "allow: give --allow-principal"),
        ("--allow-principal User:a --idempotent --topic t", "--idempotent belongs to --producer"),
    ],
)
def test_what_makes_no_sense(line: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        texts(line)


def test_removal_without_a_principal_is_of_all_rules_of_the_resources() -> None:
    [wanted] = removal_filters(parse("remove --topic t"))  # type: ignore[arg-type] # a namespace
    assert (wanted.resource_name, wanted.principal, wanted.operation.name) == ("t", None, "ANY")
    with pytest.raises(UsageError, match="name a principal, too"):
        removal_filters(parse("remove --topic t --operation Read"))  # type: ignore[arg-type] # likewise
    with pytest.raises(UsageError, match="name a resource"):
        removal_filters(parse("remove"))  # type: ignore[arg-type] # likewise


@pytest.mark.parametrize(
    ("line", "action"),
    [
        ("--list", "list"),
        ("--topic t", "list"),
        ("--topic t --add --allow-principal User:a", "add"),
        ("--remove --topic add", "remove"),
    ],
)
def test_the_action_may_be_a_flag_as_in_kafkas_tool(line: str, action: str) -> None:
    assert parse(line).action == action  # type: ignore[attr-defined] # a namespace
