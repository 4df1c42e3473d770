"""The bundled consumer and Java's under the same schedule of joins, pauses, kills, changes of topics and restarts.

`python -m benchmarks.rebalances` prints a table; docs/client.md describes its columns. A run is one broker, one group,
a steady producer of numbered records, and one schedule; the runs of both clients with one seed go on at the same time.

| module | what |
|---|---|
| `__main__` | the command: runs the seeds, prints the table |
| `schedule` | the steps of a seed |
| `run` | one run: carries out the steps, collects the events |
| `members` | the processes of members |
| `member` | the program of our members, which prints events; `Member.java` is that of the others |
| `columns` | the columns of the table, from the events |

With `--output` the events stay: an event is a line of JSON with `at`, in seconds since the epoch, in a file of its
member or in `schedule.jsonl`. Warnings that a client logs are in `MEMBER.err`.

| event | of | fields |
|---|---|---|
| `assigned`, `revoking`, `revoked`, `lost` | a member | `partitions` |
| `read` | a member | `partition`, `numbers` |
| `committed` | a member | `partitions` |
| `error` | a member | `error`: an exception that the program saw |
| `closed` | a member | |
| `ready` | a member | it is connected |
| `started`, `paused`, `resumed`, `killed` | the schedule | |
| `crashed` | the schedule | `error`: the member ended without being asked |
| `created` | the schedule | `partitions` |
| `begun`, `over` | the schedule | the time between them is evaluated |

The listener is called between `revoking` and `revoked`: a member then still holds the partitions, but does not read
them.
"""
