"""Warnings of the client, as a command prints them."""

from __future__ import annotations

import logging

import pytest

from odradek.client.cli.output.client_log import printed_warnings


def test_warnings_are_printed_except_those_about_refused_records(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with printed_warnings():
        logging.getLogger("odradek.client.network.cluster").warning("broker %d is away", 7)
        logging.getLogger("odradek.client.network.cluster").info("nothing of interest")
        logging.getLogger("odradek.client.producer.delivery").warning("2 records are not acknowledged")
    assert capsys.readouterr() == ("", "warning: broker 7 is away\n")
    logging.getLogger("odradek.client.network.cluster").warning("no command runs")
    assert "warning: " not in capsys.readouterr().err
