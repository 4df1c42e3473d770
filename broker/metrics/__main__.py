"""Write `docs/metrics.md` from the collectors: `python -m broker.metrics` in the project's directory."""

from __future__ import annotations

from pathlib import Path

from odradek.broker.metrics.collectors.docs import PAGE, metrics_page


def main() -> None:
    Path(PAGE).write_text(metrics_page(), encoding="utf-8")
    print(PAGE)


if __name__ == "__main__":
    main()
