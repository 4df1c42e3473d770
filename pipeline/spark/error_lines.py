"""Errors that Spark's own classes log, in one line each, with the cause.

Spark logs a task that fails two or three times, with the stacks of Java and of the Python worker: a hundred lines. A
session of ours gives log4j's console another layout, which keeps the first line and the cause, and a filter that omits
the repetitions:

```
WARN TaskSetManager: Lost task 0.0 in stage 0.0 (TID 0) (localhost executor driver): …: ValueError: the value is bad
ERROR TaskSetManager: Task 0 in stage 0.0 failed 1 times; aborting job
```
| text of a log line, with its exception | printed |
|---|---|
| traceback of Python | the last line of the last traceback |
| exception of Java with its stack | its first line, and that of the last `Caused by:` |
| any other, also of several lines | unchanged |

It changes nothing but Spark's own configuration of log4j, and not if the logger of this module is at DEBUG when the
session is created: then the stacks are printed. Executors on other machines have logs of their own.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOG = logging.getLogger(__name__)

_OF_SPARK: Final = "org/apache/spark/log4j2-defaults.properties"  # the place of Spark's own configuration
_CONSOLE: Final = "console"  # its appender
# Java's regular expressions. Braces would end an argument of the layout.
_TRACEBACK: Final = r"Traceback \(most recent call last\):"
_REPLACED: Final = (
    (rf"(?s)(?:[\w.$]+Exception: )?{_TRACEBACK}(?:.*{_TRACEBACK})?.*?\n(?![ \t\n])([^\n]*).*", "$1"),
    (r"(?s)\s*\n.*\nCaused by: ([^\n]*).*", ": $1"),
    (r"(?s)\s*\n(?:.*\n)?\s+at .*", ""),
)
_REPETITIONS: Final = (
    r"(?s)Exception in task .*|Aborting task|Abort(?:ing|ed) commit for partition .*|Job: .*, Task: .* aborted\."
    r"|Data source write support .* (?:is aborting|aborted)\."
)
"""Messages around the loss of a task of this process, which TaskSetManager logs in any case."""


def shorten_errors(spark: SparkSession) -> None:
    """Print the errors of Spark's classes in this driver in one line each, from now on."""
    if _LOG.isEnabledFor(logging.DEBUG):
        return
    jvm: Any = spark.sparkContext._jvm  # noqa: SLF001 - PySpark has no interface for log4j's layouts
    log4j = jvm.org.apache.logging.log4j
    context = log4j.LogManager.getContext(False)
    configuration = context.getConfiguration()
    if not str(configuration.getConfigurationSource().getLocation()).endswith(_OF_SPARK):
        return
    core = log4j.core
    pattern = core.layout.PatternLayout.newBuilder().withPattern(_pattern()).withConfiguration(configuration)
    layout = pattern.withAlwaysWriteExceptions(False).build()  # the pattern contains them
    root = configuration.getRootLogger()
    before = root.getAppenders().get(_CONSOLE)
    builder = core.appender.ConsoleAppender.newBuilder()
    builder.setName(_CONSOLE).setLayout(layout).setConfiguration(configuration)
    builder.setTarget(before.getTarget())
    builder.setFilter(before.getFilter())  # the level of PySpark's session
    appender = builder.build()
    result = core.Filter.Result
    appender.addFilter(core.filter.RegexFilter.createFilter(_REPETITIONS, None, False, result.DENY, result.NEUTRAL))
    appender.start()
    root.removeAppender(_CONSOLE)
    root.addAppender(appender, None, None)
    context.updateLoggers()


def _pattern() -> str:
    text = "%m%notEmpty{: %ex}"
    for expression, replacement in _REPLACED:
        text = f"%replace{{{text}}}{{{expression}}}{{{replacement}}}"
    return f"%d{{yy/MM/dd HH:mm:ss}} %p %c{{1}}: {text}%n"
