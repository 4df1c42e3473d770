"""Write the files that are generated from the tables: `python -m broker.config` in the project's directory."""

from __future__ import annotations

from pathlib import Path

from odradek.broker.config.docs import files


def main() -> None:
    for name, text in files().items():
        path = Path(name)
        path.parent.mkdir(exist_ok=True)
        path.write_text(text(), encoding="utf-8")
        print(name)


if __name__ == "__main__":
    main()
