"""Odradek and Apache Kafka side by side: the same work on one machine, in turns, in one run.

```
python -m benchmarks.side_by_side [GROUP | GROUP.PART …] [--quick] [--rounds N] [--seconds S] [--output DIRECTORY]
python -m benchmarks.side_by_side --redraw
```

Both brokers are alive all the time and work in turns: a round of one, a round of the other. So a neighbour, a
temperature or a full page cache meets both, and what is compared is medians of the same minutes. Absolute numbers are
this machine's; the ratios are what carries over.

| group | what it measures |
|---|---|
| `raw` | the broker alone, under a load that costs next to nothing (`load.c`) |
| `official` | the producers and consumers that people use: Java's performance tools, librdkafka |
| `clients` | our client, aiokafka and kafka-python, on both brokers |
| `life` | starting, memory, many partitions, idle connections |
| `growth` | what becomes of speed with partitions, connections and size |

`contest` starts the brokers and takes the turns, `results` holds the numbers and the goals, `report` writes RESULTS.md
with the pictures of `plots`, `readme` the tables of README.md. Each group has parts (its `PARTS`), which can be
measured alone and at different times: results.json keeps the newest rows of each, with date and commit. `--redraw`
makes the pages and pictures of it again.

Kafka runs as its own scripts start it (1 GiB heap, G1), with one node and no replication, and with the same properties
where both know them.
"""
