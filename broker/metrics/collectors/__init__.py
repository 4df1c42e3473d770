"""Collectors: the broker's counts and states as series for Prometheus.

| module | what |
|---|---|
| `broker_gauges` | what a scrape looks up in a broker, because it is not counted anywhere: states, sizes, offsets |
| `dashboards` | dashboards and alerts that others made for Kafka, and the series of ours that each asks for |
| `dialects` | which series a scrape returns, by `metrics.dialects`: each dialect has the names that certain |
| `docs` | `docs/metrics.md`, made of what the collectors return: every series with its labels, meaning and dashboards |
| `exporter_collector` | brokers, topics and partitions under the names of kafka_exporter |
| `gauge_values` | what a scrape finds by looking: log sizes, partition counts, sizes of groups. What is counted |
| `group_collector` | groups, their committed offsets and lag, under the names that dashboards for Kafka expect |
| `group_lag` | how old the first record is that a group has not read, for the metric of lag in seconds |
| `jmx_collector` | the counts of a broker as Prometheus reads them: names and labels as Strimzi's rules for |
| `jmx_series` | the series of `jmx_collector` that are one number each, or a number for each topic, partition or API |
| `process_io` | what this process has read from and written to disks, as Kafka's LinuxIoMetricsCollector tells |
"""
