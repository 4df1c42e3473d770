"""Transactions, request by request: every version, and the errors of every request.

Apache Kafka writes markers after its response, so a script waits for the state after each end of a transaction.
"""

from __future__ import annotations

from tests.interop.differential.cluster import producers
from tests.interop.differential.partitions import offsets
from tests.interop.differential.playing import accepted
from tests.interop.differential.transaction_steps import (
    DATA,
    TOPIC,
    UNKNOWN_ID,
    Entry,
    P,
    add,
    add_as_broker,
    add_offsets,
    await_group_coordinator,
    begin,
    commit_offsets,
    describe,
    end,
    find,
    init,
    list_transactions,
    mark,
    mark_nothing,
    send,
    send_of_two_producers,
    set_level,
    stable_offsets,
    state,
    versions,
)

INITIALISING = [
    *begin("init"),
    *versions(lambda version: find("init", version=version), 1, 6),
    *versions(lambda version: find("", version=version), 1, 6),
    *versions(lambda version: init("", version=version), 0, 5),
    *versions(lambda version: init("init", timeout_ms=0, version=version), 0, 5),
    init("init", timeout_ms=-1),
    init("init", timeout_ms=900_001),
    init("init", timeout_ms=900_000),  # P(0)
    *versions(lambda version: init("init", version=version), 0, 5),
    describe("init", "no such id", ""),
    describe(),
    *versions(lambda version: init("init", P(0), -1, version), 3, 5),
    *versions(lambda version: init("init", -1, 3, version), 3, 5),
    init("init", P(0), 6),
    init("init", P(0), 6),  # again: the epoch before is answered with the present one
    *versions(lambda version: init("init", P(0), 5, version), 3, 5),
    *versions(lambda version: init("init", P(0), 8, version), 3, 5),
    *versions(lambda version: init("init", UNKNOWN_ID, 7, version), 3, 5),
    init("init", UNKNOWN_ID, 0),
    init("init-unknown", UNKNOWN_ID, 3),
    describe("init-unknown"),
    init(None, timeout_ms=0),
    init(None, 5, 5),
    find("x" * 1000),
    init("x" * 1000),
]

ADDING = [
    *begin("add"),
    await_group_coordinator(),
    *versions(lambda version: add("add", UNKNOWN_ID, 0, DATA, version), 0, 3),
    init("add"),
    *versions(lambda version: add("", P(0), 0, DATA, version), 0, 3),
    *versions(lambda version: add("add", UNKNOWN_ID, 0, DATA, version), 0, 3),
    *versions(lambda version: add("add", P(0), 1, DATA, version), 0, 3),
    *versions(lambda version: add("add", P(0), 0, {TOPIC: [0, 9], "missing": [0]}, version), 0, 3),
    *versions(lambda version: add("add", P(0), 0, {TOPIC: [-1]}, version), 0, 3),
    add("add", P(0), 0, {}),
    describe("add"),
    *versions(lambda version: add("add", P(0), 0, DATA, version), 0, 3),
    add("add", P(0), 0, {TOPIC: [1, 1, 2]}),
    describe("add"),
    *versions(
        lambda version: add_as_broker(
            Entry("add", P(0), 0, {TOPIC: [0]}),
            Entry("unknown", P(0), 0, {TOPIC: [0]}),
            Entry("add-other", UNKNOWN_ID, 0, {TOPIC: [0], "missing": [3]}, verify_only=False),
            version=version,
        ),
        4,
        5,
    ),
    *versions(lambda version: add_as_broker(Entry("add", P(0), 1, {TOPIC: [0]}), version=version), 4, 5),
    *versions(lambda version: add_as_broker(Entry("add", UNKNOWN_ID, 0, {TOPIC: [0]}), version=version), 4, 5),
    *versions(lambda version: add_as_broker(Entry("add", P(0), 0, {"missing": [0]}), version=version), 4, 5),
    *versions(lambda version: add_as_broker(Entry("", P(0), 0, {TOPIC: [0]}), version=version), 4, 5),
    # Not without a transaction: Apache Kafka never answers that.
    add_as_broker(Entry("add", P(0), 0, {TOPIC: [0, 1], "missing": [0]}, verify_only=False)),
    add_as_broker(Entry("add", P(0), 0, {TOPIC: [9]}, verify_only=False)),
    init("add"),  # fences, and is to be repeated
    state("add", "CompleteAbort"),
    init("add"),
    *versions(lambda version: add("add", P(0), 0, DATA, version), 0, 3),
    *versions(lambda version: add_offsets("add", P(0), 0, version=version), 0, 4),
    *versions(lambda version: end("add", P(0), 0, version=version), 0, 5),
    *versions(lambda version: commit_offsets("add", P(0), 0, version=version), 0, 5),
    *versions(lambda version: send("add", P(0), 0, version=version), 9, 12),
    *versions(lambda version: add_as_broker(Entry("add", P(0), 0, {TOPIC: [0]}), version=version), 4, 5),
    *versions(lambda version: add_as_broker(Entry("add", P(0), 2, {TOPIC: [0]}), version=version), 4, 5),
    describe("add"),
]

