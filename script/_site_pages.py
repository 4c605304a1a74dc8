"""A hook of mkdocs: which files are the pages of the site, and where they stand.

The pages lie in docs/ itself, beside the config, where mkdocs does not look; README.md,
CHANGELOG.md and CONTRIBUTING.md are at the top, where everybody else looks. Links are rewritten for
that, and nothing else: what a page says is said once.
"""

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parent.parent
FROM_TOP = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
}
# The target of a link or of an image, in markdown and in HTML.
TARGET = re.compile(r'(?<=\]\()[^)#\s]+|(?<=src=")[^"]+|(?<=href=")[^"#]+')


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds everything in docs/, and the pages from the top."""
    for path in sorted((ROOT / "docs").rglob("*")):
        name = path.relative_to(ROOT / "docs").as_posix()
        if path.is_file() and path.name != "mkdocs.yml" and not path.name.startswith("."):
            files.append(_file(name, path, config))
    for source, name in FROM_TOP.items():
        files.append(_file(name, ROOT / source, config))
    # What mkdocs has found by itself was added above, under the name that pages call it by.
    for file in list(files):
        if file.generated_by is None and file.src_dir == config.docs_dir:
            files.remove(file)
    return files


def _file(name: str, path: Path, config: MkDocsConfig) -> File:
    if path.suffix != ".md":
        return File.generated(config, name, abs_src_path=str(path))
    return File.generated(config, name, content=_on_the_site(path, name))


def _on_the_site(path: Path, name: str) -> str:
    """The page's text, with each link that leads elsewhere on the site than in the repository."""
    depth = name.count("/")

    def moved(match: re.Match[str]) -> str:
        target = match.group()
        if "://" in target or target.startswith("mailto:"):
            return target
        place = (path.parent / target).resolve()
        if not place.is_relative_to(ROOT):
            return target
        inside = place.relative_to(ROOT).as_posix()
        inside = FROM_TOP.get(inside, inside.removeprefix("docs/"))
        return "../" * depth + inside

    return TARGET.sub(moved, path.read_text(encoding="utf-8"))
