"""Which database a folder leads to: real repositories, and paths of every kind."""

import os
import subprocess
from pathlib import Path

import pytest

from support.commands import Outcome, command_path, run


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(
        ["git", "-c", "protocol.file.allow=always", *arguments],
        cwd=folder,
        check=True,
        capture_output=True,
    )


def repository(folder: Path) -> Path:
    folder.mkdir(parents=True)
    git(folder, "init", "-q")
    git(folder, "commit", "-q", "--allow-empty", "-m", "first")
    return folder


def where(folder: Path) -> Outcome:
    return run("where", "--json", folder=folder)


def files(folder: Path) -> list[str]:
    """Everything but what SQLite keeps beside an open database."""
    return sorted(
        str(path) for path in folder.rglob("*") if not path.name.endswith(("-wal", "-shm"))
    )


@pytest.fixture
def places(tmp_path: Path) -> dict[str, tuple[Path, str]]:
    """Folders of one project, each with the rule that leads to its one database."""
    main = repository(tmp_path / "main")
    library = repository(tmp_path / "library")
    git(main, "submodule", "add", "-q", str(library), "lib")
    git(main, "commit", "-q", "-m", "submodule")
    git(main, "worktree", "add", "-q", str(tmp_path / "linked"))
    git(main, "worktree", "add", "-q", str(main / "trees" / "nested"))
    git(tmp_path / "linked", "submodule", "update", "-q", "--init")
    git(main / "lib", "worktree", "add", "-q", str(tmp_path / "lib-tree"))
    for folder in (main / "src" / "deep", tmp_path / "linked" / "src", main / "lib" / "src"):
        folder.mkdir(parents=True)
    alias = tmp_path / "alias"
    alias.symlink_to(main)
    return {
        "main": (main, "folder"),
        "subfolder": (main / "src" / "deep", "folder"),
        "alias": (alias, "folder"),
        "git_folder": (main / ".git", "folder"),
        "linked_worktree": (tmp_path / "linked", "worktree"),
        "subfolder_of_linked": (tmp_path / "linked" / "src", "worktree"),
        "nested_worktree": (main / "trees" / "nested", "worktree"),
        "submodule": (main / "lib", "submodule"),
        "subfolder_of_submodule": (main / "lib" / "src", "submodule"),
        "submodule_in_linked": (tmp_path / "linked" / "lib", ""),
        "worktree_of_submodule": (tmp_path / "lib-tree", ""),
    }


def test_every_folder_of_a_project_leads_to_one_database(places, tmp_path: Path):
    made = run("init", "--json", folder=places["linked_worktree"][0]).data
    assert made["path"] == str(tmp_path / "main" / ".inbox" / "bus.db")
    before = files(tmp_path)

    for name, (folder, rule) in places.items():
        found = where(folder).data
        assert (found["path"], found["id"]) == (made["path"], made["id"]), name
        assert not rule or found["rule"] == rule, name

    assert files(tmp_path) == before


def test_without_a_database_every_folder_is_exit_6_and_nothing_is_made(places, tmp_path: Path):
    before = files(tmp_path)

    for name, (folder, _) in places.items():
        ended = where(folder)
        assert ended.error["code"] == "no_database", name
        assert "inbox init" in ended.error["hint"]
    assert where(Path("/")).error["code"] == "no_database"

    assert files(tmp_path) == before


@pytest.mark.parametrize("place", ["main", "linked_worktree", "submodule", "submodule_in_linked"])
def test_init_anywhere_in_a_project_makes_the_one_of_the_main_tree(places, tmp_path, place: str):
    made = run("init", "--json", folder=places[place][0]).data
    assert made["path"] == str(tmp_path / "main" / ".inbox" / "bus.db")
    assert made["created"]


def test_git_sees_nothing_of_the_database(tmp_path: Path):
    main = repository(tmp_path / "main")
    run("init", folder=main)
    run("send", "--to", "w", "--subject", "s", "--agent", "a", folder=main)
    status = subprocess.run(
        ["git", "status", "--porcelain", "--untracked-files=all"], cwd=main, capture_output=True
    )
    assert status.stdout == b""


def test_a_bare_repository_leads_to_the_folder_beside_it(tmp_path: Path):
    source = repository(tmp_path / "source")
    hub = tmp_path / "hub"
    hub.mkdir()
    git(hub, "clone", "-q", "--bare", str(source), "project.git")
    git(hub / "project.git", "worktree", "add", "-q", str(tmp_path / "work"))
    made = run("init", "--json", folder=hub / "project.git").data
    assert made["path"] == str(hub / ".inbox" / "bus.db")

    for folder in (hub, hub / "project.git", tmp_path / "work"):
        assert where(folder).data["id"] == made["id"]
    assert where(hub / "project.git").data["rule"] == "bare_repository"
    assert where(tmp_path / "work").data["rule"] == "bare_repository"


