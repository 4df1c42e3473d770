"""The documentation as a site: the settings of Sphinx. `make site` writes it to build/site.

The pages are the Markdown files of the repository as they are, so Sphinx's source directory is the repository, and a
link means the same on the site as in the repository. docs/README.md is the index: each of its sections becomes a part
of the navigation, with the pages that it links to, in their order. In the repository a link to a page reads as its file
name; on the site it reads as the page's title, or the heading's.

A link to a page, a file or a heading that does not exist is a warning, and with a warning `make site` fails. Links to
other sites are checked by `make linkcheck` only, which needs a network.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.builders.html import StandaloneHTMLBuilder

_REPOSITORY = Path(__file__).resolve().parents[1]

project = "Odradek"
release = tomllib.loads((_REPOSITORY / "pyproject.toml").read_text())["project"]["version"]

extensions = ["myst_parser"]
root_doc = "docs/README"
include_patterns = ["*.md", "docs/*.md", "benchmarks/RESULTS.md", "benchmarks/pipeline.md"]
exclude_patterns = [
    ".*",
    "broker",
    "build",
    "client",
    "data*",
    "odradek",
    "pipeline",
    "protocol",
    "tests",
]  # not walked
nitpicky = True

highlight_language = "text"  # of blocks without a language; Sphinx would colour them as Python

myst_heading_anchors = 4  # the depth to which a heading has the anchor that GitHub gives it

html_theme = "furo"
html_title = f"Odradek {release}"
html_copy_source = False
html_show_copyright = False
html_static_path = ["_static"]
html_css_files = ["site.css"]

linkcheck_ignore = [r"https?://(localhost|127\.0\.0\.1)\b"]


class SiteBuilder(StandaloneHTMLBuilder):
    """Sphinx's builder of HTML, but the page of the index is index.html at the top of the site."""

    def get_target_uri(self, docname: str, typ: str | None = None) -> str:
        """Return the address of a page, relative to the top of the site."""
        return super().get_target_uri("index" if docname == root_doc else docname, typ)

    def get_output_path(self, page_name: str, /) -> Path:
        """Return the file of a page."""
        return super().get_output_path("index" if page_name == root_doc else page_name)


def navigation(index: str) -> str:
    """Return a hidden table of contents for each section of `index`; the pages before the first have no caption."""
    before, *sections = re.split(r"^## (.+)\n", index, flags=re.MULTILINE)
    parts = [("", before), *zip(sections[::2], sections[1::2], strict=True)]
    return "\n".join(
        "\n".join(
            ["", "```{toctree}", ":hidden:", f":caption: {caption}" if caption else ":maxdepth: 1", *pages, "```"]
        )
        for caption, text in parts
        if (pages := re.findall(r"\]\(([^)#:]+\.md)\)", text))
    )


def _add_navigation(_app: Sphinx, docname: str, source: list[str]) -> None:
    if docname == root_doc:
        source[0] += navigation(source[0])


def _use_titles(_app: Sphinx, doctree: nodes.document) -> None:
    """Clear the texts of links that are file names: an empty link gets the title of its page or heading."""
    for link in doctree.findall(pending_xref):
        if re.fullmatch(r"[\w/-]+\.md", link.astext()):
            link["refexplicit"] = False
            link.clear()


def _break_names(
    _app: Sphinx, _page: str, _template: str, context: dict[str, object], _doctree: nodes.document | None
) -> None:
    """Allow a line to end after the dots and underscores of a name, as `log.retention.ms` in a narrow column."""
    if "body" in context:
        context["body"] = re.sub(
            r'(?<=<span class="pre">)[^<]+(?=</span>)',
            lambda name: re.sub(r"(?<=[._])(?=\w)", "<wbr>", name[0]),
            str(context["body"]),
        )


def setup(app: Sphinx) -> None:
    """Register what the settings cannot express; Sphinx calls this."""
    app.add_builder(SiteBuilder, override=True)
    app.connect("source-read", _add_navigation)
    app.connect("doctree-read", _use_titles)
    app.connect("html-page-context", _break_names)
