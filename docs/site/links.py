"""The pages of the site are the Markdown files of the repository, which must read well on their own.

1. :data:`PAGES` are made from files outside docs/. The first has no other page in its section, so it lists none.
2. A link is followed from where its file is in the repository. If the site has what it leads to, it leads there;
   otherwise to the repository on the web. For a folder, ``name``, the site may have a page made from it,
   ``name.html``. A link that leads nowhere stays as it is, and the strict build refuses it.
3. A short cell of a table stays on one line, so that figures and their intervals are not torn apart.
4. A site without an address has no use for a sitemap, nor for the page that a server shows for a wrong one.
"""

from __future__ import annotations

import re
from pathlib import Path
from posixpath import dirname, join, normpath, relpath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
PAGES = {"index.md": "README.md", "changelog.md": "CHANGELOG.md", "contributing.md": "CONTRIBUTING.md"}
CODE = r"(?P<code>^```.*?^```|`[^`]*`)"
PATH = r"""(?:(?<=\]\()|(?<=src=")|(?<=srcset="))(?![a-z]+:|#)(?P<path>[^)\s#"]+)"""
LINK = re.compile(f"{CODE}|{PATH}", re.DOTALL | re.MULTILINE)
SHORT = 32
"""Letters that fit into a cell without a break."""


def on_config(config: MkDocsConfig) -> None:
    config.theme.static_templates.clear()


def on_files(files: Files, config: MkDocsConfig) -> None:
    for page, source in PAGES.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / source)))


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    own = page.file.src_uri
    folder = dirname(PAGES.get(own, f"docs/{own}"))
    pages = {source: name for name, source in PAGES.items()}
    if own == "index.md":
        page.meta["hide"] = ["navigation"]

    def followed(found: re.Match[str]) -> str:
        if found["code"]:
            return found[0]
        target = normpath(join(folder, found["path"]))
        name = pages.get(target, target.removeprefix("docs/"))
        for place in (name, f"{name}.html"):
            file = files.get_file_from_path(place)
            if file is not None and not file.inclusion.is_excluded():
                return relpath(place, dirname(own) or ".")
        if (ROOT / target).exists():
            kind = "tree" if (ROOT / target).is_dir() else "blob"
            return f"{config.extra['repository']}/{kind}/main/{target}"
        return found[0]

    return LINK.sub(followed, markdown)


def on_page_content(html: str, **_: object) -> str:
    return re.sub(r"<td>(.*?)</td>", _cell, html)


def _cell(found: re.Match[str]) -> str:
    short = len(re.sub(r"<[^>]*>", "", found[1])) <= SHORT
    return f'<td class="short">{found[1]}</td>' if short else found[0]
