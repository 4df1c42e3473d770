"""The pipeline compared with Spark's tuned connector for Kafka: in one session, in turns, on one broker.

```
python -m benchmarks.pipeline [PART …] [--rounds N] [--records N …] [--conf NAME=VALUE …]
                              [--output benchmarks/pipeline.md]
```

| contender | what |
|---|---|
| official | `format("kafka")`, with `max.poll.records` and fetches raised, and `fetch.max.wait.ms` lowered |
| broker | `format("broker")` |
| klog | `format("klog")` on the broker's directory, without the broker |

| part | what it measures |
|---|---|
| `read` | records of 100 B, not compressed, to nowhere, into sums, into Parquet |
| `codecs` | lz4 and zstd to nowhere |
| `write` | keyed and idempotent, not compressed and lz4 |
| `stream` | a topic to Parquet in three micro-batches |
| `values` | records of 1 KiB, a fifth as many: to nowhere, and written |
| `latency` | a record from topic to topic through an idle stream, and what the idle stream costs |
| `worker` | the stages of a Python worker without Spark |

Each query runs with several numbers of records (`--records`): the slope between them is the cost of a record, and what
remains at zero records is the cost of a query. In a round every contender reads every size, so other load affects all
of them. The first rounds do not count, because Java still compiles. Queries that write files have three rounds at most.
All parts take about 17 minutes on two quiet processors.

Processor time is the first figure, because other load changes the elapsed time more. It is that of all processes
together; `usage` divides it.

`results` stores the newest figures of each part in pipeline.json beside the page, and `report` writes the page from it.

| module | what |
|---|---|
| `__main__` | the command line and the parts |
| `queries` | the topics, and the query of each contender |
| `rounds` | run contenders in turns, and measure them |
| `usage` | processor time by process, including processes that have ended |
| `latency` | a stream from topic to topic, one record at a time |
| `stages` | a Python worker's work, stage by stage |
| `results` | the measured figures, and their file |
| `report` | the page |
"""
