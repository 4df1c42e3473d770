"""The flags that every command shares: where the cluster is."""

from __future__ import annotations

import argparse


def add_connection_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--bootstrap-server",
        default="localhost:9092",
        metavar="HOST:PORT[,HOST:PORT]",
        help="brokers to ask for the rest of the cluster (default: %(default)s)",
    )
    parser.add_argument("--topic", required=True)


def positive(text: str) -> int:
    """A number above 0, for argparse."""
    number = int(text)
    if number <= 0:
        raise argparse.ArgumentTypeError(f"{text} is not above 0")
    return number


def not_negative(text: str) -> int:
    """A number, 0 or above, for argparse."""
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"{text} is below 0")
    return number
