"""A broker in a test suite, and what tests of the broker use in place of a real seam.

| module | what |
|---|---|
| `plugin` | fixtures for pytest |
| `threaded` | a broker on a thread, for tests without an event loop |
| `clock` | a clock that the test moves |
"""