ENDING = [
    *begin("end"),
    *versions(lambda version: end("end", UNKNOWN_ID, 0, version=version), 0, 5),
    init("end"),
    *versions(lambda version: end("", P(0), 0, version=version), 0, 5),
    *versions(lambda version: end("end", UNKNOWN_ID, 0, version=version), 0, 5),
    *versions(lambda version: end("end", P(0), 1, version=version), 0, 5),
    *versions(lambda version: end("end", P(0), 0, version=version), 0, 5),  # Empty
    *versions(lambda version: end("end", P(0), 0, False, version), 0, 4),
    # The first generation: the same end is repeated, another one is not.
    *(
        step
        for committed in (True, False)
        for step in (
            add("end", P(0), 0, DATA),
            end("end", P(0), 0, committed, 4),
            state("end", "CompleteCommit", "CompleteAbort"),
            *versions(lambda version, committed=committed: end("end", P(0), 0, committed, version), 0, 4),
            *versions(lambda version, committed=committed: end("end", P(0), 0, not committed, version), 0, 4),
        )
    ),
    # The second: every end has its own epoch.
    init("end2"),
    end("end2", P(1), 0),  # Empty, commit
    end("end2", P(1), -1, False),
    end("end2", P(1), 0, False),  # Empty, abort: 1
    state("end2", "CompleteAbort"),
    *(end("end2", P(1), epoch, committed) for epoch in (0, 2) for committed in (True, False)),
    end("end2", P(1), 1),
    end("end2", P(1), 1, False),  # CompleteAbort, abort: 2
    state("end2", "CompleteAbort"),
    send("end2", P(1), 2),
    *(end("end2", P(1), epoch, committed) for epoch in (0, 1, 3) for committed in (True, False)),
    end("end2", P(1), 2),  # 3
    state("end2", "CompleteCommit"),
    *(end("end2", P(1), epoch, committed) for epoch in (1, 2, 4) for committed in (True, False)),
    end("end2", P(1), 3),
    end("end2", P(1), 3, False),  # CompleteCommit, abort: 4
    state("end2", "CompleteAbort"),
    send("end2", P(1), 4, partition=1),
    send("end2", P(1), 4, 1, partition=1),
    send("end2", P(1), 4, 5, partition=1),
    send("end2", P(1), 3, 2, partition=1),
    send("end2", P(1), 5, 0, partition=1),
    send("end2", P(1), 4, 3, partition=2),
    end("end2", P(1), 4, False),  # 5
    state("end2", "CompleteAbort"),
    send("end2", P(1), 4, 2, partition=1),
    send("end2", P(1), 5, 2, partition=1),
    producers({TOPIC: [0, 1, 2, 9], "missing": [0]}),
    # An end of one generation after the other.
    send("end2", P(1), 5, partition=0),
    end("end2", P(1), 5, True, 4),
    state("end2", "CompleteCommit"),
    describe("end2"),
]

