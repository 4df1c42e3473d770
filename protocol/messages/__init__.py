"""The messages: one module per API, request and response together, every version in one class.

A module says what its API is for and who sends it to whom. A class says how the message grew: what came with which
version, and the KIP that tells why (Kafka Improvement Proposals, cwiki.apache.org/confluence/display/KAFKA). "Flexible"
versions have compact lengths and tagged fields (KIP-482); versions missing at the lower end are those that Kafka 4.0
dropped (KIP-896). `python -m protocol show fetch` prints what changed with each version, `show fetch 12` one of them.

What recurs in many messages is explained here alone:

| field | meaning |
|---|---|
| `error_code` | an `ErrorCode`, 0 for none: of its own row, or at the top of the request as a whole |
| `error_message` | for people; None without an error, and often with one |
| `throttle_time_ms` | the client exceeded a quota and shall send nothing for so long; 0: it did not |
| `leader_epoch` | number of a partition's leadership, more with each election; -1 unknown, or not to be checked |
| `topic_id` | all zero where there is none: the topic is known by its name |
| `…_authorized_operations` | bit n: operation n as numbered in CreateAcls is allowed; -2147483648: not asked for |
| `rack` | None where the broker was given none |

The broker used to hold the response of a throttled client back for the throttle time. From the version that each
history gives for KIP-219 it answers at once, and the client waits by itself.
"""
