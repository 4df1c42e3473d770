"""The error of an invalid configuration."""

from __future__ import annotations

from collections.abc import Sequence


class ConfigError(ValueError):
    """The configuration is invalid. `problems` has a sentence for each error in it, not only for the first.

    It ends the start of a broker and never reaches a client: alterations by clients raise `KafkaError`.
    """

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = list(problems)
