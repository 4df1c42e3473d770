"""The test suites that come inside other clients' packages, run against a fresh broker: `make peers`.

| module | what |
|---|---|
| `__main__` | the command: runs suites, prints passed, failed, known, and fails on what is not known |
| `franz_go`, `sarama`, `kafka_go`, `kafka_python` | a suite each: what is fetched, what broker it needs, how it runs |
| `go_modules` | Go modules: fetched, copied, tested, and what `go test -json` printed |
| `toxiproxy` | the proxy that sarama's suite speaks through |
| `outcomes` | what became of each test, and whether that was expected |
| `suite` | what the four have in common |
| `processes` | commands with a bound in time |

`known_failures.toml` lists tests that are expected to fail, or cannot be run, each with the reason.

A suite is fetched by the ordinary client of its registry into `.peers/`, in one pinned version, and copied before it is
changed or run. A test that fails and is not known is run once more, since machines stall.
"""
