"""Write the page that is made from the tables of APIs: `python -m broker.apis` in the project's directory."""

from __future__ import annotations

from pathlib import Path

from odradek.broker.apis.docs import PAGE, apis_page


def main() -> None:
    Path(PAGE).write_text(apis_page(), encoding="utf-8")
    print(PAGE)


if __name__ == "__main__":
    main()
