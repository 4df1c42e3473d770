from __future__ import annotations

from threading import Thread

from odradek.protocol.framing import ReceiveArena
from odradek.protocol.receive_memory import ReceiveMemory


def test_a_buffer_counts_until_its_last_view_is_deleted() -> None:
    memory = ReceiveMemory()
    buffer = memory.create(100_000)
    view = memoryview(buffer)[5:10]
    del buffer
    assert memory.held == 100_000
    del view
    assert memory.held == 0


def test_a_deleted_buffer_is_reported_only_while_the_memory_is_full() -> None:
    reported: list[int] = []
    memory = ReceiveMemory(150, lambda: reported.append(memory.held))
    first = memory.create(100)
    del first
    assert reported == []

    first, second = memory.create(100), memory.create(100)
    assert memory.is_full
    thread = Thread(target=second.clear)
    del second
    thread.start()
    thread.join()
    del thread
    assert reported == [100]
    assert not memory.is_full
    del first


def test_a_full_arena_keeps_no_buffers() -> None:
    memory = ReceiveMemory(100_000)
    arena = ReceiveArena(1024, memory)
    arena.release(arena.acquire(70_000))
    assert memory.held == 70_000
    second = arena.acquire(200_000)
    arena.release(second)
    del second
    assert memory.held == 70_000
