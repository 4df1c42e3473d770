"""The settings in messages: named as the commands accept them, in every command and in warnings."""

from __future__ import annotations

import argparse
import logging
import re

import pytest

from odradek.client import Admin, Consumer, Producer, cli
from odradek.client.cli.arguments.connection_arguments import add_connection_arguments, settings_of_each
from odradek.client.cli.output.client_log import printed_warnings
from odradek.client.cli.output.property_names import error_text, with_property_names
from odradek.client.errors import ConfigurationError, RecordTooLargeError
from odradek.client.setting_names import property_types
from odradek.protocol.errors import ErrorCode

CLIENTS = (Admin, Consumer, Producer)


@pytest.mark.parametrize("setting", sorted({name for client in CLIENTS for name in property_types(client)}))
def test_the_name_in_a_message_is_one_that_commands_accept(setting: str) -> None:
    named = with_property_names(f"Lower {setting}, or {setting}.")
    assert "_" not in named
    parser = argparse.ArgumentParser()
    add_connection_arguments(parser)
    [_, name, _, again] = named.split()
    assert again == f"{name.removesuffix(',')}."
    arguments = parser.parse_args(["--command-property", f"{name.removesuffix(',')}=1"])
    assert any(setting in settings for settings in settings_of_each(arguments, *CLIENTS))


@pytest.mark.parametrize(
    "text", ["my_linger_ms", "linger_ms_more", "/var/linger_ms", "linger_ms-0", "linger_ms.bak", "a_b"]
)
def test_other_words_stay_as_they_are(text: str) -> None:
    assert with_property_names(text) == text


def test_the_place_of_an_error_stays_as_it_is() -> None:
    error = RecordTooLargeError(ErrorCode.MESSAGE_TOO_LARGE, "send records", topic="client_id", cure="Lower batch_size")
    assert error_text(error) == "send records on client_id: MESSAGE_TOO_LARGE. Lower batch.size"
    assert error_text(ConfigurationError("find the cluster", "there is none", "Set bootstrap_servers")).endswith(
        "Set --bootstrap-server"
    )
    assert error_text(OSError("client_id")) == "client_id"


def test_warnings_name_properties(capsys: pytest.CaptureFixture[str]) -> None:
    with printed_warnings():
        logging.getLogger("odradek.client.group").warning("raise max_poll_interval_ms (%d ms)", 7)
    assert capsys.readouterr().err == "warning: raise max.poll.interval.ms (7 ms)\n"


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("topics list --command-property security.protocol=TLS", "security.protocol is 'TLS'"),
        ("topics list --command-property sasl.mechanism=PLAIN", "security.protocol"),
        ("consume --topic t --command-property fetch.max.wait.ms=99999999", "make it less than request.timeout.ms"),
        (
            "produce --topic t --command-property max.in.flight=9 --command-property enable.idempotence=true",
            "max.in.flight.requests.per.connection is 9",
        ),
        ("doctor --command-property security.protocol=TLS", "security.protocol is 'TLS'"),
        ("topics list --command-property linger.mss=5", "there is no property linger.mss"),
    ],
)
def test_errors_of_commands_name_properties(line: str, complaint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run([*line.split(), "--bootstrap-server", "127.0.0.1:1"]) == 1
    err = capsys.readouterr().err
    assert complaint in err
    assert re.search("[a-z]_[a-z]", err) is None
