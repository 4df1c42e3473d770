"""What a broker tells of itself at `/metrics`.

```
hot paths ─► Metrics (counts) ────────────────────┐
                                                  ├─► collectors ─► registry ─► `odradek.broker.server.exposition`
partitions, groups ─► BrokerGauges (looked up) ───┘   names, labels
```

| module | what |
|---|---|
| `metrics`, `histogram` | what is counted while the broker works, and how long things took |
| `gauge_values`, `broker_gauges` | what is looked up when somebody scrapes, and who looks it up |
| `group_lag` | how many seconds groups are behind: read from the log every few seconds, not at a scrape |
| `dialects` | which collectors there are, by `metrics.dialects` |
| `jmx_collector`, `jmx_series` | series under the names that Strimzi's rules give Kafka's JMX beans |
| `exporter_collector`, `group_collector` | series under the names of kafka_exporter and kafka-lag-exporter |
| `process_io` | what this process has read from disks and written to them |
| `docs`, `dashboards` | `docs/metrics.md`, and which series the dashboards of others ask for |
"""
