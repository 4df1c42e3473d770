"""`run EXAMPLE`: run an example from end to end, print its steps, and check its results."""

from __future__ import annotations

import argparse

from odradek.client.cli.arguments.argument_types import not_negative, positive
from odradek.pipeline.jobs.arguments import add_json_argument, add_spark_arguments
from odradek.pipeline.spark.spark_session import check_requirements


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("example", choices=("taxi",), help="taxi: trips, revenue by zone and hour, a kill, totals")
    parser.add_argument("--bootstrap-server", metavar="HOST:PORT", help="the cluster to use (default: start a broker)")
    parser.add_argument("--output", required=True, metavar="DIR", help="a local directory for checkpoints and results")
    parser.add_argument(
        "--overwrite", action="store_true", help="replace the directory, and the topics trips and revenue"
    )
    parser.add_argument("--trips", type=positive, default=100_000, metavar="N", help="default: %(default)s")
    parser.add_argument("--seed", type=not_negative, default=1, metavar="N", help="the trips' seed (default: 1)")
    parser.add_argument(
        "--kill-after",
        type=not_negative,
        default=2,
        metavar="BATCHES",
        help="kill the stream after this number of batches; 0: never (default: 2)",
    )
    add_json_argument(parser)
    add_spark_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    check_requirements()  # before a broker is started
    from odradek.pipeline.taxi.example import run_example

    return run_example(arguments)
