"""Several processes on one machine, each a broker with its own node id, ports and log directories (`num.workers`).

```
supervisor ── starts, restarts, stops ──► worker 0   node.id          port        <log.dir>
    │                                     worker 1   node.id + 1000   port + 1    <log.dir>/worker.1
    │                                     worker 2   node.id + 2000   port + 2    <log.dir>/worker.2
    └── without etcd: owns the metadata store in the first log directory, and serves it to them
```

The supervisor serves no client and knows no protocol. What the workers agree on goes through the metadata store, as
between machines. `odradek.broker.config.workers` has the node ids, ports and directories.

| module | what |
|---|---|
| `supervisor` | the processes of all workers, from the start to the stop |
| `first_processes` | the first process of each worker, forked |
| `worker_process` | one worker: its process, and another one by exec after it has ended |
| `link` | the socket between supervisor and worker: begin, started, refused; the end of either |
| `owned_store` | the metadata store that the supervisor owns |
| `layout` | which worker a partition belongs to: a pure function of the image |
| `spread` | moves partitions to their workers, or finishes a move that was interrupted |
| `machine`, `stored` | what a move is computed from: the directories of all workers, locked; the metadata |
| `checks` | the reasons for which nothing may be moved |
| `planning`, `plan` | makes the plan of a move; the plan and its file, which make it safe to interrupt |
| `directory_changes`, `store_changes` | the two parts of a plan |
| `command` | `odradek workers` |
"""
