"""A checker of transactions in the manner of Jepsen's Kafka workload: clients, faults, a history, and its analysis.

```
Workload ─► producers with transactions ─┐
            readers, read_committed ─────┼─► History ─► find_anomalies ─► what a reader may never see
Nemesis ──► kill -9, pause ──────────────┘
```

| module | what |
|---|---|
| `history` | what clients did and saw |
| `analysis` | the anomalies in a history; pure, and tested with fabricated histories |
| `producers` | producers of both versions of the protocol, which note the outcomes of their transactions |
| `late_requests` | a producer that sends requests of older epochs over another connection |
| `nemesis` | the faults, of one server or of three brokers on etcd |
| `workload` | the clients and the faults of one seeded run |
| `mutants` | brokers with a defect each, for tests of the checker |
| `__main__` | `python -m tests.checker --seeds 20`: many runs, and the anomalies that they found |
| `test_analysis`, `test_checker`, `test_mutants` | tests of the analysis, a short run, and the mutants |
"""
