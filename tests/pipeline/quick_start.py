"""Properties of Spark in processes of tests, which run small queries for seconds.

Without code generation and the web interface the Java machine of the taxi example's stream takes half the processor
time: 15 s instead of 31 s.
"""

from __future__ import annotations

from tests.peers.java import FOR_SECONDS

PROPERTIES = {
    "spark.driver.extraJavaOptions": FOR_SECONDS,
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.ui.enabled": "false",
}

QUICK_START = [part for name, value in PROPERTIES.items() for part in ("--conf", f"{name}={value}")]
"""Arguments of a job."""
