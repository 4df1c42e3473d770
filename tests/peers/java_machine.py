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
from functools import reduce
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import py4j
from py4j import java_gateway, protocol
from py4j.java_gateway import GatewayParameters, JavaGateway
from py4j.protocol import Py4JJavaError

from tests.peers import java
from tests.peers.availability import unavailable

_UTILS = "org.apache.kafka.common.utils"
_EXIT = "exit with status {}"


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
        # PySpark's session of an earlier test has replaced it by one that asks Spark's machine about every exception.
        self._replaced = java_gateway.get_return_value
        java_gateway.get_return_value = protocol.get_return_value
        self._throw_on_exit()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        java_gateway.get_return_value = self._replaced
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
        """Run the `main` of a tool and return its output. Fails if the tool exits with a status that is not 0."""
        system = self.named("System")
        before, printed = system.out, self.new("java.io.ByteArrayOutputStream")
        system.setOut(self.new("java.io.PrintStream", printed))
        try:
            self.named(main_class).main(self.strings(*arguments))
        except Py4JJavaError as error:
            if error.java_exception.getMessage() != _EXIT.format(0):
                raise
        finally:
            system.setOut(before)
        return str(printed.toString())

    def _throw_on_exit(self) -> None:
        """Replace the procedure by which Kafka's tools end the machine: it throws, with the status in the message."""
        class_named = self.named("Class").forName
        handles, method_type = self.named("java.lang.invoke.MethodHandles"), self.named("java.lang.invoke.MethodType")
        string, integer = class_named("java.lang.String"), self.named("Integer").TYPE
        void, exception = self.named("Void").TYPE, class_named("java.lang.IllegalStateException")
        lookup = handles.publicLookup()
        status = lookup.findVirtual(string, "concat", method_type.methodType(string, string)).bindTo(_EXIT.format(""))
        steps = (
            lookup.findStatic(class_named("java.lang.Integer"), "toString", method_type.methodType(string, integer)),
            status,
            lookup.findConstructor(exception, method_type.methodType(void, string)),
            handles.throwException(void, exception),
        )
        throw = reduce(handles.filterReturnValue, steps)
        throw = handles.dropArguments(throw, 1, [string])
        procedure = class_named(f"{_UTILS}.Exit$Procedure")
        proxy = self.named("java.lang.invoke.MethodHandleProxies").asInterfaceInstance(procedure, throw)
        self.named(f"{_UTILS}.Exit").setExitProcedure(proxy)


def _jar() -> Path:
    """The Java half of py4j, which is in PySpark."""
    places = [*Path(py4j.__file__).parents[1].glob("pyspark/jars/py4j-*.jar")]
    if not places:
        unavailable("py4j's jar is missing: install PySpark")
    return places[0]
