"""The Kafka APIs that this broker serves.

| module | what |
|---|---|
| `table` | one row for each served API: versions, handler, traits |
| `rights_table` | one row for each served API: the rights that it needs |
| `not_served` | the APIs of Apache Kafka that are not served, each with the reason |
| `docs` | `docs/apis.md`, generated from both tables; `python -m broker.apis` writes it |
"""
