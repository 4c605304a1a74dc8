"""Trees of git, made of what is given, and commits of them."""

import os
import subprocess
from pathlib import Path

from inbox_orch.orch.git.facts import Change, facts
from inbox_orch.orch.git.repository import Repository
from support.runs import make_repository

Files = dict[str, tuple[str, bytes]]
_WHO = {
    f"GIT_{role}_{what}": value
    for role in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "Wor Ker"), ("EMAIL", "w@example.org"))
}


class Trees:
    """A repository, and trees of what is written into a folder of its own."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder = folder / "project"
        if options:
            subprocess.run(["git", "init", "-q", *options, str(self.folder)], check=True)
        else:
            make_repository(self.folder)
        self.repository = Repository(str(self.folder))

    def write(self, files: Files) -> str:
        """The tree that has (mode, content) at each path."""
        lines = b""
        for path, (mode, content) in files.items():
            words = ["git", "-C", str(self.folder), "hash-object", "-w", "--stdin"]
            done = subprocess.run(words, input=content, stdout=subprocess.PIPE, check=True)
            name = content.decode() if mode == "160000" else done.stdout.decode().strip()
            lines += f"{mode} {name}\t".encode() + os.fsencode(path) + b"\0"
        within = {**os.environ, "GIT_INDEX_FILE": str(self.folder / ".git" / "other")}
        # Whatever its name is: here it is to get in.
        anything = ("-c", "core.protectNTFS=false", "-c", "core.protectHFS=false")
        base = ["git", "-C", str(self.folder), *anything]
        subprocess.run([*base, "read-tree", "--empty"], env=within, check=True)
        adding = [*base, "update-index", "-z", "--index-info"]
        subprocess.run(adding, input=lines, env=within, check=True)
        done = subprocess.run([*base, "write-tree"], env=within, stdout=subprocess.PIPE, check=True)
        return done.stdout.decode().strip()

    def facts(self, before: str, after: str) -> dict[str, Change]:
        found = facts(self.repository, before, after)
        assert found.insertions == sum(f.insertions for f in found.files)
        assert found.deletions == sum(f.deletions for f in found.files)
        return {change.path: change for change in found.files}

    def commit(self, tree: str, *parents: str, message: str = "Work") -> str:
        """A commit of a tree, at no ref."""
        words = ["git", "-C", str(self.folder), "commit-tree", tree, "-m", message]
        words += [word for parent in parents for word in ("-p", parent)]
        done = subprocess.run(words, env=os.environ | _WHO, stdout=subprocess.PIPE, check=True)
        return done.stdout.decode().strip()


def plain(content: str) -> tuple[str, bytes]:
    """A file with this text."""
    return ("100644", content.encode())
