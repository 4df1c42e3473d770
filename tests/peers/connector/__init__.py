"""Spark's own connector for Kafka (`format("kafka")`), from Maven Central into `.peers/`."""

from __future__ import annotations

from pathlib import Path

from tests.peers import maven

HERE = Path(__file__).parent
VERSION = "4.2.0"


def jars() -> str:
    """The connector's jars, as `spark.jars` wants them; fetches them once a checkout."""
    libraries = maven.libraries(f"spark-connector-{VERSION}", HERE / "pom.xml", HERE / "settings.xml")
    return ",".join(sorted(str(jar) for jar in libraries.glob("*.jar")))
