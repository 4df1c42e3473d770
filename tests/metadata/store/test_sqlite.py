from __future__ import annotations

import asyncio
import math
import os
import shutil
import sqlite3
import stat
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from odradek.broker.metadata.store.sqlite import FILE_NAME, SqliteStore, copy_store, read_file, write_file
from odradek.broker.metadata.store.store import KV, MAX_OPERATIONS, Delete, Put, StoreFailedError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / FILE_NAME


async def test_reopening_a_file_restores_everything(path: Path) -> None:
    store = await SqliteStore.open(path)
    await store.txn((), (Put(b"a", b"1"), Put(b"b", b"2")))
    await store.txn((), (Put(b"a", b"3"),))
    before = await store.range(b"")
    await store.close()

    reopened = await SqliteStore.open(path)

    assert await reopened.range(b"") == before == ([KV(b"a", b"3", 1, 2), KV(b"b", b"2", 1, 1)], 2)
    assert await reopened.txn((), (Put(b"c", b""),)) == (True, 3)
    await reopened.close()


async def test_closing_leaves_one_plain_file(path: Path) -> None:
    store = await SqliteStore.open(path)
    await store.txn((), (Put(b"a", b"1"),))
    await store.close()

    assert [child.name for child in path.parent.iterdir()] == [FILE_NAME]


def modes(directory: Path) -> dict[str, str]:
    return {each.name: oct(stat.S_IMODE(each.stat().st_mode)) for each in directory.iterdir()}


async def test_only_its_owner_may_read_the_file_and_what_is_beside_it(path: Path) -> None:
    before = os.umask(0)
    try:
        store = await SqliteStore.open(path)
        await store.txn((), (Put(b"a", b"1"),))
        assert modes(path.parent) == {FILE_NAME + suffix: "0o600" for suffix in ("", "-wal", "-shm")}
        copies = path.parent / "copies"
        copies.mkdir()
        copy_store(path, copies)
        assert modes(copies) == {FILE_NAME + suffix: "0o600" for suffix in ("", "-wal")}
        await store.close()
        write_file(copies / "written", [KV(b"a", b"1", 1, 1)], 1)
        assert modes(copies)["written"] == "0o600"
    finally:
        os.umask(before)


async def test_a_file_that_others_may_read_is_narrowed_with_what_a_kill_left_beside_it(path: Path) -> None:
    store = await SqliteStore.open(path)
    await store.txn((), (Put(b"a", b"1"),))
    killed = path.parent / "killed"
    killed.mkdir()
    for suffix in ("", "-wal", "-shm"):
        shutil.copy(f"{path}{suffix}", killed / f"{FILE_NAME}{suffix}")
        (killed / f"{FILE_NAME}{suffix}").chmod(0o664)
    await store.close()

    store = await SqliteStore.open(killed / FILE_NAME)
    assert modes(killed) == {FILE_NAME + suffix: "0o600" for suffix in ("", "-wal", "-shm")}
    assert (await store.range(b""))[0] == [KV(b"a", b"1", 1, 1)]
    await store.close()


