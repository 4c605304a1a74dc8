"""Looks at a built site: whatever a page needs or links to is there, and nothing that a browser
would fetch by itself comes from elsewhere. Standard library only.
"""

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# Attributes by which a browser fetches something by itself; all other links are for readers.
FETCHED = {"src", "srcset", "poster", "data"}
FROM_STYLES = re.compile(r"""(?:url\(\s*|@import\s+)["']?((?:https?:)?//[^"')\s]+)""")


class Page(HTMLParser):
    """The addresses on one page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.fetched: set[str] = set()
        self.linked: set[str] = set()
        self.ids: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if value is None:
                continue
            if name == "id":
                self.ids.add(value)
            elif name in FETCHED or (tag == "link" and name == "href"):
                self.fetched.add(value)
            elif name == "href":
                self.linked.add(value)


def faults(site: Path) -> Iterator[str]:
    """What is wrong with the site, a line each."""
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}
    for path, page in pages.items():
        shown = path.relative_to(site)
        for address in sorted(page.fetched | page.linked):
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                if address in page.fetched and parts.scheme != "data":
                    yield f"{shown}: fetches {address}"
            elif path.name != "404.html":  # whose links are those of a server's top
                yield from _missing(site, path, parts.path, unquote(parts.fragment), pages)
    for style in (*site.rglob("*.css"), *site.rglob("*.svg")):
        for address in FROM_STYLES.findall(style.read_text(encoding="utf-8")):
            yield f"{style.relative_to(site)}: fetches {address}"


def _missing(
    site: Path, page: Path, target: str, anchor: str, pages: dict[Path, Page]
) -> Iterator[str]:
    place = (page.parent / unquote(target)).resolve() if target else page
    if place.is_dir():
        place /= "index.html"
    if not place.exists():
        yield f"{page.relative_to(site)}: {target} is not there"
    elif anchor and place in pages and anchor not in pages[place].ids:
        yield f"{page.relative_to(site)}: {target}#{anchor} is not there"


def main(site: Path) -> int:
    """The exit status: 1 when there is a fault."""
    if not (site / "index.html").is_file():
        print(f"there is no site at {site}", file=sys.stderr)
        return 1
    found = list(faults(site.resolve()))
    for line in found:
        print(line, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
