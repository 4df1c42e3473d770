"""The documentation as a site: `make site` builds it without a warning, and its links lead somewhere."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

pytestmark = pytest.mark.process

REPOSITORY = Path(__file__).resolve().parents[1]


def sphinx(repository: Path, output: Path) -> subprocess.CompletedProcess[str]:
    """Run the command of `make site` in a repository, with another directory for its output."""
    recipe = re.search(r"^site:.*\n\t\$\(BIN\)/sphinx-build (.*)$", (REPOSITORY / "Makefile").read_text(), re.MULTILINE)
    assert recipe is not None
    arguments = [word.replace("build/", f"{output}/") for word in recipe[1].split()]
    return subprocess.run(
        [sys.executable, "-m", "sphinx", *arguments],
        cwd=repository, capture_output=True, text=True, timeout=200, check=False,
    )  # fmt: skip


class Page(HTMLParser):
    """The links and anchors of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.anchors: set[str] = set()
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" and value:
                self.anchors.add(value)
            elif name in ("href", "src") and value is not None:
                self.links.add(value)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("build")
    done = sphinx(REPOSITORY, output)
    assert (done.returncode, done.stderr) == (0, "")
    return output / "site"


def test_the_site_has_every_page_and_begins_with_the_index(site: Path) -> None:
    pages = {f"docs/{path.stem}.html" for path in (REPOSITORY / "docs").glob("*.md") if path.stem != "README"}
    pages |= {f"{name}.html" for name in ("README", "ARCHITECTURE", "CHANGELOG", "CONTRIBUTING")}
    assert {name for name in pages if not (site / name).is_file()} == set()
    links = Page(site / "index.html").links
    assert pages <= links


def test_every_link_inside_the_site_leads_to_a_page_and_an_anchor_that_exist(site: Path) -> None:
    pages = {path.resolve(): Page(path) for path in site.rglob("*.html")}
    assert len(pages) > 20
    broken = []
    for path, page in pages.items():
        for link in page.links:
            if re.match(r"[a-z]+:|//", link) or not link:
                continue
            target, _, anchor = link.partition("#")
            file = (path.parent / unquote(target.partition("?")[0])).resolve() if target else path
            if not file.is_file() or (anchor and file in pages and unquote(anchor) not in pages[file].anchors):
                broken.append(f"{path.relative_to(site)}: {link}")
    assert broken == []


def test_broken_links_fail_the_build(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    shutil.copy(REPOSITORY / "docs" / "conf.py", tmp_path / "docs")
    shutil.copy(REPOSITORY / "pyproject.toml", tmp_path)
    links = ["no_such_page.md", "README.md#no-such-heading", "../no_such_file.py"]
    (tmp_path / "docs" / "README.md").write_text("# Index\n\n" + "\n".join(f"[a link]({link})" for link in links))
    done = sphinx(tmp_path, tmp_path / "build")
    assert done.returncode == 1
    assert [name for name in ("no_such_page", "no-such-heading", "no_such_file") if name not in done.stderr] == []


def test_a_link_to_a_page_reads_as_its_title(site: Path) -> None:
    links = {text for path in site.rglob("*.html") for text in re.findall(r"<a [^>]*>(.*?)</a>", path.read_text())}
    texts = {re.sub(r"<[^>]+>", "", link) for link in links}
    assert {text for text in texts if text.endswith(".md")} == set()
    assert {"Durability: what survives what", "Consumers of committed records get nothing"} <= texts


def test_a_block_without_a_language_has_no_colours(site: Path) -> None:
    blocks = [block for path in site.rglob("*.html") for block in _plain_blocks(path.read_text())]
    assert len(blocks) > 20
    assert [block for block in blocks if re.search(r'<span class="[a-z]', block)] == []


def _plain_blocks(page: str) -> list[str]:
    """The contents of the blocks whose language Sphinx chose; others have the name of theirs in the class."""
    return re.findall(r'<div class="highlight-(?:default|text) notranslate">(.*?)</div>', page, re.DOTALL)


def test_a_long_name_in_a_table_may_break_at_its_dots_and_underscores(site: Path) -> None:
    assert "log.<wbr>retention.<wbr>ms<" in (site / "docs" / "configuration.html").read_text()
    assert "kafka_<wbr>server_<wbr>brokertopicmetrics_<wbr>" in (site / "docs" / "metrics.html").read_text()
    assert 'href="_static/site.css' in (site / "index.html").read_text()
