"""A broker for test suites, its snapshots, and the simulated clock of the broker's own tests.

| module | what |
|---|---|
| `plugin` | the earlier name of `odradek.testing.plugin` |
| `threaded` | a broker on a thread, for tests without an event loop |
| `loop_thread`, `broker_loop` | its thread, and the event loop on it |
| `unfrozen_time` | time that goes on while a test has frozen its own |
| `movable_clock`, `deadlines` | a clock that goes on, and that a test moves forward; its timers |
| `blocking_clock` | the same, for tests without an event loop |
| `members` | the end of the sessions of chosen members |
| `faults` | requests that fail, and a disk that is broken, on purpose |
| `snapshots` | states of a running broker that it can return to |
| `clock` | a clock that a test sets |
"""
