"""The metadata store of several processes on one machine: one of them owns a store, and serves it on a Unix socket.

```
worker ─ SharedStore ─┐
worker ─ SharedStore ─┼─ <directory>/<socket, mode 0600> ─ StoreServer ─ any MetadataStore
worker ─ SharedStore ─┘                                     of the owner
```

A connection is one worker. However it ends, the server revokes its sessions at once: the death of a process is seen
when the kernel closes its socket, without waiting for a lease to expire. So a worker is started by exec, not by a fork
that would keep the connections of others open. A round trip adds 0.03 to 0.08 ms to that of the store (SQLite: 0.3 ms).

| module | what |
|---|---|
| `store` | `SharedStore`: the store as a worker sees it; its connection, which is made again when it is lost |
| `watch` | a worker's watch: a bounded queue; resumed at its last revision on another connection |
| `session` | a worker's session: as long as the connection, while pings are answered |
| `connection` | a worker's end of the connection: requests that wait for their answers |
| `server` | `StoreServer`: the socket, and the connections of all workers |
| `served_connection` | the server's end of a connection: requests, watches and sessions of one worker |
| `messages` | what both send, and its encoding |
| `framing` | frames in a stream of bytes, writes in batches, flow control |
| `socket_file` | the file of the socket: its mode, its owner, paths that are longer than a socket's address |
"""
