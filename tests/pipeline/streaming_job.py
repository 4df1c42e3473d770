"""A streaming query as a separate process, which tests kill.

```sh
python -m tests.pipeline.streaming_job BROKER TOPIC DIR --master URL
```
It copies a topic into Parquet files under DIR, in small batches, until it is killed; with `--drain`, until it has read
all existing records. A task that fails is retried three times, because tests also kill workers.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from odradek.pipeline import session
from tests.pipeline.tables import stream

_CONFIG = {
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.memory": "1g",
    "spark.executor.memory": "512m",
    "spark.ui.enabled": "false",
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("bootstrap")
    parser.add_argument("topic")
    parser.add_argument("directory", type=Path)
    parser.add_argument("--drain", action="store_true")
    parser.add_argument("--master", required=True)
    arguments = parser.parse_args()
    spark = session("streaming job", master=arguments.master, config=_CONFIG)
    options: dict[str, object] = {"subscribe": arguments.topic, "startingOffsets": "earliest"}
    if not arguments.drain:
        options["maxOffsetsPerTrigger"] = 500
    writer = stream(spark, "broker", arguments.bootstrap, **options).writeStream.format("parquet")
    writer = writer.option("path", str(arguments.directory / "out"))
    writer = writer.option("checkpointLocation", str(arguments.directory / "checkpoint"))
    if arguments.drain:
        writer = writer.trigger(availableNow=True)
    writer.start().awaitTermination()


if __name__ == "__main__":
    main()
