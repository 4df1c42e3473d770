"""The members of one group, simulated: real consumers, the broker's group state machines, faults, in virtual time.

| module | what |
|---|---|
| `faults` | delayed, lost and refused requests, members that are cut off, a coordinator that moves, topics that grow |
| `invariants` | what must hold at any time, and in the end |
| `seeds` | seeds in processes of a pool |
| `simulation` | one run for a seed; `python -m tests.client.simulation --seeds 1000` for many |
| `test_simulation`, `test_mutants` | the first seeds; defects of a member, which seeds find |
| `user` | a program with a consumer: random calls, a listener that is slow, fails or unsubscribes, cancellations |
"""
