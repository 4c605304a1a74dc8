"""Another user of the machine: cannot read, ring, claim or write, and cannot plant anything."""

import json
import os
import stat
from pathlib import Path

import pytest

from inbox_orch.inbox import Bus
from inbox_orch.shared.store.sqlite import bells, creating
from support.commands import Project, run
from support.processes import Child, crew
from support.runs import Site

NOBODY = 65534
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")

STRANGER = """
import json, os, socket, sqlite3
from inbox_orch.inbox import Bus
from inbox_orch.shared.store.sqlite import bells
from inbox_orch.shared.errors import InboxOrchError
from support.processes import say
import inbox_orch.inbox.services.claiming, inbox_orch.inbox.services.sending
folder, others = sys.argv[1], json.loads(sys.argv[2])
path = os.path.join(folder, "bus.db")
os.setgroups([])
os.setgid(65534)
os.setuid(65534)

def outcome(call):
    try:
        return repr(call())[:80]
    except InboxOrchError as error:
        return error.code
    except (OSError, sqlite3.Error) as error:
        return type(error).__name__

say({
    "enter": outcome(lambda: os.listdir(folder)),
    "open": outcome(lambda: Bus.open(path, agent="stranger")),
    "sqlite": outcome(lambda: sqlite3.connect(path).execute("SELECT * FROM thread").fetchall()),
    "gate": outcome(lambda: os.open(os.path.join(folder, "gate"), os.O_RDWR)),
    "plant": outcome(lambda: os.mkdir(os.path.join(folder, "artifacts", "zz"))),
    "bell": outcome(lambda: os.mkfifo(os.path.join(folder, "bells", "x"))),
    "others": [outcome(lambda: open(p).read()) for p in others],
})
bells.ring(os.path.join(folder, "bells"), ["w1", "_all"])
say("rung")
"""


def let_through(folder: Path) -> None:
    """Everybody may come as far as this folder, so that only what is below keeps them out."""
    for each in (folder, *folder.parents):
        if each != Path(each.anchor) and not each.stat().st_mode & stat.S_IXOTH:
            each.chmod(each.stat().st_mode | stat.S_IXOTH)


@needs_root
@pytest.mark.parametrize("mask", [0o000, 0o022])
def test_another_user_cannot_read_claim_write_or_ring(tmp_path: Path, mask: int):
    previous = os.umask(mask)
    try:
        (tmp_path / "attached").write_text("a secret")
        project = Project(tmp_path / "project")
        project.send(attach=[str(tmp_path / "attached")])
        (tmp_path / "copies").mkdir()
        with project.bus("leader") as bus:
            bus.backup(tmp_path / "copies" / "copy.db", artifacts=True)
        let_through(project.folder)
        let_through(tmp_path / "copies")
        others = [
            *(path for path in project.path.parent.rglob("*") if path.is_file()),
            *(path for path in (tmp_path / "copies").rglob("*") if path.is_file()),
        ]

        place = project.path.parent
        with bells.Bells(str(place / "bells"), ["w1", "_all"]) as armed:
            assert armed.armed
            with crew(Child(STRANGER, place, json.dumps([str(p) for p in others]))) as (stranger,):
                found = stranger.hear()
                assert stranger.hear() == "rung"
            assert not armed.sleep(0)
    finally:
        os.umask(previous)

    assert len(others) >= 5
    assert set(found.pop("others")) == {"PermissionError"}
    assert found == {
        "enter": "PermissionError",
        "open": "read_only",
        "sqlite": "OperationalError",
        "gate": "PermissionError",
        "plant": "PermissionError",
        "bell": "PermissionError",
    }


@needs_root
def test_another_user_cannot_read_a_worktree_or_its_trash(site: Site):
    run_ = site.open_run()
    site.add(run_, "a", "b")
    items = site.dispatch(run_, "a", "b")
    head = Path(site.deliver(items["a"], "file.txt"))
    assert head
    site.scheduler.reconcile(run_)
    site.scheduler.cleanup(run_, force=True)
    let_through(site.folder)
    files = [p for p in site.worktrees.rglob("*") if p.is_file()]
    assert any(".trash" in str(p) for p in files)

    code = STRANGER.replace("bells.ring", "str")
    inbox = site.repository / ".inbox"
    with crew(Child(code, inbox, json.dumps([str(p) for p in files]))) as (stranger,):
        assert set(stranger.hear()["others"]) == {"PermissionError"}


# -- what another user has put there -------------------------------------------------------


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    """A database of another user's, and our own folder below it."""
    creating.create(str(tmp_path / "tmp" / ".inbox" / "bus.db"))
    for path in (tmp_path / "tmp" / ".inbox", *(tmp_path / "tmp" / ".inbox").rglob("*")):
        os.chown(path, NOBODY, NOBODY)
    (tmp_path / "tmp" / "mine").mkdir()
    return tmp_path / "tmp"


@needs_root
@pytest.mark.parametrize("program", ["inbox", "orch"])
def test_a_database_of_another_users_that_lies_above_is_not_used(planted: Path, program: str):
    line = ("send", "--to", "w", "--subject", "s", "--agent", "a")
    if program == "orch":
        line = ("run", "list")
    ended = run("--json", *line, folder=planted / "mine", program=program)

    assert (ended.code, ended.error["code"]) == (9, "foreign_owner")
    assert ended.error["details"]["owner"] == NOBODY
    assert "--db" in ended.error["hint"]


@needs_root
@pytest.mark.parametrize("whose", ["folder", "file"])
def test_half_of_it_being_ours_is_not_enough(planted: Path, whose: str):
    path = planted / ".inbox"
    os.chown(path if whose == "file" else path / "bus.db", 0, 0)

    ended = run("--json", "list", folder=planted / "mine")

    assert ended.error["code"] == "foreign_owner"


@needs_root
def test_it_is_used_when_it_is_named_or_sudo_says_so(planted: Path):
    path = str(planted / ".inbox" / "bus.db")
    assert run("list", "--db", path, folder=planted).code == 0
    assert run("list", folder=planted, INBOX_DB=path).code == 0
    assert run("list", folder=planted, SUDO_UID=str(NOBODY)).code == 0
    assert run("list", folder=planted, SUDO_UID="1").code == 9
    assert run("list", folder=planted, SUDO_UID="²").code == 9


def test_ones_own_is_found_as_ever(tmp_path: Path):
    creating.create(str(tmp_path / ".inbox" / "bus.db"))
    (tmp_path / "below").mkdir()
    assert run("list", folder=tmp_path / "below").code == 0
    with Bus.open(tmp_path / ".inbox" / "bus.db") as bus:
        assert bus.list().items == ()
