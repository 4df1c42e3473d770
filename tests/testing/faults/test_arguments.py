from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from odradek.broker.broker import Broker
from odradek.broker.testing.faults import Faults
from odradek.protocol.errors import ErrorCode


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda f: f.fail("Prduce", "NOT_COORDINATOR"), "there is no API 'Prduce'; did you mean Produce"),
        (lambda f: f.fail("produce", "NOT_COORDINATOR"), "did you mean Produce"),
        (lambda f: f.fail("xyz", "NOT_COORDINATOR"), "there is no API 'xyz'$"),
        (lambda f: f.fail("ShareFetch", "NOT_COORDINATOR"), "does not serve the API ShareFetch"),
        (lambda f: f.fail("Fetch", "NOT_LEADER"), "no error 'NOT_LEADER'; did you mean NOT_LEADER_OR_FOLLOWER"),
        (lambda f: f.fail("Fetch", "NONE"), "NONE is no error"),
        (lambda f: f.fail("Fetch", ErrorCode.NONE), "NONE is no error"),
        (lambda f: f.fail("Heartbeat", "NOT_COORDINATOR", topic="t"), "Heartbeat has no errors of single topics"),
        (lambda f: f.fail("ConsumerGroupHeartbeat", "NOT_COORDINATOR", topic="t"), "no errors of single topics"),
        (lambda f: f.fail("CreateTopics", "NOT_CONTROLLER", topic="t", partition=0), "no errors of single partitions"),
        (lambda f: f.delay("Heartbeat", 1, partition=0), "Heartbeat names no topics"),
        (lambda f: f.delay("Metadata", 1, partition=0), "Metadata names no partitions"),
        (lambda f: f.delay("Fetch", -1), "seconds must be a number that is not negative"),
        (lambda f: f.delay("Fetch", float("nan")), "seconds must be"),
        (lambda f: f.delay("Fetch", True), "seconds must be"),
        (lambda f: f.drop("Fetch", "afterwards"), "when is 'afterwards', not one of before, after; did you mean after"),
        (lambda f: f.pause(topic="t"), "topic= and partition= need the name of an API"),
        (lambda f: f.throttle("Fetch", 0), "ms must be a whole number of at least 1"),
        (lambda f: f.throttle("Fetch", 1 << 31), "ms must be a whole number of at most 2147483647, not 2147483648"),
        (lambda f: f.delay("Fetch", 1 << 1100), "seconds must be a number that is not negative"),
        (lambda f: f.throttle("WriteTxnMarkers", 5), "WriteTxnMarkers has no throttle time"),
        (lambda f: f.fail("Fetch", "NOT_COORDINATOR", topic=""), "topic must be a string that is not empty"),
        (lambda f: f.fail("Fetch", "NOT_COORDINATOR", partition=-1), "partition must be a whole number of at least 0"),
        (lambda f: f.fail("Fetch", "NOT_COORDINATOR", times=0), "times must be a whole number of at least 1"),
        (lambda f: f.fail("Fetch", "NOT_COORDINATOR", probability=0), "probability must be above 0 and at most 1"),
        (lambda f: f.fail("Fetch", "NOT_COORDINATOR", probability=1.5), "probability must be above 0"),
        (lambda f: f.disk_full(-1), "after must be a whole number of at least 0"),
        (lambda f: f.disk_full(0, path=""), "path must be a string that is not empty"),
        (lambda f: f.io_error(on="writ"), "on is 'writ', not one of write, sync, read; did you mean write"),
        (lambda f: f.io_error(nth=0), "nth must be a whole number of at least 1"),
        (lambda f: f.io_error(error="EOI"), "no error 'EOI' of the operating system; did you mean"),
        (lambda f: f.io_error(error=0), "the operating system has no error 0"),
        (lambda f: f.slow_disk(-1), "ms must be a number that is not negative"),
        (lambda f: f.slow_disk(1, on="reed"), "did you mean read"),
    ],
)
def test_a_wrong_argument_is_refused_with_the_nearest_right_one(
    tmp_path: Path, make: Callable[[Faults], object], sentence: str
) -> None:
    faults = Faults(Broker({"log.dirs": str(tmp_path)}))
    with pytest.raises(ValueError, match=sentence):
        make(faults)
    assert faults.rules == ()
