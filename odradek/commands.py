"""The commands of `odradek`, by group, and the dispatch of a command line to the module that runs it.

| typed | runs |
|---|---|
| `odradek broker …` | `odradek.broker.__main__` |
| `odradek dev …` | `odradek.broker.development` |
| `odradek inspect …`, `odradek verify …` | `odradek.broker.inspection.command` |
| `odradek topics …` and the rest of its group, `odradek dump-log …` | `odradek.client.__main__`, then its module |
| `odradek consume … --log-dir` | the same, then `odradek.log_dir_records`: no broker is needed |
| `odradek metadata show …` | `odradek.broker.metadata_commands.command` |
| `odradek workers …` | `odradek.broker.workers.command` |
| `odradek users … --config …` | `odradek.broker.metadata_commands.users`: the broker may be stopped |
| `odradek snapshot save …` | `odradek.broker.testing.snapshots.command` |
| `odradek protocol list …` | `odradek.protocol.__main__` |
| `odradek pipeline export …` | `odradek.pipeline.__main__`, then the job's module |
| `odradek completion …` | `odradek.completion` |
| `odradek decode …`, `odradek export …` | the same as behind `protocol` or `pipeline`; not `list` and `verify` |

So `python -m X …` in a checkout is `odradek X …`, except that the commands of `python -m client` need no word in front.
Modules are named as strings and imported when their command runs: `--help` and mistakes import none of them, and
`odradek produce` does not load the broker. Each has a function that adds a command's arguments to a parser:
`add_arguments(parser)`, or `add_arguments(parser, command)` if several commands have this module.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import NamedTuple

WRONG_COMMAND_LINE = 2
PIPE_CLOSED = 141


class Command(NamedTuple):
    """A line of `odradek --help`, and the module of the command."""

    summary: str
    module: str


SERVER = {
    "broker": Command("Run a broker", "odradek.broker.__main__"),
    "dev": Command("Run a broker for development, with its data in memory", "odradek.broker.development"),
    "workers": Command("Show and spread the partitions of several processes", "odradek.broker.workers.command"),
}
RECORDS_OF_LOG_DIR = "odradek.log_dir_records"
"""The module that prints records for `odradek consume` with `--log-dir`: it needs no broker."""
USERS_OF_STOPPED = "odradek.broker.metadata_commands.users"
"""The module of `odradek users` with `--config`: it needs no broker that runs."""
METADATA = {
    "show": Command(
        "Print cluster, brokers and topics in the metadata store", "odradek.broker.metadata_commands.command"
    ),
    "dump": Command("Print every key of the metadata store", "odradek.broker.metadata_commands.command"),
    "create-cluster": Command(
        "Make the cluster again in a store that has lost it", "odradek.broker.metadata_commands.command"
    ),
    "accept-backup": Command("Accept etcd restored from a backup", "odradek.broker.metadata_commands.command"),
}
LOG_DIRECTORIES = {
    "inspect": Command("List partitions, segments, batches and index entries", "odradek.broker.inspection.command"),
    "verify": Command("Check every checksum, index and offset", "odradek.broker.inspection.command"),
    "dump-log": Command(
        "Print the files of a log directory, as Kafka's DumpLogSegments does", "odradek.broker.inspection.dump.command"
    ),
}
SNAPSHOT = {
    "save": Command("Copy a log directory that no broker uses", "odradek.broker.testing.snapshots.command"),
    "load": Command("Make a log directory what it was when it was saved", "odradek.broker.testing.snapshots.command"),
}
CLUSTER = {
    "produce": Command("Send lines of standard input or of a file", "odradek.client.cli.produce"),
    "consume": Command("Print records", "odradek.client.cli.consume"),
    "topics": Command("Create, list, describe, alter and delete topics", "odradek.client.cli.topics"),
    "groups": Command("List and describe groups, reset their offsets, delete them", "odradek.client.cli.groups"),
    "transactions": Command(
        "List, describe and end transactions, find those that hang", "odradek.client.cli.transactions"
    ),
    "configs": Command("Print and change configs of topics, brokers and groups", "odradek.client.cli.configs"),
    "acls": Command("List, create, delete and check access rules", "odradek.client.cli.acls"),
    "users": Command("List, add and remove users, also of a stopped broker", "odradek.client.cli.users"),
    "quotas": Command("Print and change quotas of users, client ids and addresses", "odradek.client.cli.quotas"),
    "cluster": Command("Print brokers, features, API versions and log directories", "odradek.client.cli.cluster"),
    "doctor": Command("Find out why a cluster cannot be reached, or does not work", "odradek.client.cli.doctor"),
    "perf": Command("Measure throughput and latency", "odradek.client.cli.perf"),
}
PROTOCOL = {
    "list": Command("List the APIs, by key", "odradek.protocol.__main__"),
    "show": Command("Print the versions of an API, or the layout of one version", "odradek.protocol.__main__"),
    "decode": Command("Explain the bytes of a request or response", "odradek.protocol.__main__"),
}
JOBS = {
    "export": Command("Write topics to Parquet, only what is new since the last time", "odradek.pipeline.jobs.export"),
    "replay": Command("Send Parquet, such as export has written, into a topic", "odradek.pipeline.jobs.replay"),
    "verify": Command("Check every checksum, offset and index of a log directory", "odradek.pipeline.jobs.verify"),
    "compact": Command(
        "Keep the latest record of each key, as the broker's cleaner does", "odradek.pipeline.jobs.compact"
    ),
    "restore": Command("Make a table of the state that a compacted topic holds", "odradek.pipeline.jobs.restore"),
    "stats": Command(
        "Volume, rates, key skew, lateness and compression by topic and time", "odradek.pipeline.jobs.stats"
    ),
    "run": Command("Run an example from end to end", "odradek.pipeline.jobs.run"),
    "package": Command("Make the archive that spark-submit --py-files takes", "odradek.pipeline.jobs.package"),
}
SHELL = {"completion": Command("Print the script that completes commands in bash or zsh", "odradek.completion")}

CLIENT = CLUSTER | {"dump-log": LOG_DIRECTORIES["dump-log"]}
"""The commands of `python -m client`. dump-log needs no cluster; it is here because earlier versions had it here."""

FLAGS_BEFORE_COMMAND = ("--bootstrap-server", "--command-config", "--command-property")
"""Flags of the commands of a cluster that may stand before the command; each has a value."""

WITHOUT_ITS_GROUP = {
    name: group
    for group, commands in (("protocol", PROTOCOL), ("pipeline", JOBS))
    for name in commands.keys() - LOG_DIRECTORIES.keys() - {"list"}
}
"""The commands that may be typed without `protocol` or `pipeline` in front. `list` alone would not say of what."""

GROUPS = {
    "Server": SERVER,
    "The metadata store of a cluster": {f"metadata {name}": command for name, command in METADATA.items()},
    "Log directories, without a server": LOG_DIRECTORIES
    | {f"snapshot {name}": command for name, command in SNAPSHOT.items()},
    "Clusters and their records": CLUSTER,
    "Kafka's wire protocol": {f"protocol {name}": command for name, command in PROTOCOL.items()},
    "Jobs on Spark, for topics and log directories": {f"pipeline {name}": command for name, command in JOBS.items()},
    "The shell": SHELL,
}
"""The commands by the headings of `odradek --help`; those of a group have its name in front."""


def run(arguments: Sequence[str], program: str = "odradek") -> int:
    """Run a command line and return its exit status; `program` is what was typed to start it.

    Signals are set up as the command needs them, so this is for the main thread of a process of its own.
    """
    first, rest = (arguments[0], arguments[1:]) if arguments else ("", [])
    status: int
    if first in ("-h", "--help"):
        status = _print(help_text(program))
    elif first == "users" and any(each.partition("=")[0] == "--config" for each in rest):
        status = import_module(USERS_OF_STOPPED).main(_action_first(rest), f"{program} users")
    elif first == "--version" or first in CLIENT or first.partition("=")[0] in FLAGS_BEFORE_COMMAND:
        status = import_module("odradek.client.__main__").main(arguments, program)
    elif first in ("broker", "protocol", "pipeline"):
        status = import_module(f"odradek.{first}.__main__").main(rest, f"{program} {first}")
    elif first in ("dev", "workers") or first in SHELL:
        status = import_module((SERVER | SHELL)[first].module).main(rest, f"{program} {first}")
    elif first == "metadata":
        status = import_module(METADATA["show"].module).main(rest, f"{program} metadata")
    elif first == "snapshot":
        status = import_module(SNAPSHOT["save"].module).main(rest, f"{program} snapshot")
    elif first in WITHOUT_ITS_GROUP:
        group = WITHOUT_ITS_GROUP[first]
        status = import_module(f"odradek.{group}.__main__").main(arguments, f"{program} {group}")
    elif first in LOG_DIRECTORIES:
        status = import_module(LOG_DIRECTORIES[first].module).run(first, rest, f"{program} {first}")
    else:
        # Later ones win: `verify` is the command, not the pipeline's job.
        commands = [name for group in reversed(GROUPS.values()) for name in group]
        complaint = unknown_command(
            first,
            [*commands, "metadata", "snapshot", "protocol", "pipeline", "--version", "--help", *FLAGS_BEFORE_COMMAND],
            program,
        )
        print(f"{program}: error: {complaint}", file=sys.stderr)
        status = WRONG_COMMAND_LINE
    return status


def help_text(program: str) -> str:
    """Return what `odradek --help` prints: every command, by group."""
    width = max(len(name) for group in GROUPS.values() for name in group)
    lines = [
        f"usage: {program} COMMAND …",
        f"       {program} COMMAND --help | --help | --version",
        "",
        "A message broker that Kafka's own clients cannot tell from Apache Kafka, and the tools for it.",
        "The words protocol and pipeline may be left out, except before list and verify.",
    ]
    for heading, group in GROUPS.items():
        lines += ["", f"{heading}:"]
        lines += [f"  {name:<{width}}  {command.summary}" for name, command in group.items()]
    return "\n".join(lines)


def unknown_command(typed: str, commands: Iterable[str], program: str) -> str:
    """Return the complaint about a word that is none of `commands`, with the nearest one by its last word."""
    if not typed:
        return f"name a command; {program} --help lists them"
    from difflib import get_close_matches  # 5 ms, which only a mistake costs

    by_last_word = {command.split()[-1]: command for command in commands}
    near = get_close_matches(typed.lower(), by_last_word, n=1, cutoff=0.65)
    hint = f"did you mean {by_last_word[near[0]]!r}?" if near else f"{program} --help lists the commands"
    return f"there is no {'option' if typed.startswith('-') else 'command'} {typed!r}; {hint}"


def _print(text: str) -> int:
    try:
        print(text, flush=True)
    except BrokenPipeError:  # of `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the interpreter flushes once more at exit
        return PIPE_CLOSED
    return 0


def _action_first(arguments: Sequence[str]) -> list[str]:
    """Return the arguments with flags and their values that stand before the first word behind it."""
    flags: list[str] = []
    rest = list(arguments)
    while rest and rest[0].startswith("--") and rest[0] not in ("--help", "--"):
        taken = 1 if "=" in rest[0] else 2
        flags += rest[:taken]
        rest = rest[taken:]
    return rest[:1] + flags + rest[1:]
