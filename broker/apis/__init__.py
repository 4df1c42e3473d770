"""The Kafka APIs that this broker serves.

| module | what |
|---|---|
| `table` | one row for each served API, and the loading of its handler |
| `read_only` | the table of a broker that only reads its log directory |
| `not_served` | the APIs of Apache Kafka that are not served, each with the reason |
| `docs` | `docs/apis.md`, generated from both tables; `python -m broker.apis` writes it |
"""
