"""What many commits change against their bases is asked of git at once."""

from pathlib import Path

import pytest

from inbox_orch.orch.git import diffs
from inbox_orch.orch.git.diffs import ChangedFile, Span, files_between
from inbox_orch.orch.git.repository import Repository
from support.runs import commit, git, make_repository


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository.at(str(make_repository(tmp_path / "project")))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The verbs that git is asked with."""
    found: list[str] = []
    genuine = diffs.git

    def listening(folder: str, verb: str, *words: str, **options: object) -> object:
        found.append(verb)
        return genuine(folder, verb, *words, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(diffs, "git", listening)
    return found


def history(repository: Repository) -> list[str]:
    """Commits with all that is special about a name, a file and a change."""
    here = Path(repository.path)
    commits = [git(here, "rev-parse", "HEAD")]
    commits.append(commit(here, "plain.txt", "one\ntwo\n"))
    commits.append(commit(here, "odd\tname\nof a file.txt", "one\n"))
    (here / "binary").write_bytes(b"\0\1\2")
    commits.append(commit(here, "deep.txt", "three\n"))
    git(here, "mv", "plain.txt", "moved.txt")
    commits.append(commit(here, "deep.txt", "four\n"))
    git(here, "commit", "--quiet", "--allow-empty", "--message", "Nothing")
    commits.append(git(here, "rev-parse", "HEAD"))
    return commits


def test_every_pair_is_told_as_git_tells_it_alone(repository: Repository, asked: list[str]):
    commits = history(repository)
    pairs = [(base, head) for base in commits for head in commits]

    found = files_between(repository, pairs)

    assert asked == ["cat-file", "diff-tree"]
    assert found[commits[2], commits[3]][0] == ChangedFile("binary", None, None)
    assert found[commits[4], commits[5]] == ()
    for base, head in pairs:
        alone = diffs.changed_files(Span(repository.path, base, head))
        assert list(found[base, head]) == alone


def test_what_is_gone_is_left_out_and_hides_nothing_else(repository: Repository, asked: list[str]):
    here = Path(repository.path)
    base, whole, broken, _ = (commit(here, "a.txt", f"{n}\n") for n in range(4))
    blob = git(here, "rev-parse", f"{broken}:a.txt")
    (here / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    never = "0123456789" * 4

    found = files_between(repository, {(base, whole), (base, broken), (base, never)})

    assert found == {(base, whole): (ChangedFile("a.txt", 1, 1),)}
    assert asked == ["cat-file", "diff-tree", "diff-tree", "diff-tree"]


def test_of_nothing_nothing_is_asked(repository: Repository, asked: list[str]):
    assert (files_between(repository, []), asked) == ({}, [])
