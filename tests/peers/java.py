"""Kafka's own command-line tools. Each run starts a Java machine, which takes one to two seconds: batch the work."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from tests.peers.availability import PEERS, installing, program, unavailable

HERE = Path(__file__).parent
KAFKA_VERSION = "4.3.1"
_ATTEMPTS = 2  # a repository that is far away may fail to answer once

CONFIG_COMMAND = "kafka.admin.ConfigCommand"
CONSUMER_GROUP_COMMAND = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
CONSOLE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
CONSOLE_PRODUCER = "org.apache.kafka.tools.ConsoleProducer"
DELETE_RECORDS_COMMAND = "org.apache.kafka.tools.DeleteRecordsCommand"
DUMP_LOG_SEGMENTS = "org.apache.kafka.tools.DumpLogSegments"
GET_OFFSET_SHELL = "org.apache.kafka.tools.GetOffsetShell"
JMX_TOOL = "org.apache.kafka.tools.JmxTool"
LEADER_ELECTION_COMMAND = "org.apache.kafka.tools.LeaderElectionCommand"
LOG_DIRS_COMMAND = "org.apache.kafka.tools.LogDirsCommand"
PRODUCER_PERFORMANCE = "org.apache.kafka.tools.ProducerPerformance"
REASSIGN_PARTITIONS_COMMAND = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
TOPIC_COMMAND = "org.apache.kafka.tools.TopicCommand"
API_VERSIONS_COMMAND = "org.apache.kafka.tools.BrokerApiVersionsCommand"

# A tool lives for seconds: the first compiler and the plain collector start it soonest.
QUICK_START = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-Xmx256m")


def classpath() -> str:
    """Kafka's jars and our log settings; fetches the jars once a checkout."""
    libraries = PEERS / f"kafka-{KAFKA_VERSION}"
    if not libraries.is_dir():
        maven = program("mvn", "maven")
        with installing():
            complaint = "" if libraries.is_dir() else _fetch(maven, libraries)
        if complaint:
            unavailable(f"Maven could not fetch Kafka's tools: {complaint}")
    return f"{libraries}/*:{HERE}"


@cache
def _fetch(maven: str, libraries: Path) -> str:
    """Fetch the jars; returns what went wrong, or nothing. Remembered, so that a failure costs its time only once."""
    with tempfile.TemporaryDirectory(dir=PEERS) as unfinished:
        command = [maven, "-q", "-B", "-U", "-f", str(HERE / "pom.xml"), "dependency:copy-dependencies"]
        for _ in range(_ATTEMPTS):
            done = subprocess.run(
                [*command, f"-DoutputDirectory={unfinished}/jars"],
                capture_output=True, text=True, timeout=600, check=False, stdin=subprocess.DEVNULL,
            )  # fmt: skip
            if done.returncode == 0:
                break
        else:
            return (done.stdout + done.stderr).strip()[-2000:]
        shutil.move(f"{unfinished}/jars", libraries)
    return ""


def command(main_class: str, *arguments: str, options: Sequence[str] = QUICK_START) -> list[str]:
    return [program("java", "default-jre-headless"), *options, "-cp", classpath(), main_class, *arguments]


def run(
    main_class: str, *arguments: str, stdin: str = "", timeout: float = 60, check: bool = True
) -> subprocess.CompletedProcess[str]:
    """Run a tool to its end. With `check`, fails with what it printed when its exit status is not 0."""
    done = subprocess.run(
        command(main_class, *arguments), input=stdin, capture_output=True, text=True, timeout=timeout, check=False
    )
    if check and done.returncode:
        raise AssertionError(f"{main_class} exited with {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done
