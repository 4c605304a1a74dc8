"""What is the user's in a repository: their checkout, index, HEAD, stash, settings and refs."""

from pathlib import Path
from typing import Any

from support.runs import git

OURS = ("refs/orch/", "refs/heads/orch/")


def at_work(repository: Path) -> None:
    """The user has something at hand: a file that is staged, one that is changed, one that is new,
    a stash and a tag."""
    (repository / "README.md").write_text("A stashed project.\n")
    git(repository, "stash", "--quiet")
    git(repository, "tag", "v1")
    (repository / "staged.txt").write_text("staged\n")
    git(repository, "add", "staged.txt")
    (repository / "README.md").write_text("A changed project.\n")
    (repository / "new.txt").write_text("new\n")


def own(repository: Path) -> dict[str, Any]:
    """All of that, byte for byte; refs that are not of ours."""
    folder = repository / ".git"
    names = [folder / name for name in ("index", "HEAD", "config", "logs/refs/stash")]
    names += [each for each in repository.iterdir() if each.is_file()]
    found: dict[str, Any] = {str(each): each.read_bytes() for each in names if each.exists()}
    listed = git(repository, "for-each-ref", "--format=%(refname) %(objectname)").split("\n")
    found["refs"] = [each for each in listed if not each.startswith(OURS)]
    return found
