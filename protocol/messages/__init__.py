"""The messages: a module for each API with its request and its response; one class holds all versions.

The docstring of a module says what the API is for and which node sends it. The docstring of a class gives its history:
what each version changed, and the KIP with the reason (Kafka Improvement Proposals,
cwiki.apache.org/confluence/display/KAFKA). "Flexible" versions have compact lengths and tagged fields (KIP-482). Kafka
4.0 dropped the versions that are missing at the lower end (KIP-896). `python -m protocol show fetch` prints what each
version changed, `show fetch 12` one version.

Fields that many messages have:

| field | meaning |
|---|---|
| `error_code` | an `ErrorCode`, 0 for none: of its own row, or of the whole request at the top level |
| `error_message` | for people; None without an error, and often with one |
| `throttle_time_ms` | the client exceeded a quota and must send nothing for this time; 0: it did not |
| `leader_epoch` | number of a partition's leadership, higher with each election; -1 unknown, or not to be checked |
| `topic_id` | all zero without an id: the topic has only its name |
| `…_authorized_operations` | bit n: operation n as numbered in CreateAcls is allowed; -2147483648: not requested |
| `rack` | None if the broker has none |

Brokers once delayed the response to a throttled client by the throttle time. From the version that each history gives
for KIP-219 on the broker responds at once, and the client itself waits.
"""
