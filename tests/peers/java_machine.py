"""One Java machine with Kafka's own classes, whose objects Python uses through py4j.

A tool or client in a machine of its own takes a second to start; here many tests share one. py4j comes with PySpark.

```
with JavaMachine() as machine:
    producer = machine.new("org.apache.kafka.clients.producer.KafkaProducer", {"bootstrap.servers": ...}, ...)
    printed = machine.run(java.DUMP_LOG_SEGMENTS, "--files", ...)
```
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import py4j
from py4j.java_gateway import GatewayParameters, JavaGateway, java_import

from tests.peers import java
from tests.peers.availability import unavailable


class JavaMachine:
    """A process that ends with the context, or when this process ends."""

    def __enter__(self) -> Self:
        command = java.command("py4j.GatewayServer", "--enable-auth", "--die-on-broken-pipe", "0", libraries=[_jar()])
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        port, token = (self._process.stdout.readline().strip() for _ in range(2))
        self._gateway = JavaGateway(
            gateway_parameters=GatewayParameters(port=int(port), auth_token=token, auto_convert=True)
        )
        java_import(self._gateway.jvm, "java.util.*")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._gateway.shutdown()
        self._process.kill()  # Kafka's clients may have left threads behind
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()

    def named(self, name: str) -> Any:
        """A class, for its constructors, constants and static methods."""
        found = self._gateway.jvm
        for part in name.split("."):
            found = getattr(found, part)
        return found

    def new(self, name: str, *arguments: Any) -> Any:
        """An object of a class; lists and dictionaries become Java's."""
        return self.named(name)(*arguments)

    def strings(self, *values: str) -> Any:
        """An array of strings."""
        array = self._gateway.new_array(self._gateway.jvm.String, len(values))
        for index, value in enumerate(values):
            array[index] = value
        return array

    def run(self, main_class: str, *arguments: str) -> str:
        """Run the `main` of a tool and return its output. The tool must succeed: another exit ends the machine."""
        system = self.named("System")
        before, printed = system.out, self.new("java.io.ByteArrayOutputStream")
        system.setOut(self.new("java.io.PrintStream", printed))
        try:
            self.named(main_class).main(self.strings(*arguments))
        finally:
            system.setOut(before)
        return str(printed.toString())


def _jar() -> Path:
    """The Java half of py4j, which is in PySpark."""
    places = [*Path(py4j.__file__).parents[1].glob("pyspark/jars/py4j-*.jar")]
    if not places:
        unavailable("py4j's jar is missing: install PySpark")
    return places[0]
