"""What pyproject.toml cannot say about the package: how its README reads on an index page.

There the files beside it are not. Where [project.urls] says where the project's files are to be had
(`Source`), the README's links and pictures lead there, to the version that is built; as long as it
says nothing, a link becomes its text and the path in the source distribution, and a picture goes.
"""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?![a-z]+:|#)([^)\s#]+)(#[^)\s]*)?\)")
PICTURE = re.compile(r'<img src="(?![a-z]+:)([^"]+)"[^>]*>\n*')


def description(text: str, source: str | None, version: str) -> str:
    """The README for an index page. `source` is the address of the repository, whose files and
    their bytes are below `blob/` and `raw/`."""
    if source is None:
        return PICTURE.sub("", LINK.sub(_named, text))
    files, raw = (f"{source.rstrip('/')}/{kind}/v{version}/" for kind in ("blob", "raw"))
    text = LINK.sub(rf"[\1]({files}\2\3)", text)
    return PICTURE.sub(lambda found: found[0].replace(found[1], raw + found[1], 1), text)


def _named(link: re.Match[str]) -> str:
    words, path = link[1], link[2]
    return words if words == path else f"{words} (`{path}`)"


if __name__ == "__main__":
    from setuptools import setup

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    setup(
        long_description=description(
            (ROOT / "README.md").read_text(encoding="utf-8"),
            project.get("urls", {}).get("Source"),
            project["version"],
        ),
        long_description_content_type="text/markdown",
    )
