"""`odradek users`: SCRAM users in the metadata store of a broker that is stopped, or in etcd.

```
odradek users list         --config FILE [--override NAME=VALUE]…
odradek users add NAME     --config FILE … [--mechanism NAME]… [--iterations N] [--password-file FILE]
odradek users remove NAME  --config FILE … [--mechanism NAME]…
```

`--user NAME` is the same as NAME, as without `--config`, where a broker is asked (`odradek.client.cli.users`).

It makes the first user, before any client can log in to make others. `list` also works beside a running broker; `add`
and `remove` hold the locks of the log directories, unless the store is in etcd, where brokers see the change at once.
New log directories are created.

The password comes from a prompt, from the first line of `--password-file`, or (`-`, or without a terminal) of standard
input: never from an argument, which every user of the machine could see in the list of processes. It is not stored
(`scram_users`). Without `--mechanism` a user gets credentials for all mechanisms.

| exit status | |
|---|---|
| 0 | done |
| 1 | it failed, or is refused, and standard error has the reason |
| 2 | the command line is wrong |
| 130 | Ctrl-C |
| 141 | the reader of the output is gone (`| head`) |
"""

from __future__ import annotations

import argparse
import asyncio
import getpass
import os
import stat
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Final

from odradek.argument_parser import ArgumentParser
from odradek.broker.clock import Clock, SystemClock
from odradek.broker.command_line import fail, pipe_closed
from odradek.broker.config import BrokerConfig, ConfigError
from odradek.broker.inspection.text import error_text, print_table
from odradek.broker.metadata.administration.scram_users import LONGEST_NAME
from odradek.broker.metadata.keys import Keys
from odradek.broker.metadata.scram_users import ScramUser, decode_scram_user
from odradek.broker.metadata.store.commit import commit
from odradek.broker.metadata.store.opening import shared_store
from odradek.broker.metadata.store.sqlite import FILE_NAME, SqliteStore
from odradek.broker.metadata.store.store import Delete, MetadataStore, Op, Put, StoreError, absent, read_key, unchanged
from odradek.broker.metadata.values import encode
from odradek.broker.metadata_commands.command import add_arguments as add_config_arguments
from odradek.broker.metadata_commands.directories import locked
from odradek.broker.metadata_commands.opened_store import read_metadata
from odradek.broker.randomness import SystemRandomness
from odradek.broker.security.authentication.unknown_users import salt_from
from odradek.broker.startup.metadata_store import check_alone
from odradek.broker.storage.checkpoints.text_file import MalformedFileError
from odradek.broker.storage.disk.files import OsFiles, make_directories
from odradek.broker.storage.log_dir import LogDir, LogDirRefusedError
from odradek.broker.storage.log_dirs import LogDirs
from odradek.broker.storage.names import LOCK
from odradek.protocol.sasl.scram import (
    DEFAULT_ITERATIONS,
    MAXIMUM_ITERATIONS,
    MINIMUM_ITERATIONS,
    SCRAM_MECHANISMS,
    ScramCredential,
)

_INTERRUPTED: Final = 130
_LONGEST_PASSWORD: Final = 4096
"""Characters, inclusive; a message of PLAIN or SCRAM has at most 16 KiB."""
_LONGEST_LINE: Final = 4 * (_LONGEST_PASSWORD + 1)
"""Bytes, inclusive: more than those of the longest password with the end of its line."""
_WRONG_PASSWORD: Final = f"a password has 1 to {_LONGEST_PASSWORD} characters, and no NUL"
_ACTIONS: Final = {
    "list": "print the users, their mechanisms and iterations",
    "add": "add a user, or give it another password",
    "remove": "remove a user, or its credential for a mechanism",
}


class UsersError(Exception):
    """The command is refused; the message is a sentence for its user."""


_FAILS_WITH: Final = (UsersError, StoreError, LogDirRefusedError, MalformedFileError, OSError)


