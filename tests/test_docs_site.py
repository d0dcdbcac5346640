"""The site of the documentation: built strictly, with every public name, and whole without a network."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

import soar_dlm
from soar_dlm import errors
from tests.browser import CHROMIUM, opened_browser

for package in ("material", "mkdocstrings_handlers.python"):
    pytest.importorskip(package, reason="mkdocs-material or mkdocstrings is not installed")

ROOT = Path(__file__).parents[1]
REPOSITORY = "https://github.com/soar-dlm/soar-dlm"
PAGES = ("tasks.md", "index.md", "results/example.html")
"""What the site of the tests of links has."""


class Parts(HTMLParser):
    """What a page names, links to and loads, and the classes of its elements."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.marks: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.names.add(found.get("id", ""))
        self.marks.update(found.get("class", "").split(), [found.get("data-md-component", "")])
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        elif tag == "link":
            self.loads.append(found["href"])
        self.loads += [found[name] for name in ("src", "srcset", "data", "poster") if name in found]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    made = subprocess.run(command, cwd=ROOT, env=quiet, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    assert "WARNING" not in made.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Parts]:
    """The pages that were made from Markdown; others, such as a report, are copied as they are."""
    texts = {path: path.read_text(encoding="utf-8") for path in site.rglob("*.html")}
    return {path: Parts(text) for path, text in texts.items() if '<meta name="generator" content="mkdocs' in text}


def test_every_page_is_there(site: Path, pages: dict[Path, Parts]) -> None:
    made = {path.relative_to(site).as_posix() for path in pages}
    sources = [path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")]
    for source in sources:
        if source.parts[0] != "results" or "results" not in source.parts[2:]:
            assert source.with_suffix(".html").as_posix().replace("README", "index") in made
    assert {"index.html", "changelog.html", "contributing.html"} <= made


def test_every_link_leads_somewhere(pages: dict[Path, Parts]) -> None:
    followed = 0
    for page, parts in pages.items():
        for link in parts.links:
            address = urlsplit(link)
            if address.scheme:
                continue
            target = (page.parent / unquote(address.path)).resolve() if address.path else page
            assert target.is_file(), f"{page.name} links to {link}"
            if target in pages and address.fragment:
                assert unquote(address.fragment) in pages[target].names, f"{page.name} links to {link}"
            followed += 1
    assert followed > 1000


def test_nothing_comes_from_a_network(site: Path, pages: dict[Path, Parts]) -> None:
    for page, parts in pages.items():
        for load in parts.loads:
            assert not urlsplit(load).scheme, f"{page.name} loads {load}"
            assert not load.startswith("//"), f"{page.name} loads {load}"
            assert (page.parent / load).is_file(), f"{page.name} loads {load}, which is not there"
        # For these the theme's script asks a server: a diagram's renderer, and the stars of a repository.
        assert parts.marks.isdisjoint(["mermaid", "source"])
    for style in site.rglob("*.css"):
        assert not re.search(r"(url\(|@import)\s*['\"]?(https?:)?//", style.read_text(encoding="utf-8"))


def test_what_the_site_lacks_is_linked_in_the_repository(site: Path, pages: dict[Path, Parts]) -> None:
    assert f"{REPOSITORY}/blob/main/examples/notebook.ipynb" in pages[site / "decoding.html"].links
    assert f"{REPOSITORY}/tree/main/docs/results/arena" in pages[site / "arena.html"].links
    assert "arena.html" in pages[site / "index.html"].links


def test_the_site_has_an_example_of_a_report(site: Path, pages: dict[Path, Parts]) -> None:
    report = (site / "results" / "example.html").read_text(encoding="utf-8")
    assert "4 methods on 80 problems of mini-code, mini-gsm." in report
    assert "id='figure-pareto-mini-gsm'" in report
    for page in ("evaluation.html", "figures.html"):
        assert "results/example.html" in pages[site / page].links
    assert f"{REPOSITORY}/tree/main/docs/results/figures" in pages[site / "figures.html"].links
    assert "figures/pareto-mini-gsm.csv" in pages[site / "figures.html"].links


def test_the_search_knows_guides_docstrings_and_changes(site: Path) -> None:
    text = (site / "search" / "search_index.js").read_text(encoding="utf-8")
    index = json.loads(text.removeprefix("var __index = "))
    places = {entry["location"]: entry["text"] for entry in index["docs"]}
    assert "McNemar" in places["arena.html#what-the-columns-mean"]
    assert "parallel when sure" in places["reference/strategies.html#soar_dlm.Soar"]
    assert "Greedy" in places["changelog.html#decoding"]


def test_roles_are_links_options_have_their_help_and_trees_keep_their_lines(site: Path) -> None:
    searches = (site / "reference" / "searches.html").read_text(encoding="utf-8")
    assert re.search(r'href="#soar_dlm.Strategy.propose"[^>]*><code>propose</code></a>', searches)
    texts = (site / "reference" / "texts.html").read_text(encoding="utf-8")
    assert "<p>Length of the canvas.</p>" in texts
    drawn = (site / "reference" / "errors.html").read_text(encoding="utf-8")
    assert re.search(r"<code>SoarError\n├── SettingsError", drawn)
    for page in (site / "reference").glob("*.html"):
        assert not re.search(r":(class|data|func|meth|mod):", page.read_text(encoding="utf-8"))


def test_every_public_name_is_in_the_reference() -> None:
    sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "reference").glob("*.md"))
    shown = re.findall(r"^::: soar_dlm\.(\S+)$", sources, re.MULTILINE)
    assert len(shown) == len(set(shown))
    assert {name for name in shown if "." not in name} - {"errors"} == set(soar_dlm.__all__)
    kinds = {name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, Exception)}
    assert {f"errors.{name}" for name in kinds - {"SoarError"}} <= set(shown)


