"""The test suites that come inside other clients' packages, run against a fresh broker: `make peers`.

| module | what |
|---|---|
| `__main__` | the command: runs suites, prints passed, failed, known, and fails on unknown failures |
| `franz_go`, `sarama`, `kafka_go`, `watermill_kafka` | one suite each, Go: its source, broker and command |
| `kafka_python`, `kombu`, `rskafka` | likewise, Python and Rust |
| `go_transactions` | a suite of ours: transactions of franz-go and sarama, the Go module in `transactions/` |
| `go_security` | another: TLS, certificates and SASL of franz-go, right and wrong, the Go module in `security/` |
| `go_modules` | Go modules: fetch, copy and test them; the output of `go test -json` |
| `python_packages` | source distributions: fetch, unpack and test them; pytest's report |
| `crates` | crates: fetch, copy and test them; the output of `cargo test` |
| `sources` | changes of a suite's copied source |
| `toxiproxy` | the proxy of sarama's suite |
| `outcomes` | the result of each test, and whether it was expected |
| `suite` | the interface of them all |
| `processes` | commands with a time limit |

`known_failures.toml` lists tests that are expected to fail, or cannot be run, each with a reason.

A suite is fetched by the ordinary client of its registry into `.peers/`, in one pinned version, and copied before it is
changed or run. A test that fails and is not known is run once more, since machines may stall.
"""
