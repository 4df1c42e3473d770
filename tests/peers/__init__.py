"""What others wrote, to test against: where it is, how it gets here, how it is started.

| module | what |
|---|---|
| `server` | a server process of either kind, and its end: `Server` |
| `odradek` | our broker, as `python -m broker` |
| `apache` | a real Apache Kafka 4.3.1 (KRaft, one node), to prove that a test expects Kafka's behaviour and not ours |
| `java` | Kafka's own tools of the same release, from Maven Central into `.peers/` |
| `connector` | Spark's connector for Kafka, likewise |
| `maven` | how jars get there |
| `kcat` | kcat, from the distribution's packages |
| `clients` | one face over confluent-kafka, aiokafka, kafka-python and the bundled client |
| `group_member` | a member of a group, as a process of its own |
| `topics`, `series` | a test's own topics; the metrics of a server |
| `availability` | installing what is missing |
| `suites` | the suites inside other clients' packages, for `make peers` |

A peer that is missing is installed. Where that is impossible (no root, no network) the test is skipped at a desk and
fails in CI, where a skip would hide that nothing was shown.
"""
