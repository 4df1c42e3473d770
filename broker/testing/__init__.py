"""A broker for test suites, and the simulated clock of the broker's own tests.

| module | what |
|---|---|
| `plugin` | fixtures for pytest |
| `threaded` | a broker on a thread, for tests without an event loop |
| `clock` | a clock that a test sets |
"""