async def test_a_file_whose_mode_cannot_be_changed_is_used_and_logged(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(self: Path, mode: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    await (await SqliteStore.open(path)).close()
    os.chmod(path, 0o644)  # noqa: PTH101 - pathlib's is replaced
    monkeypatch.setattr(Path, "chmod", refuse)
    await (await SqliteStore.open(path)).close()
    assert "others may read the metadata" in caplog.text


def test_a_narrower_mode_stays(path: Path) -> None:
    async def open_and_close() -> None:
        await (await SqliteStore.open(path)).close()

    asyncio.run(open_and_close())
    path.chmod(0o700)
    modified = path.stat().st_mtime_ns
    asyncio.run(open_and_close())
    assert (modes(path.parent), path.stat().st_mtime_ns) == ({FILE_NAME: "0o700"}, modified)


async def test_answered_transactions_survive_a_kill_at_any_time(path: Path, tmp_path: Path) -> None:
    """After each transaction, copy the files as they are on disk, as after kill -9, and open the copies."""
    store = await SqliteStore.open(path)
    for i in range(20):
        await store.txn((), (Put(b"%02d" % i, b"x" * 5000),))
        crashed = tmp_path / f"crashed-{i}"
        crashed.mkdir()
        for suffix in ("", "-wal"):
            shutil.copy(f"{path}{suffix}", crashed / f"{FILE_NAME}{suffix}")

        recovered = await SqliteStore.open(crashed / FILE_NAME)
        assert await recovered.range(b"") == await store.range(b"")
        await recovered.close()
    await store.close()


async def test_a_store_that_refuses_all_writes_no_transaction_that_waits(path: Path) -> None:
    store = await SqliteStore.open(path)
    first, second = (asyncio.create_task(store.txn((), (Put(key, b""),))) for key in (b"a", b"b"))
    await asyncio.sleep(0)  # both wait for their turns, or the first is being written
    store.refuse_all()
    with pytest.raises(StoreFailedError, match="killed"):
        await second
    await asyncio.gather(first, return_exceptions=True)
    await store.close()

    reopened = await SqliteStore.open(path)
    assert [kv.key for kv in (await reopened.range(b""))[0]] in ([], [b"a"])
    await reopened.close()


async def test_a_lease_never_is_one_of_an_earlier_process(path: Path) -> None:
    """Also of one that changed nothing."""
    leases = set()
    for _ in range(3):
        store = await SqliteStore.open(path)
        leases |= {(await store.session(1)).lease for _ in range(3)}
        await store.close()

    assert len(leases) == 9


async def test_leased_keys_of_an_earlier_process_are_deleted_at_open(path: Path) -> None:
    store = await SqliteStore.open(path)
    session = await store.session(1)
    await store.txn((), (Put(b"leased", b"", session.lease), Put(b"kept", b"")))
    await store.close()

    reopened = await SqliteStore.open(path)

    assert ([kv.key for kv in (await reopened.range(b""))[0]], (await reopened.range(b""))[1]) == ([b"kept"], 2)
    assert (await reopened.session(1)).lease != session.lease
    await reopened.close()


async def test_a_session_does_not_expire(path: Path) -> None:
    store = await SqliteStore.open(path)

    assert (await store.session(0.001)).deadline() == math.inf
    await store.close()


def _break(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TABLE kv")


async def test_after_a_failed_write_every_operation_fails(path: Path) -> None:
    store = await SqliteStore.open(path)
    await store.txn((), (Put(b"a", b"1"),))
    watch = store.watch(b"", 1)
    waiting = asyncio.ensure_future(anext(watch))
    await asyncio.sleep(0)
    _break(path)

    with pytest.raises(StoreFailedError, match="cannot write"):
        await store.txn((), (Put(b"a", b"2"),))
    for call in (waiting, store.range(b""), store.txn((), (Put(b"a", b"3"),))):
        with pytest.raises(StoreFailedError):
            await call
    await store.close()


def _other_program(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE theirs (x)")


def _newer_format(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA application_id = {int.from_bytes(b'odra')}")
        connection.execute("PRAGMA user_version = 99")
        connection.execute("CREATE TABLE kv (x)")


def _no_database(path: Path) -> None:
    path.write_bytes(b"this is text, and long enough not to be taken for an empty file" * 100)


@pytest.mark.parametrize(
    ("prepare", "message"),
    [(_other_program, "another program"), (_newer_format, "format 99"), (_no_database, "not a database")],
)
async def test_a_file_of_another_program_is_refused(path: Path, prepare: Callable[[Path], None], message: str) -> None:
    prepare(path)

    with pytest.raises(StoreFailedError, match=message):
        await SqliteStore.open(path)


async def test_a_directory_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(StoreFailedError, match="cannot open"):
        await SqliteStore.open(tmp_path / "nowhere" / FILE_NAME)


async def test_a_rewrite_applies_any_number_of_operations_at_one_revision(path: Path) -> None:
    store = await SqliteStore.open(path)
    await store.txn((), (Put(b"a", b"1"), Put(b"b", b"2")))
    watch = store.watch(b"", 1)
    many = [Put(b"k%03d" % number, b"") for number in range(2 * MAX_OPERATIONS)]

    result = await store.rewrite(lambda kvs: [*(Delete(kv.key) for kv in kvs if kv.value == b"1"), *many])

    assert result == (True, 2)
    kvs, _ = await store.range(b"")
    assert [kv.key for kv in kvs] == [b"b", *(put.key for put in many)]
    assert len((await anext(watch)).changes) == 2 * MAX_OPERATIONS + 1
    assert await store.rewrite(lambda _: []) == (True, 2)
    await store.close()


async def test_a_written_file_is_opened_with_its_revision(path: Path) -> None:
    kvs = [KV(b"a", b"1", 3, 4), KV(b"b", b"2", 1, 1)]
    write_file(path, kvs, 9)

    assert [each.name for each in path.parent.iterdir()] == [FILE_NAME]
    assert read_file(path) == (kvs, 9)
    store = await SqliteStore.open(path)
    assert await store.range(b"") == (kvs, 9)
    await store.close()