def main(arguments: Sequence[str], program: str = "odradek users") -> int:
    """Run a command line as a process and return its exit status; `program` is what was typed to start it."""
    parser = ArgumentParser(prog=program, description="Users of SCRAM in a broker that is stopped.")
    add_arguments(parser)
    options = parser.parse_args(_with_action_first(arguments))
    try:
        config = BrokerConfig.load(options.config, dict(options.override))
        password = _password(options.name, options.password_file) if options.action == "add" else ""
        asyncio.run(_run(options, password, config, SystemClock()))
        sys.stdout.flush()
    except ConfigError as error:
        return fail(error.problems)
    except BrokenPipeError:
        return pipe_closed()
    except _FAILS_WITH as error:
        return fail([error_text(error)])
    except KeyboardInterrupt:
        return _INTERRUPTED
    return 0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    for name, text in _ACTIONS.items():
        # No abbreviations: `--password secret` must not become `--password-file secret`.
        action = actions.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.", allow_abbrev=False)
        add_config_arguments(action, "show")
        if name == "list":
            continue
        user = action.add_mutually_exclusive_group(required=True)
        kind = _name if name == "add" else _existing_name
        user.add_argument("name", nargs="?", default=argparse.SUPPRESS, metavar="NAME", type=kind, help="the user")
        user.add_argument("--user", "--entity-name", dest="name", metavar="NAME", type=kind, help="the same")
        action.add_argument(
            "--mechanism", action="append", choices=list(SCRAM_MECHANISMS), help="may be repeated; all by default"
        )
        if name == "add":
            action.add_argument(
                "--iterations",
                type=_iterations,
                default=DEFAULT_ITERATIONS,
                metavar="N",
                help=f"{MINIMUM_ITERATIONS} to {MAXIMUM_ITERATIONS}; the default, as Kafka's, is {DEFAULT_ITERATIONS}",
            )
            action.add_argument(
                "--password-file",
                metavar="FILE",
                help="the password is its first line; -: of standard input. Otherwise you are asked for it",
            )


async def _run(options: argparse.Namespace, password: str, config: BrokerConfig, clock: Clock) -> None:
    if options.action == "list":
        await _list(config, clock)
        return
    mechanisms = options.mechanism or list(SCRAM_MECHANISMS)
    if options.action == "add":
        salts = SystemRandomness()
        new = {
            name: ScramCredential.from_password(
                SCRAM_MECHANISMS[name], password, salt_from(salts.random_bytes(32)), options.iterations
            )
            for name in mechanisms
        }
        async with _store(config, clock) as store:
            await _add(store, Keys(config.metadata_etcd_namespace).scram_user(options.name), new)
    else:
        async with _store(config, clock) as store:
            await _remove(store, Keys(config.metadata_etcd_namespace).scram_user(options.name), mechanisms)
    done = "has the new password" if options.action == "add" else "is removed"
    sys.stdout.write(f"{options.name} {done} for {', '.join(mechanisms)}\n")


async def _list(config: BrokerConfig, clock: Clock) -> None:
    metadata = await read_metadata(config, clock)
    users = metadata.image().scram_users.users
    rows = [
        (name, mechanism, credential.iterations)
        for name, stored in sorted(users.items())
        for mechanism, credential in sorted(stored.user.credentials.items())
    ]
    if rows:
        print_table(sys.stdout, ("user", "mechanism", "iterations"), rows)
    else:
        sys.stdout.write("no users\n")


async def _add(store: MetadataStore, key: bytes, new: dict[str, ScramCredential]) -> None:
    while True:
        kv, _ = await read_key(store, key)
        old = {} if kv is None else decode_scram_user(kv.value).credentials
        when = absent(key) if kv is None else unchanged(kv)
        if (await commit(store, (when,), (Put(key, encode(ScramUser({**old, **new}))),))).ok:
            return


async def _remove(store: MetadataStore, key: bytes, mechanisms: Sequence[str]) -> None:
    while True:
        kv, _ = await read_key(store, key)
        old = {} if kv is None else decode_scram_user(kv.value).credentials
        if kv is None or not old.keys() & set(mechanisms):
            raise UsersError(f"there is no such user for {' or '.join(mechanisms)}; `odradek users list` prints all")
        rest = {name: credential for name, credential in old.items() if name not in mechanisms}
        op: Op = Put(key, encode(ScramUser(rest))) if rest else Delete(key)
        if (await commit(store, (unchanged(kv),), (op,))).ok:
            return