FENCING = [
    *begin("fence"),
    init("fence"),
    init("fence"),
    # An open transaction is aborted by any epoch of its producer id; another id is fenced.
    send("fence", P(0), 1),
    *versions(lambda version: init("fence", UNKNOWN_ID, 1, version), 3, 5),
    init("fence", P(0), 0),
    state("fence", "CompleteAbort"),
    init("fence", P(0), 0),
    init("fence", P(0), 1),  # the epoch before: 2 again
    describe("fence"),
    send("fence", P(0), 2, partition=1),
    *(end("fence", P(0), epoch, committed) for epoch in (1, 3) for committed in (True, False)),
    *(add("fence", P(0), epoch, DATA) for epoch in (1, 3)),
    add_offsets("fence", P(0), 1),
    describe("fence"),
    init("fence", P(0), 2),
    state("fence", "CompleteAbort"),
    end("fence", P(0), 2, False),
    end("fence", P(0), 2),
    *versions(lambda version: end("fence", P(0), 2, False, version), 0, 4),
    init("fence", P(0), 2),
    # An abort without partitions is repeated like any other; a commit is none of its retries.
    end("fence", P(0), 3, False),
    state("fence", "CompleteAbort"),
    end("fence", P(0), 3, False),
    end("fence", P(0), 3),
    # The first generation.
    add("fence", P(0), 4, DATA),
    *versions(lambda version: end("fence", P(0), 3, version=version), 0, 4),
    init("fence"),
    state("fence", "CompleteAbort"),
    describe("fence"),
    *versions(lambda version: end("fence", P(0), 4, False, version), 0, 5),
    *versions(lambda version: init("fence", P(0), 4, version), 3, 5),
    describe("fence"),
]

PRODUCING = [
    *begin("send"),
    init("send"),
    *versions(lambda version: send("send", P(0), 0, version=version), 9, 11),
    *versions(lambda version: send("unknown", P(0), 0, version=version), 9, 12),
    *versions(lambda version: send("send", UNKNOWN_ID, 0, version=version), 9, 12),
    *versions(lambda version: send("send", P(0), 3, version=version), 9, 12),
    *versions(lambda version: send(None, P(0), 0, version=version), 9, 12),
    *versions(lambda version: send("", P(0), 0, version=version), 9, 12),
    *versions(lambda version: send("send", -1, -1, -1, transactional=False, version=version), 9, 12),
    add("send", P(0), 0, {TOPIC: [0]}),
    *versions(lambda version: send("send", P(0), 0, version - 9, version=version), 9, 11),
    send("send", P(0), 0, 1, 1, version=11),
    send("send", P(0), 0, 0, 1, version=12),
    send("send", P(0), 0, 1, 2, version=12),
    describe("send"),
    producers({TOPIC: [0, 1, 2]}),
    end("send", P(0), 0, True),
    state("send", "CompleteCommit"),
    # In the second generation a late batch of the transaction before is refused.
    send("send", P(0), 0, 3, version=12),
    send("send", P(0), 0, 3, version=11),
    send("send", P(0), 1, 0, version=12),
    end("send", P(0), 1, False),
    state("send", "CompleteAbort"),
    *(offsets(TOPIC, 3, time) for time in (-1, -2)),
    send_of_two_producers("send", P(0), 2),
]  # fmt: skip

OFFSETS = [
    *begin("offsets"),
    await_group_coordinator(),
    init("offsets"),
    *versions(lambda version: add_offsets("", P(0), 0, version=version), 0, 4),
    *versions(lambda version: add_offsets("offsets", UNKNOWN_ID, 0, version=version), 0, 4),
    *versions(lambda version: add_offsets("offsets", P(0), 7, version=version), 0, 4),
    *versions(lambda version: add_offsets("unknown", P(0), 0, version=version), 0, 4),
    *versions(lambda version: commit_offsets("offsets", P(0), 0, version=version), 0, 4),
    *versions(lambda version: commit_offsets("unknown", P(0), 0, version=version), 0, 5),
    *versions(lambda version: commit_offsets("offsets", UNKNOWN_ID, 0, version=version), 0, 5),
    *versions(lambda version: commit_offsets("offsets", P(0), 7, version=version), 0, 5),
    *versions(lambda version: commit_offsets("offsets", P(0), 0, group="", version=version), 0, 5),
    add_offsets("offsets", P(0), 0, ""),
    *versions(lambda version: add_offsets("offsets", P(0), 0, version=version), 0, 4),
    describe("offsets"),
    *versions(lambda version: commit_offsets("offsets", P(0), 0, topic="missing", version=version), 0, 5),
    *versions(lambda version: commit_offsets("offsets", P(0), 0, offset=version, version=version), 0, 5),
    *versions(lambda v: commit_offsets("offsets", P(0), 0, version=v, member_id="m", generation_id=1), 3, 5),
    *versions(lambda v: commit_offsets("offsets", P(0), 0, version=v, generation_id=4), 3, 5),
    *versions(lambda v: commit_offsets("offsets", P(0), 0, version=v, member_id="m"), 3, 5),
    *versions(
        lambda v: commit_offsets("offsets", P(0), 0, version=v, member_id="m", group_instance_id="i", generation_id=1),
        3, 5,
    ),
    stable_offsets(),
    stable_offsets(9),
    stable_offsets(stable=False),
    end("offsets", P(0), 0, False),
    state("offsets", "CompleteAbort"),
    stable_offsets(),
    commit_offsets("offsets", P(0), 0),
    commit_offsets("offsets", P(0), 1, offset=70),
    stable_offsets(),
    end("offsets", P(0), 1),
    state("offsets", "CompleteCommit"),
    stable_offsets(),
    stable_offsets(stable=False),
    # A transaction that is aborted leaves the offset of the one before.
    add_offsets("offsets", P(0), 2),
    commit_offsets("offsets", P(0), 2, offset=71, version=4),
    end("offsets", P(0), 2, False, 4),
    state("offsets", "CompleteAbort"),
    stable_offsets(),
]  # fmt: skip

