"""Software of others to test with: where it is, how it is installed and started.

| module | what |
|---|---|
| `server` | a server process of either kind: `Server` |
| `odradek` | our broker, as `python -m broker` |
| `apache` | a real Apache Kafka 4.3.1 (KRaft, one node), to prove that tests expect Kafka's behaviour |
| `etcd` | members of etcd, which is built from Go modules into `.peers/` |
| `java` | Kafka's own tools of the same release, from Maven Central into `.peers/` |
| `java_machine` | one Java machine whose objects tests use, for clients and tools |
| `streams` | an application of Kafka Streams, and its processes |
| `holding_proxy` | a proxy between clients and a broker that delays one request |
| `connector` | Spark's connector for Kafka, likewise |
| `maven` | fetches the jars |
| `kcat` | kcat, from the distribution's packages |
| `steady_load` | clients that produce and consume over TLS until they are told to stop |
| `clients` | one interface to confluent-kafka, aiokafka, kafka-python and the bundled client |
| `transactional` | one interface to the transactions of confluent-kafka, aiokafka, kafka-python and Java |
| `environments` | environments with packages that this one cannot have, as Quix Streams with another confluent-kafka |
| `sasl_orders` | requests in any order, and the answers by Kafka's states |
| `sasl_scripts` | what clients may do while they authenticate |
| `secured_server` | a server of either kind with TLS, SASL and its authorizer |
| `features` | finalized features of a server |
| `group_member` | a member of a group, as a process of its own |
| `certificates` | certificate authorities, certificates of servers and clients, key and trust stores of them |
| `secured` | a server of either kind with a TLS listener |
| `topics`, `series` | a test's own topics; the metrics of a server |
| `availability` | installing what is missing |
| `suites` | the suites inside other clients' packages, for `make peers` |

A missing peer is installed. If that is impossible (no root, no network), the test is skipped on a developer's machine
and fails in CI, where a skip would hide that nothing was tested.
"""
