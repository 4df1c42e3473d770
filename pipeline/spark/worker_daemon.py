"""PySpark's daemon of Python workers, which ends a worker quietly when Java has closed its socket.

Java closes the socket of a worker that was idle for a minute, of all idle workers when the session stops, and of a
task whose remaining rows are not needed. The worker then writes its last words to the closed socket. Over TCP the
kernel accepts them; over a Unix socket the write fails, and PySpark's daemon prints the traceback on standard error.

In sessions on this machine it replaces `pyspark.daemon`: by the setting `spark.python.daemon.module` for tasks, and by
the workers' interpreter (`local_workers`) for planning. Elsewhere a daemon cannot import the project before a task has
brought it.
"""

from __future__ import annotations

import socket

from pyspark import daemon

_serve = daemon.worker


def serve(sock: socket.socket, authenticated: bool) -> int:
    """Run a task of the worker; return 0 if it may run another one.

    Errors of a task never get here: PySpark sends them to Java. So a ConnectionError is that of Java's socket.
    """
    try:
        return int(_serve(sock, authenticated))
    except ConnectionError:
        return 1


if __name__ == "__main__":
    daemon.worker = serve
    daemon.manager()