def test_a_repository_of_its_own_inside_a_project_uses_the_projects_database(tmp_path: Path):
    """Walking up crosses it: only a submodule or a worktree is led elsewhere first."""
    main = repository(tmp_path / "main")
    inner = repository(main / "vendor" / "inner")
    made = run("init", "--json", folder=main).data
    assert where(inner).data["id"] == made["id"]


def test_a_pointer_that_leads_nowhere_is_passed_over(tmp_path: Path):
    made = run("init", "--json", folder=tmp_path).data
    broken = tmp_path / "broken"
    broken.mkdir()
    for content in (b"gitdir: /nowhere/.git/worktrees/x\n", b"\xff\xfe", b"", b"gitdir: ../../.."):
        (broken / ".git").write_bytes(content)
        assert where(broken).data["id"] == made["id"], content


NAMES = {
    "space": "a b/bus db.db",
    "hash": "a#b/c#.db",
    "question": "a?mode=memory/b?.db",
    "percent": "%41%/b%20.db",
    "unicode": "d\u00e9p\u00f4t \U0001f600/\u4f60\u597d.db",
    "quote": 'it\'s "here"/x.db',
    "newline": "a\nb/x.db",
    "colon": ":memory:/x.db",
    "ampersand": "a&vfs=none/x.db",
    "long": "/".join(["x" * 60] * 5) + "/x.db",
    "bytes": os.fsdecode(b"\xff\xfe/\xff.db"),
    "dash": "-x/-y.db",
}


@pytest.mark.parametrize("name", NAMES)
def test_a_database_path_may_have_any_characters(tmp_path: Path, name: str):
    path = os.path.join(tmp_path, NAMES[name])
    made = run("init", "--json", f"--db={path}").data
    assert os.path.exists(path)

    sent = run("send", "--json", "--to=w", "--subject=s", "--agent=a", INBOX_DB=path).data
    (listed,) = run("list", "--json", f"--db={path}").data["items"]

    assert listed["id"] == sent["thread"]["id"]
    assert run("where", "--json", f"--db={path}").data["id"] == made["id"]
    assert run("where", f"--db={path}").code == 0
    assert len(list(tmp_path.iterdir())) == 1


def test_a_path_with_two_slashes_in_front_is_a_path(tmp_path: Path):
    made = run("init", "--json", f"--db=/{tmp_path}/x.db").data
    assert run("where", "--json", f"--db={tmp_path}//x.db").data["id"] == made["id"]


def test_aliases_of_one_database_agree(tmp_path: Path):
    real = tmp_path / "real"
    real.mkdir()
    made = run("init", "--json", f"--db={real}/bus.db").data
    (tmp_path / "folder").symlink_to(real)
    (tmp_path / "file.db").symlink_to(real / "bus.db")
    for path in ("folder/bus.db", "file.db", "real/../folder/./bus.db"):
        seen = run("where", "--json", "--db", path, folder=tmp_path).data
        assert (seen["id"], seen["path"]) == (made["id"], made["path"])


def test_the_order_of_the_rules_is_option_environment_folder(tmp_path: Path):
    ids = {
        name: run("init", "--json", str(tmp_path / name)).data["id"]
        for name in ("option", "environment", "folder")
    }

    def path(name: str) -> str:
        return str(tmp_path / name / ".inbox" / "bus.db")

    def seen(*options: str, **environment: str) -> tuple[str, str]:
        data = run("where", "--json", *options, folder=tmp_path / "folder", **environment).data
        return data["rule"], data["id"]

    assert seen() == ("folder", ids["folder"])
    assert seen(INBOX_DB=path("environment")) == ("environment", ids["environment"])
    assert seen("--db", path("option"), INBOX_DB=path("environment")) == ("option", ids["option"])
    assert seen() == ("folder", ids["folder"])
    refused = run("where", "--json", folder=tmp_path / "folder", INBOX_DB="")
    assert refused.error["message"] == "INBOX_DB is empty"


def test_init_again_changes_nothing(tmp_path: Path):
    first = run("init", "--json", folder=tmp_path).data
    before = files(tmp_path)
    second = run("init", "--json", folder=tmp_path).data
    assert (first["created"], second["created"]) == (True, False)
    assert first["id"] == second["id"]
    assert files(tmp_path) == before


def test_the_folder_is_private_whatever_the_umask(tmp_path: Path):
    subprocess.run(
        ["sh", "-c", 'umask 0; exec "$@"', "sh", command_path(), "init"], cwd=tmp_path, check=True
    )
    folder = tmp_path / ".inbox"
    modes = {path.name: path.stat().st_mode & 0o777 for path in (folder, *folder.iterdir())}
    assert modes.pop(".inbox") == 0o700
    assert {name for name, mode in modes.items() if mode & 0o077} == set()
