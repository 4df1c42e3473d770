"""The options of `format("broker")`, parsed and checked; `klog.options` shares most of them.

| module | what |
|---|---|
| `broker_options` | options of reading and writing, and the errors for options that are not supported |
| `security_options` | the options of TLS and SASL |
| `bounds` | the offsets or times at which reading starts and ends |
| `log_filter` | the filters of a query that both formats apply before they read |
| `table_options` | the options of a table that CREATE TABLE has put into a catalog |
| `option_values` | parsing of booleans, choices, numbers and durations |
"""
