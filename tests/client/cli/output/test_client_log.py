"""What the client logs, as a command prints it."""

from __future__ import annotations

import logging

import pytest

from odradek.client.cli.output.client_log import printed_warnings


def test_warnings_are_lines_of_standard_error_but_for_refused_records_which_the_command_tells(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with printed_warnings():
        logging.getLogger("odradek.client.network.cluster").warning("broker %d is away", 7)
        logging.getLogger("odradek.client.network.cluster").info("nothing of interest")
        logging.getLogger("odradek.client.producer.delivery").warning("2 records are not acknowledged")
    assert capsys.readouterr() == ("", "warning: broker 7 is away\n")
    logging.getLogger("odradek.client.network.cluster").warning("no command runs")
    assert "warning: " not in capsys.readouterr().err
