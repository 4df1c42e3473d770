"""The network side of the broker: the only package that uses sockets. It imports nothing of the handlers.

| module | what |
|---|---|
| `server`, `listener`, `accepting` | all listeners; one listener; accepting connections |
| `reserved_ports` | the ports of a broker that is stopped and starts again |
| `connections`, `connection`, `connection_state` | the open connections; one of them; its states |
| `closing` | how a broker that stops closes them |
| `sasl_gate` | what a client may ask before it has authenticated |
| `dispatch`, `routes`, `request_log` | from a request to its handler and back; the route of each API version |
| `answer_memory` | the bytes of large answers, and their limits |
| `connection_limits` | how many connections there may be, and how fast they may be made |
| `flow_control`, `page_cache` | unsent bytes; whether a file is in memory |
| `transport`, `tls_transport` | the seam to sockets, and its plain side; its side with TLS |
| `tls_stream` | a socket and OpenSSL's state of its connection |
| `tls_handshakes` | from an accepted socket to a connection with TLS |
| `failures`, `limited_log` | the log line of a connection that fails; lines that clients cause, limited |
| `http`, `http_sockets`, `http_host` | HTTP: connections; listening sockets; the allowed Host headers |
| `http_guard` | the clients that may read the metrics: those with a certificate or the token |
| `status`, `probes` | its pages `/healthz`, `/readyz` and `/metrics`; what the first two ask |
| `exposition` | the text of `/metrics`, family by family |
"""