MARKING = [
    *begin("mark"),
    *versions(lambda version: mark(UNKNOWN_ID, 0, {TOPIC: [0, 9], "missing": [0]}, version=version), 1, 2),
    init("mark"),
    send("mark", P(0), 0),
    send("mark", P(0), 0, partition=1),
    mark(P(0), 0, {TOPIC: [0]}, version=2, transaction_version=2),  # not above the producer's
    mark(P(0), 1, {TOPIC: [0]}, version=2, transaction_version=2),
    mark(P(0), 1, {TOPIC: [0]}, version=2, transaction_version=2),  # again
    mark(P(0), 1, {TOPIC: [0]}, version=1),
    mark(P(0), 0, {TOPIC: [0]}, version=1),
    mark(P(0), 1, {TOPIC: [0]}, coordinator_epoch=99),
    mark(P(0), 0, {TOPIC: [1]}, False),
    producers({TOPIC: [0, 1]}),
    end("mark", P(0), 0),  # its markers are written although other ones were
    mark_nothing(),
    *versions(lambda version: mark(UNKNOWN_ID, 0, {"__consumer_offsets": [0]}, version=version), 1, 2),
    accepted(offsets(TOPIC, 3, -1), "a coordinator of ours overrules epochs that no coordinator gave out"),
]

LISTING = [
    *begin("list"),
    *(init(f"list-{name}") for name in "abc"),
    send("list-a", P(0), 0),
    send("list-b", P(1), 0),
    end("list-b", P(1), 0),
    state("list-b", "CompleteCommit"),
    *versions(lambda version: list_transactions("list-", version=version), 0, 2),
    *(list_transactions("list-", [each]) for each in ("Ongoing", "Empty", "CompleteCommit", "Dead", "ongoing")),
    list_transactions("list-", ["Ongoing", "NoSuchState", "Empty", ""]),
    list_transactions("list-", ["NoSuchState"], version=0),
    list_transactions("list-", producer=P(1)),
    list_transactions("list-", producer=UNKNOWN_ID),
    *(list_transactions("list-", duration_filter=each) for each in (-1, -5, 3_600_000)),
    *(
        list_transactions("list-", transactional_id_pattern=pattern)
        for pattern in ("list-[ab]", "list-", "", ".*-c", "(", "[z", "(?=x)", "nothing", None)
    ),
    describe("list-a", "list-b", "list-c", "list-d"),
    accepted(describe("list-a", "list-a"), "an id that is named twice has one row"),
    producers({TOPIC: [0]}),
    end("list-a", P(0), 0, False),
    state("list-a", "CompleteAbort"),
]

LEVELS = [
    *begin("level"),
    set_level(3),
    set_level(-1),
    set_level(2),
    set_level(1),
    set_level(1, 9),
    set_level(1, 2, "no.such.feature"),
    set_level(1, 2, dry=True),
    *(
        step
        for level in (1, 0)
        for step in (
            set_level(level, 2),
            init("level"),
            add("level", P(0), 1 - level, DATA),
            send("level", P(0), 1 - level, version=11),
            add_offsets("level", P(0), 1 - level),
            commit_offsets("level", P(0), 1 - level, version=4),
            end("level", P(0), 1 - level, version=4),
            state("level", "CompleteCommit"),
            # Nothing of the second generation: at level 0 Apache Kafka cannot store it, and the id is busy for ever.
        )
    ),
    set_level(1),
    set_level(2),
]