@asynccontextmanager
async def _store(config: BrokerConfig, clock: Clock) -> AsyncIterator[MetadataStore]:
    """Open the store for changes. Raises `StoreError`, `LogDirRefusedError` if a broker runs, `OSError`."""
    if config.metadata_etcd_endpoints:
        async with shared_store(config, clock) as store:
            yield store
        return
    for path in config.log_dirs:
        make_directories(OsFiles(), path)
    with locked(config.log_dirs), _owned_by_the_broker(config):
        check_alone(LogDirs([LogDir(path, clock=clock, randomness=SystemRandomness()) for path in config.log_dirs]))
        alone = await SqliteStore.open(Path(config.log_dirs[0]) / FILE_NAME)
        try:
            yield alone
        finally:
            await alone.close()


@contextmanager
def _owned_by_the_broker(config: BrokerConfig) -> Iterator[None]:
    """Give what root creates in the log directories to their owner, whose broker could not use it otherwise."""
    yield
    if os.geteuid() != 0:
        return
    for directory in map(Path, config.log_dirs):
        owner = directory.stat()
        for path in (directory / LOCK, directory / FILE_NAME):
            if path.exists() and path.stat().st_uid == 0 != owner.st_uid:
                os.chown(path, owner.st_uid, owner.st_gid)


def _password(name: str, file: str | None) -> str:
    """Return the password of a new user. Raises `UsersError`, `OSError`."""
    if file not in (None, "-"):
        password = _first_line(Path(file))
    elif file == "-" or not sys.stdin.isatty():
        password = _without_end(sys.stdin.buffer.readline(_LONGEST_LINE), "standard input")
    else:
        password = getpass.getpass(f"Password of {name}: ")
        if getpass.getpass("Again: ") != password:
            raise UsersError("the two passwords differ")
    if not password or len(password) > _LONGEST_PASSWORD or "\0" in password:
        raise UsersError(_WRONG_PASSWORD)
    return password


def _first_line(path: Path) -> str:
    mode = path.stat().st_mode
    if stat.S_ISREG(mode) and mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise UsersError(f"others may read the password in {path}: chmod 600 {path}")
    with path.open("rb") as lines:
        return _without_end(lines.readline(_LONGEST_LINE), str(path))


def _without_end(line: bytes, source: str) -> str:
    """Return the text of a line without its end, LF or CR LF. Raises `UsersError`."""
    if len(line) == _LONGEST_LINE:  # perhaps cut within a character
        raise UsersError(_WRONG_PASSWORD)
    try:
        return line.removesuffix(b"\n").removesuffix(b"\r").decode()
    except UnicodeDecodeError:
        raise UsersError(f"the password in {source} is not UTF-8") from None


def _name(text: str) -> str:
    if not text or not text.isascii() or "\0" in text or len(text) > LONGEST_NAME:
        raise argparse.ArgumentTypeError(f"a user of SCRAM has a name of 1 to {LONGEST_NAME} ASCII characters")
    return text


def _existing_name(text: str) -> str:
    """Check the name of a user to remove: kafka-configs.sh may have made one that is not ASCII."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise argparse.ArgumentTypeError("the name is not UTF-8") from None
    return text


def _iterations(text: str) -> int:
    if text.isascii() and text.isdigit() and MINIMUM_ITERATIONS <= int(text) <= MAXIMUM_ITERATIONS:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a number from {MINIMUM_ITERATIONS} to {MAXIMUM_ITERATIONS}")


def _with_action_first(arguments: Sequence[str]) -> list[str]:
    """Move the action to the front, so that flags may stand before it: `users --config FILE add NAME`."""
    words = list(arguments)
    for at, word in enumerate(words):
        if word in _ACTIONS and (at == 0 or words[at - 1] not in ("--config", "--override")):
            return [word, *words[:at], *words[at + 1 :]]
    return words