def hook() -> ModuleType:
    spec = importlib.util.spec_from_file_location("site_links", ROOT / "docs" / "site" / "links.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("[a](../../tasks.md#kinds)", "[a](../../tasks.md#kinds)"),
        ("![a](../../../README.md)", "![a](../../index.md)"),
        ("[a](../../../LICENSE)", f"[a]({REPOSITORY}/blob/main/LICENSE)"),
        ("[a](../../../src)", f"[a]({REPOSITORY}/tree/main/src)"),
        ("[a](../example)", "[a](../example.html)"),
        ('<source srcset="../../../LICENSE">', f'<source srcset="{REPOSITORY}/blob/main/LICENSE">'),
        ("[a](nowhere.md)", "[a](nowhere.md)"),
        ("[a](https://example.org) [b](#here)", "[a](https://example.org) [b](#here)"),
        ("`[a](../../../src)`", "`[a](../../../src)`"),
        ("```\n[a](../../../src)\n```\n", "```\n[a](../../../src)\n```\n"),
    ],
)
def test_links_are_followed_from_where_a_file_is_in_the_repository(written: str, read: str) -> None:
    known = {name: SimpleNamespace(inclusion=SimpleNamespace(is_excluded=bool)) for name in PAGES}
    page: Any = SimpleNamespace(file=SimpleNamespace(src_uri="results/eval/README.md"), meta={})
    config = SimpleNamespace(extra={"repository": REPOSITORY})
    files = SimpleNamespace(get_file_from_path=known.get)
    assert hook().on_page_markdown(written, page, config, files) == read


@pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium")
def test_the_search_works_from_a_folder(site: Path) -> None:
    pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    asked: list[str] = []
    complaints: list[str] = []
    with opened_browser() as browser:
        page = browser.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda message: complaints.append(message.text))
        page.goto(f"file://{site}/index.html")
        page.click("input.md-search__input")
        page.keyboard.type("McNemar")
        page.click(".md-search-result__link >> nth=0")
        page.wait_for_url("**/*.html?h=*")
        assert "McNemar" in page.inner_text("article")
    assert complaints == []
    assert all(urlsplit(url).scheme in ("file", "data", "about") for url in asked)
