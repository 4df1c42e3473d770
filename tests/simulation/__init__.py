"""A simulation of a cluster: three brokers, their clients and the metadata store, in virtual time, with faults.

```
seed ─► schedule of faults ─► nemesis ─┐
                                       ▼
clients ◄── network ──► brokers (the real ones) ──► network ──► metadata store
   │                       │ └─► disks that lose power
   └─► history             └─► invariants: what must hold between them at any moment
```

Everything of the broker between its seams is the real code: a request of a client passes through its connections, its
dispatch and its handlers into its log. The seams are simulated: clock, randomness, files, threads, network, and the
metadata store beyond a network. One seed has one run, in any process: begin with `simulation`.

| module | what |
|---|---|
| `world` | virtual time, chance, and the turns of the processes |
| `node_loop` | the event loop of one process |
| `hosts` | a machine: on or off, its process, its clocks |
| `network` | ways between machines: delays, cuts, late delivery |
| `streams` | TCP connections over it |
| `threads` | the threads of a disk |
| `store` | the metadata store and its clients |
| `cluster` | three brokers, and what can be done to them |
| `nemesis` | the faults of a run |
| `client`, `workload` | the clients of a run |
| `remakes` | a client that makes a topic again and again |
| `members` | the members of a group, of one of both protocols |
| `owned_group` | what the members were told and committed |
| `transactions` | transactional producers, and a reader of committed records |
| `transaction_history` | the transactions, and what was read of them |
| `history` | what the clients did and saw |
| `state` | the metadata, and the rules for its changes |
| `invariants` | the rules between the brokers |
| `simulation` | one run |
| `seeds` | failing seeds: repeated, shrunk, kept |
| `test_owned_group`, `test_transaction_history` | the checks of `owned_group` and `transaction_history` |
| `test_names_made_again` | a topic made again, and brokers that stop at each change of the disk |
| `test_simulation` | some seeds in continuous integration; `make simulate` runs more |

`tests/mutants` puts defects into the brokers, which these runs must find.
"""
