"""`python -m broker.apis`, run in the project's directory: write `docs/apis.md` from the tables of APIs."""

from __future__ import annotations

from pathlib import Path

from odradek.broker.apis.docs import PAGE, apis_page


def main() -> None:
    Path(PAGE).write_text(apis_page(), encoding="utf-8")
    print(PAGE)


if __name__ == "__main__":
    main()
