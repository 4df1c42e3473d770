"""The transactions of a producer (KIP-98, KIP-360, KIP-447, KIP-890). Only a transactional producer loads them.

```
Producer.transaction() ─► Transaction ─► TransactionManager ─► TransactionRequests ─► coordinators
                                          │        ▲  │
                      Producer.flush ◄────┘        │  └─► TransactionState (the table)
                                     Sender, Delivery: partitions to add, failed batches
```

| module | what |
|---|---|
| `transaction` | `Transaction`: what the user enters with `async with` |
| `transaction_manager` | begins and ends transactions, adds partitions and offsets to them |
| `transaction_state` | the states of a transactional producer: a table without I/O |
| `transaction_requests` | requests to coordinators, with their retries |
"""
