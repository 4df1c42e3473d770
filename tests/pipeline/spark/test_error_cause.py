from __future__ import annotations

from odradek.pipeline.spark.error_cause import cause_of


def test_the_cause_is_the_line_without_the_traceback() -> None:
    error = RuntimeError(
        "From the worker: Traceback (most recent call last):\n  File x\nValueError: d/t-0/0.log is cut off\n\tat"
    )
    assert cause_of(error) == "ValueError: d/t-0/0.log is cut off"
    assert cause_of(RuntimeError("[PATH_NOT_FOUND] no such path\n  more")) == "[PATH_NOT_FOUND] no such path"
    assert cause_of(RuntimeError("An error occurred while calling o1.x.\n: a.B: it broke\n\tat")) == "a.B: it broke"
    assert cause_of(RuntimeError()) == "RuntimeError"
