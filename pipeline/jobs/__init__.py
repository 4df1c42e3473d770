"""The jobs and their command line, `odradek pipeline JOB …`: one module a job.

A job has functions over DataFrames of the connector's schema (key, value, topic, partition, offset, timestamp,
timestampType, headers), which a notebook may call. Its command is `add_arguments(parser)` and `run(arguments)`, which
returns the exit status. `odradek.commands` has the table of jobs. Only the module of the typed job is imported, and it
imports PySpark when it runs, so that `--help` and mistakes are answered at once.

| module | what |
|---|---|
| `export`, `replay`, `verify`, `compact`, `restore`, `stats`, `run`, `package` | the jobs |
| `export_runs`, `partition_columns` | for `export`: runs over a log directory; the columns of `--partition-by` |
| `parquet_records` | for `replay`: Parquet as records |
| `topic_sizes` | for `stats`: batches as rows; the size of a topic; files and pictures |
| `arguments`, `source`, `job_session` | flags that jobs share; the records that the flags select; the Spark session |
| `early_checks` | options, addresses, topics and directories, checked before Spark starts |
| `planned_options` | options that a job sets itself, so an `--option` may not |
| `log_directories` | log directories as jobs read them |
| `results` | output files and tables, and the report of a job |

| exit status | meaning |
|---|---|
| 0 | done |
| 1 | it failed, and the reason is on standard error; or `verify` or `stats` found a flaw in the log |
| 2 | the command line is wrong |
| 130 | Ctrl-C |
| 141 | the reader of our output is gone (a closed pipe) |
| 143 | SIGTERM, which ends a job as Ctrl-C does |
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from odradek.argument_parser import ArgumentParser
from odradek.client.cli import FAILED, UsageError, exit_status, fail
from odradek.commands import JOBS, unknown_command
from odradek.pipeline.spark.spark_session import RequirementMissingError

COMMANDS = {name: job.summary for name, job in JOBS.items()}

WRONG_COMMAND_LINE = 2
TERMINATED = 143

_STATUSES = "exit status: 0 done, 1 failed or (verify, stats) a flaw was found, 2 the command line is wrong, 130 Ctrl-C"


class JobError(Exception):
    """A job cannot do its work; the message is a sentence for the user."""


class OptionError(Exception):
    """An `--option` or an address is wrong; reported in one line, without the usage of the command line."""


def run(arguments: Sequence[str], program: str = "python -m pipeline") -> int:
    """Run a command line and return its exit status; argparse exits by itself on `--help` and on mistakes."""
    return exit_status(lambda: _run(arguments, program))


def _run(arguments: Sequence[str], program: str) -> int:
    parser = ArgumentParser(prog=program, description="Topics and log directories on Spark.", epilog=_STATUSES)
    commands = parser.add_subparsers(dest="command", required=True, metavar="job")
    wanted = next((argument for argument in arguments if not argument.startswith("-")), None)
    for name, summary in COMMANDS.items():
        command = commands.add_parser(name, help=summary, description=f"{summary}.", epilog=_STATUSES)
        if name == wanted:
            _module(name).add_arguments(command)
    if wanted is not None and wanted == arguments[0] and wanted not in JOBS:
        parser.error(unknown_command(wanted, JOBS, program))
    parsed = parser.parse_args(arguments)
    try:
        status: int = _module(parsed.command).run(parsed)
    except UsageError as error:
        commands.choices[parsed.command].error(str(error))
    except OptionError as error:
        fail(error)
        return WRONG_COMMAND_LINE
    except (JobError, RequirementMissingError, OSError) as error:
        if isinstance(error, BrokenPipeError):
            raise
        return fail(error)
    return status


def _module(command: str) -> Any:
    return import_module(JOBS[command].module)


__all__ = ["COMMANDS", "FAILED", "TERMINATED", "JobError", "OptionError", "UsageError", "run"]
