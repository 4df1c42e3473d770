"""Kafka's own command-line tools. Each run starts a Java machine, which takes one to two seconds: batch the work."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.peers import maven
from tests.peers.availability import program

HERE = Path(__file__).parent
KAFKA_VERSION = "4.3.1"

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
TRANSACTIONAL_MESSAGE_COPIER = "org.apache.kafka.tools.TransactionalMessageCopier"
API_VERSIONS_COMMAND = "org.apache.kafka.tools.BrokerApiVersionsCommand"

# A tool lives for seconds: the first compiler and the plain collector start it soonest.
FOR_SECONDS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
QUICK_START = (*FOR_SECONDS.split(), "-Xshare:auto", "-Xmx256m")


def classpath() -> str:
    """Kafka's jars and our log settings; fetches the jars once a checkout."""
    return f"{maven.libraries(f'kafka-{KAFKA_VERSION}', HERE / 'pom.xml')}/*:{HERE}"


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
