"""Kafka's own command-line tools. Each run starts a Java machine, which takes one to two seconds: batch the work."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from tests.peers import maven
from tests.peers.availability import PEERS, installing, program

HERE = Path(__file__).parent
KAFKA_VERSION = "4.3.1"

ACL_COMMAND = "org.apache.kafka.tools.AclCommand"
CONFIG_COMMAND = "kafka.admin.ConfigCommand"
CONSUMER_GROUP_COMMAND = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
CONSOLE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
CONSOLE_PRODUCER = "org.apache.kafka.tools.ConsoleProducer"
DELETE_RECORDS_COMMAND = "org.apache.kafka.tools.DeleteRecordsCommand"
DUMP_LOG_SEGMENTS = "org.apache.kafka.tools.DumpLogSegments"
FEATURE_COMMAND = "org.apache.kafka.tools.FeatureCommand"
GET_OFFSET_SHELL = "org.apache.kafka.tools.GetOffsetShell"
JMX_TOOL = "org.apache.kafka.tools.JmxTool"
LEADER_ELECTION_COMMAND = "org.apache.kafka.tools.LeaderElectionCommand"
LOG_DIRS_COMMAND = "org.apache.kafka.tools.LogDirsCommand"
PRODUCER_PERFORMANCE = "org.apache.kafka.tools.ProducerPerformance"
REASSIGN_PARTITIONS_COMMAND = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
TOPIC_COMMAND = "org.apache.kafka.tools.TopicCommand"
TRANSACTIONAL_MESSAGE_COPIER = "org.apache.kafka.tools.TransactionalMessageCopier"
TRANSACTIONS_COMMAND = "org.apache.kafka.tools.TransactionsCommand"
API_VERSIONS_COMMAND = "org.apache.kafka.tools.BrokerApiVersionsCommand"

# A tool runs for seconds: the first compiler and the serial collector start fastest.
FOR_SECONDS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
SHARED_CLASSES = "-Xshare:auto"
"""An option of a Java machine, which loads Kafka's classes from the archive that `_archive` makes."""
QUICK_START = (*FOR_SECONDS.split(), SHARED_CLASSES, "-Xmx256m")


def command(
    main_class: str, *arguments: str, options: Sequence[str] = QUICK_START, libraries: Sequence[Path] = ()
) -> list[str]:
    """The command line of a class in Kafka's jars or `libraries`; fetches Kafka's jars once for each checkout."""
    if SHARED_CLASSES in options:
        options = (*options, f"-XX:SharedArchiveFile={_archive()}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off")
    return _command(main_class, *arguments, options=options, libraries=libraries)


def _command(main_class: str, *arguments: str, options: Sequence[str], libraries: Sequence[Path] = ()) -> list[str]:
    """The class path contains only jars: with a directory in it Java does not share classes."""
    return [
        program("java", "default-jre-headless"),
        *options,
        f"-Dlog4j2.configurationFile={HERE / 'log4j2.properties'}",
        "-cp",
        ":".join([f"{maven.libraries(f'kafka-{KAFKA_VERSION}', HERE / 'pom.xml')}/*", *map(str, libraries)]),
        main_class,
        *arguments,
    ]


@cache
def _archive() -> Path:
    """The archive of the classes that a broker loads between its start and its stop, made once a checkout.

    With it a broker starts with 2.9 s of processor time instead of 4.5, a tool with 0.6 instead of 1.1. A Java machine
    that cannot use the archive, because it is of another release or the file is missing, starts without it.
    """
    archive = PEERS / f"kafka-{KAFKA_VERSION}.jsa"
    if archive.exists():
        return archive
    _command("", options=())  # fetches Java and the jars, each under the lock that is taken next
    with installing(), tempfile.TemporaryDirectory(dir=PEERS) as temporary:
        if not archive.exists():
            _make_archive(Path(temporary)).rename(archive)
    return archive


def _make_archive(directory: Path) -> Path:
    from tests.peers import apache

    made = directory / "archive.jsa"
    made.touch()
    broker = apache.prepare(directory / "broker", options=(*FOR_SECONDS.split(), f"-XX:ArchiveClassesAtExit={made}"))
    try:
        broker.start(timeout=120)
    finally:
        broker.stop(timeout=120)  # writes the archive, which takes as long as a start
    return made


def run(
    main_class: str,
    *arguments: str,
    stdin: str = "",
    timeout: float = 120,
    check: bool = True,
    options: Sequence[str] = QUICK_START,
) -> subprocess.CompletedProcess[str]:
    """Run a tool to its end. With `check`, fails with its output if the exit status is not 0."""
    done = subprocess.run(
        command(main_class, *arguments, options=options),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    if check and done.returncode:
        raise AssertionError(f"{main_class} exited with {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done
