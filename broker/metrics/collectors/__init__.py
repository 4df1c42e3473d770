"""Collectors: the broker's counters and states as series for Prometheus.

| module | what |
|---|---|
| `dialects` | the collectors of each dialect of `metrics.dialects`; begin here |
| `jmx_collector`, `jmx_series` | names of Strimzi's rules for Kafka's JMX beans; the tables of simple series |
| `transaction_series`, `connection_series` | the series of transactions; of connections and authentications |
| `transaction_series` | the series of transactions |
| `quota_series` | the series of client quotas |
| `summaries` | summaries of durations |
| `exporter_collector` | names of kafka_exporter: brokers, topics, partitions |
| `group_collector` | groups, committed offsets and lag, under the names of several exporters |
| `process_io` | bytes that this process read from and wrote to disks |
| `gauge_values` | the values that are read at a scrape instead of counted |
| `broker_gauges` | reads those values from a broker |
| `unclean_elections` | counts unclean elections, from images |
| `group_lag` | the lag of groups in seconds |
| `docs` | generates `docs/metrics.md` |
| `dashboards` | public dashboards and alerts, with the series that each uses |
"""
