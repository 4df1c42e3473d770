"""What goes wrong when a configuration is loaded."""

from __future__ import annotations

from collections.abc import Sequence


class ConfigError(ValueError):
    """The configuration cannot be used. `problems` has one sentence for each thing that is wrong, never only the first.

    It ends the start of a broker and never reaches a client; what a client configures fails with `KafkaError`.
    """

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = list(problems)
