"""The network side: the only package of the broker that touches sockets.

| module | what |
|---|---|
| `server`, `listener` | all listeners; one listening socket |
| `connections`, `connection` | the open connections; one of them |
| `dispatch`, `routes` | from a request to its handler and back; what a handler is told |
| `flow_control`, `transport`, `page_cache` | bytes on their way to a peer; the seam to sockets; is a file in memory? |
| `http`, `http_sockets`, `http_host` | HTTP: connections; listening sockets; which Host headers are served |
| `status`, `exposition` | its pages: `/healthz`, `/readyz`, and `/metrics`, family by family |
"""
