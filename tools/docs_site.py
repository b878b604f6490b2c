"""A hook of mkdocs: makes docs/ a site of the same files that a code host shows.

Pages are written for a code host, where links lead out of docs/ and a list may follow a sentence
without a blank line. Here such links are pointed at copies of what they name: README, CONTRIBUTING
and CHANGELOG become pages of the site, any other file is copied as text below files/. Headings get
the anchors that check_links.py knows. Everything else is left to mkdocs: a link that leads nowhere
inside docs/, or to a file that is not there, fails the build as it would without this file.

In the navigation of mkdocs.yml a folder with a slash at its end stands for all pages of that folder
that are not named elsewhere, and for a section of each folder inside that has an index page.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any, Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

import check_links

ROOT: Final = Path(__file__).parent.parent
DOCS: Final = ROOT / "docs"
PROJECT: Final = {
    "README.md": "project/bigfleet.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "CHANGELOG.md": "project/changelog.md",
}
"""Pages of the site whose source lies at the root."""
SOURCES: Final = {page: name for name, page in PROJECT.items()}

INTERRUPTS: Final = re.compile(r"[-*] |1\. |\|")
"""What may follow a sentence at once on a code host: a list or a table."""
FETCHED: Final = re.compile(
    r"<(?:script|img|iframe|source|link(?![^>]*rel=\"(?:canonical|prev|next)\"))\b"
    r"[^>]*(?:src|href)=[\"']?(?:https?:)?//[^>]*>"
)
"""What a browser would fetch from another server to show a page."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Give headings the anchors that links are checked against, and fill the navigation."""
    headings = config.mdx_configs.setdefault("toc", {})
    headings["slugify"] = lambda heading, _separator: check_links.anchor(heading)
    config.nav = _filled(config.nav, set(_named(config.nav)))
    return config


def _named(nav: Any) -> Iterator[str]:
    if isinstance(nav, str):
        yield nav
    for item in nav.values() if isinstance(nav, dict) else nav if isinstance(nav, list) else ():
        yield from _named(item)


def _filled(nav: Any, named: set[str]) -> Any:
    if isinstance(nav, dict):
        return {title: _filled(item, named) for title, item in nav.items()}
    if not isinstance(nav, list):
        return nav
    filled: list[Any] = []
    for item in nav:
        if isinstance(item, str) and item.endswith("/"):
            pages = (
                path.relative_to(DOCS).as_posix() for path in sorted((DOCS / item).glob("*.md"))
            )
            filled += [page for page in pages if page not in named]
            filled += [_section(index, named) for index in sorted((DOCS / item).glob("*/index.md"))]
        else:
            filled.append(_filled(item, named))
    return filled


def _section(index: Path, named: set[str]) -> dict[str, list[str]]:
    """The pages of a folder, its index first, under the folder's name."""
    rest = (path for path in sorted(index.parent.glob("*.md")) if path != index)
    pages = [path.relative_to(DOCS).as_posix() for path in (index, *rest)]
    return {index.parent.name: [page for page in pages if page not in named]}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what lies outside of docs/ and is linked from inside."""
    for name, page in PROJECT.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / name)))
    pages = [(page.src_uri, page.content_string) for page in files.documentation_pages()]
    outside = {target for uri, text in pages for target in _outside(uri, text)}
    for target in sorted(outside):
        files.append(File.generated(config, _copy(target), abs_src_path=str(ROOT / target)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point links out of docs/ at the copies, and set lists and tables apart."""
    uri = page.file.src_uri
    lines: list[str] = []
    prose = {number for number, _ in check_links.prose(markdown)}
    for number, line in enumerate(markdown.splitlines(), start=1):
        if number not in prose:
            lines.append(line)
            continue
        if INTERRUPTS.match(line) and _is_sentence(lines):
            lines.append("")
        lines.append(check_links.LINK.sub(lambda match: _pointed(uri, match), line))
    return "\n".join(lines) + "\n"


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Refuse a page that needs a network to be read."""
    found = FETCHED.search(output)
    if found:
        raise PluginError(f"{page.file.src_uri} would be shown with {found.group(0)}")
    return output


def _is_sentence(before: list[str]) -> bool:
    return bool(before and before[-1].strip()) and not re.match(
        r"\s|[-*] |1\. |\||#|```", before[-1]
    )


def _pointed(uri: str, match: re.Match[str]) -> str:
    target = match.group(1)
    name, mark, fragment = target.partition("#")
    where = _leads_to(uri, name)
    if where is None:
        return match.group(0)
    if where in PROJECT:
        there = PROJECT[where]
    elif (ROOT / where).is_file() and not where.startswith("docs/"):
        there, mark, fragment = _copy(where), "", ""
    elif (ROOT / where).is_dir():
        # A folder has no page: its name is left, without a link.
        return re.sub(r"^!?\[([^\]]*)\].*$", r"\1", match.group(0), flags=re.DOTALL)
    else:
        there = where.removeprefix("docs/")
    relative = os.path.relpath(there, PurePosixPath(uri).parent)
    return match.group(0).replace(f"({target}", f"({relative}{mark}{fragment}", 1)


def _leads_to(uri: str, name: str) -> str | None:
    """The path from the root that a link of a page means; None where mkdocs needs no help."""
    if not name or check_links.EXTERNAL.match(name):
        return None
    home = PurePosixPath(SOURCES[uri]) if uri in SOURCES else PurePosixPath("docs") / uri
    path = os.path.normpath(home.parent / name)
    inside = path.startswith("docs/") and uri not in SOURCES
    return None if inside else path


def _outside(uri: str, text: str) -> Iterator[str]:
    """Files to copy: those a page links to that are neither in docs/ nor pages of the site."""
    for _, line in check_links.prose(text):
        for target in check_links.LINK.findall(check_links.INLINE_CODE.sub("", line)):
            path = _leads_to(uri, target.partition("#")[0])
            ours = path is not None and path not in PROJECT and not path.startswith("docs/")
            if path and ours and (ROOT / path).is_file():
                yield path


def _copy(path: str) -> str:
    return f"files/{path}.txt"
