"""A comparison of Odradek with Apache Kafka: the same work on one machine, in turns, in one run.

```
python -m benchmarks.side_by_side [GROUP | GROUP.PART …] [--quick] [--rounds N] [--seconds S] [--output DIRECTORY]
python -m benchmarks.side_by_side --redraw
```

Both brokers run all the time and work in turns: a round of one, a round of the other. So other load, the temperature
and the page cache affect both, and the compared medians are of the same minutes. Absolute numbers are those of this
machine; ratios are valid elsewhere, too.

| group | what it measures |
|---|---|
| `raw` | the broker alone, under a load generator that costs very little (`load.c`) |
| `official` | common producers and consumers: Java's performance tools, librdkafka |
| `clients` | our client, aiokafka and kafka-python, on both brokers |
| `life` | starting, memory, many partitions, idle connections |
| `growth` | the speed with more partitions, connections and data |
| `transactions` | transactions of one and many producers, both versions of the protocol; a copy job |
| `replication` | three brokers on each side: writes that all replicas have |
| `workers` | two workers on one machine beside one process, and both beside Apache Kafka |
| `security` | TLS, handshakes, SCRAM and 10,000 access rules, with the same properties on both sides |

`contest` starts the brokers and runs the rounds, `results` has the numbers and the goals, `report` writes RESULTS.md
with the pictures of `plots`, `readme` the tables of README.md. Each group has parts (its `PARTS`), which can be
measured separately: results.json keeps the newest rows of each, with date and commit. `--redraw` writes the pages and
pictures again from it.

Kafka runs with the settings of its own scripts (1 GiB heap, G1), with one node and no replication except in
`replication`, and with the same properties where both have them.
"""
