"""`orch gate list` and `orch gate run`: which gates, where, and what of it is told."""

from pathlib import Path

import pytest

from inbox_orch.orch import schemas
from inbox_orch.orch.gates import result_rows, surroundings_rows
from inbox_orch.orch.gates.built_in import BUILT_IN
from inbox_orch.orch.gates.definitions import Gate
from inbox_orch.orch.gates.grounds import ground_digest
from inbox_orch.orch.gates.look import Found
from inbox_orch.orch.gates.proving import Proof
from inbox_orch.orch.gates.results import GateResult
from inbox_orch.orch.runs.config import Config
from inbox_orch.shared.processes.groups import has_members
from support.commands import Outcome
from support.contracts import validated
from support.orch_matrix import Enterprise, the_run
from support.runs import add_task, commit, git

RUFF = """printf '[{"code":"X1","filename":"a.py","message":"one"}"""
RUFF += """,{"code":"X2","filename":"b.py","message":"two"}]'; exit 1"""


class Post(Enterprise):
    """An attempt that a worker has claimed, in a run with gates."""

    def __init__(self, folder: Path, *gates: Gate, checks: tuple[str, ...] = ()) -> None:
        super().__init__(folder)
        self.open_run(config=Config(gates=tuple(gate.as_json() for gate in gates)))
        with self.scheduler() as scheduler:
            add_task(scheduler, the_run(scheduler), key_name="a", title="Do a", checks=checks)
            item = scheduler.dispatch(the_run(scheduler)).items[0]
            self.run_id = the_run(scheduler).id
        with self.bus("w1") as bus:
            bus.claim(item["thread"], mailboxes=["workers"])
        self.worktree = Path(item["worktree"])
        self.base_tree = git(self.folder, "rev-parse", "HEAD^{tree}")

    def gates(self, *names: str, **options) -> Outcome:
        return self.orch("gate", "run", *names, **{"folder": self.worktree, **options})

    def states(self, *names: str, **options) -> dict[str, str]:
        data = self.gates(*names, "--json", **options).value["data"]
        return {each["gate"]: each["state"] for each in data["gates"]}

    def prove(self, gate: Gate, **facts) -> None:
        """Write down what a gate came to on the base."""
        proof = Proof(gate.name, **{"usable": True, "state": "passed", **facts})
        with self.scheduler() as scheduler, scheduler.desk.database.transaction() as tx:
            surroundings_rows.put(tx, self.run_id, self.base_tree, Found(gates=(gate,)), [proof])


@pytest.fixture
def post(tmp_path: Path):
    """Makes such an attempt with gates."""
    return lambda *gates, **options: Post(tmp_path / "project", *gates, **options)


def test_gates_run_on_what_lies_there_from_any_folder_below(post):
    here: Post = post(Gate("a", "test -e new.txt"), Gate("b", ("grep", "-q", "x", "in/new.txt")))
    (here.worktree / "in").mkdir()
    (here.worktree / "new.txt").touch()
    (here.worktree / "in" / "new.txt").write_text("x")
    before = here.contents()

    done = here.gates(folder=here.worktree / "in")

    assert (done.code, done.stdout.decode().splitlines()[0][:8]) == (0, "a passed")
    assert here.contents() == before


def test_what_fails_is_told_briefly_and_exits_11(post):
    here: Post = post(
        Gate("lint", RUFF, "ruff"), Gate("fine", "true"), Gate("b", "echo no; exit 2")
    )
    done = here.gates()

    lines = done.stdout.decode().splitlines()
    assert done.code == 11
    assert [line.partition(" (")[0] for line in lines] == [
        "lint failed",
        "  a.py:1: X1 one",
        "  b.py:1: X2 two",
        "fine passed",
        "b failed",
        "  it ended with exit status 2",
        "  no",
    ]
    assert "lint, b failed" in done.stderr.decode()
    assert "mend what is named above" in done.stderr.decode()


def test_only_what_is_named_is_run(post):
    here: Post = post(Gate("a", "false"), Gate("b", "true"), Gate("c", "true"))

    assert here.states("c", "b") == {"b": "passed", "c": "passed"}


def test_what_the_base_has_does_not_count(post):
    lint = Gate("lint", RUFF, "ruff")
    here: Post = post(lint)
    here.prove(lint, state="failed", failures={"a.py:X1": 1})
    done = here.gates("--json")

    (result,) = done.value["data"]["gates"]
    assert (done.code, result["failures"], result["known"]) == (11, {"b.py:X2": 1}, 1)
    assert result["texts"] == {"b.py:X2": "b.py:1: X2 two"}
    here.prove(lint, state="failed", failures={"a.py:X1": 1, "b.py:X2": 1})
    assert here.gates().code == 0


def test_what_is_stored_of_the_tree_of_the_base_is_known_too(post):
    lint = Gate("lint", RUFF, "ruff")
    here: Post = post(lint)
    at_base = GateResult("lint", "failed", failures={"a.py:X1": 1, "b.py:X2": 1})
    with here.scheduler() as scheduler, scheduler.desk.database.transaction() as tx:
        result_rows.put(tx, here.run_id, here.base_tree, ground_digest(lint, "", ()), at_base)

    assert here.gates().code == 0


def test_a_gate_that_cannot_judge_here_is_skipped_and_refused_when_it_is_named(post):
    gate = Gate("t", "true")
    here: Post = post(gate)
    here.prove(gate, usable=False, state="error", sentence="`t` ran no test on the base.")

    assert here.states() == {"t": "skipped"}
    named = here.gates("t")
    assert named.code == 2
    assert "`t` ran no test on the base" in named.stderr.decode()


def test_what_could_not_be_judged_is_not_for_the_worker_to_mend(post):
    here: Post = post(Gate("t", ("no-such-program",)))
    done = here.gates()

    assert done.code == 11
    assert "t could not be judged" in done.stderr.decode()
    assert "this is not for you to mend" in done.stderr.decode()


def test_a_gate_that_only_warns_says_so_and_lets_through(post):
    done = post(Gate("t", "exit 1", mode="warn")).gates()

    assert done.code == 0
    assert "t failed (only warns" in done.stdout.decode()


def test_paths_decide_by_committed_uncommitted_and_new_files(post):
    here: Post = post(*(Gate(f"g{n}", "true", paths=(f"{n}/**",)) for n in range(4)))
    commit(here.worktree, "0/a", "x")
    commit(here.worktree, "1/a", "x")
    (here.worktree / "1" / "a").write_text("y")
    (here.worktree / "2").mkdir()
    (here.worktree / "2" / "a").touch()

    assert here.states() == {"g0": "passed", "g1": "passed", "g2": "passed", "g3": "skipped"}


def test_patch_safety_needs_no_command(post):
    here: Post = post(BUILT_IN["patch-safety"])
    assert here.states() == {"patch-safety": "passed"}

    (here.worktree / "out").symlink_to("/etc")
    (here.worktree / "in").symlink_to("out")
    done = here.gates("--json")

    assert done.value["data"]["gates"][0]["failures"] == {"out:link": 1}


def test_a_worktree_is_known_by_another_path_too(post, tmp_path: Path):
    here: Post = post(Gate("a", "true"))
    (tmp_path / "link").symlink_to(here.worktree.parent)

    assert here.gates(folder=tmp_path / "link" / here.worktree.name).code == 0


def test_outside_of_every_worktree_there_is_nothing_to_run(post, tmp_path: Path):
    here: Post = post(Gate("a", "true"))
    git(here.folder, "worktree", "add", "--quiet", str(tmp_path / "own" / here.worktree.name))

    for folder in (here.folder, tmp_path / "own" / here.worktree.name):
        done = here.gates(folder=folder)
        assert done.code == 3
        assert "the worktree of no attempt" in done.stderr.decode()


def test_without_gates_the_hint_says_where_they_come_from(post):
    done = post().gates()

    assert done.code == 2
    assert "`gates:` of the config" in done.stderr.decode()


def test_checks_of_the_task_are_run_after_the_gates_and_count_whatever_the_base_says(post):
    here: Post = post(Gate("a", "true"), checks=("exit 1", "true"))

    assert here.states() == {"a": "passed", "check-1": "failed", "check-2": "passed"}
    assert here.states("check-2") == {"check-2": "passed"}


def test_a_name_that_is_none_is_refused_with_those_that_there_are(post):
    here: Post = post(Gate("lint", "touch ran"))

    assert "did you mean lint?" in here.gates("lnit").stderr.decode()
    assert "there are: lint" in here.gates("zzz").stderr.decode()
    assert not (here.worktree / "ran").exists()


def test_nothing_of_the_output_is_longer_than_it_may_be(post):
    many = "for n in $(seq 300); do echo FAIL: number $n and some more words of it; done; exit 1"
    gates = (Gate(f"g{n}", many, "lines", pattern="(?P<id>FAIL.*)") for n in range(3))
    done = post(*gates).gates()

    assert len(done.stdout) <= 2048
    assert done.stdout.decode().count("  … and ") == 3


def test_secrets_are_masked_and_no_lease_is_handed_on(tmp_path: Path):
    post = Post(tmp_path / "project", Gate("t", 'echo "<$INBOX_TOKEN>" s3cret; exit 1'))
    with post.scheduler() as scheduler, scheduler.desk.database.transaction() as tx:
        secret = Config(
            secrets=("KEY",), gates=({"name": "t", "run": 'echo "<$INBOX_TOKEN>" s3cret; exit 1'},)
        )
        tx.run("UPDATE run SET config = ?", (secret.canonical(),))
    done = post.gates(KEY="s3cret", INBOX_TOKEN="held")

    assert "<> ***" in done.stdout.decode()


def test_gates_are_listed_in_order_with_what_is_known_of_the_base(post):
    lint = Gate("lint", ("ruff", "check"), "ruff", paths=("src/**",))
    here: Post = post(lint, Gate("build", "make all"))
    here.prove(lint, sentence="`lint` passes on the base.")
    listed = here.orch("gate", "list", "--json")

    validated("gate list", listed.stdout, schemas.COMMANDS)
    first, second = listed.data["items"]
    assert (first["name"], first["source"], first["usable"]) == ("lint", "config", True)
    assert (first["run"], first["base"]) == (["ruff", "check"], "passed")
    assert (second["run"], second["usable"], second["says"]) == ("make all", None, None)
    assert here.orch("gate", "list").stdout.decode().splitlines() == [
        "lint\truff\truff check\tsrc/**\t`lint` passes on the base.",
        "build\texit\tmake all\t\t",
    ]


def test_gates_that_were_found_come_after_those_of_the_config(post):
    here: Post = post(Gate("own", "true"))
    here.prove(BUILT_IN["pytest"]._replace(run="true", reads="exit"), sentence="It passes.")

    items = here.orch("gate", "list", "--json").data["items"]
    found = [(item["name"], item["source"]) for item in items]
    assert found == [("own", "config"), ("pytest", "found")]
    assert here.states() == {"own": "passed", "pytest": "passed"}


def test_a_run_without_gates_lists_none(post):
    here: Post = post()

    assert here.orch("gate", "list", "--json").data["items"] == []
    assert here.orch("gate", "list").code == 0


def test_a_plan_takes_gates_along_and_gives_them_out_again(post, tmp_path: Path):
    gates = (*BUILT_IN.values(), Gate("b", "make {report}", "junit", paths=("a/**",), strict=True))
    here: Post = post(*gates)
    assert here.orch("plan", "export", "--output", "plan.yaml").code == 0

    with here.scheduler() as scheduler:
        scheduler.cancel_run(the_run(scheduler))
    again = here.orch("plan", "import", "plan.yaml", "--new-run", "--json")

    assert again.code == 0
    listed = here.orch("gate", "list", "--run", again.data["run"]["name"], "--json").data["items"]
    said = [{k: v for k, v in item.items() if k in Gate._fields} for item in listed]
    assert [Gate.from_json(each) for each in said] == list(gates)


@pytest.mark.parametrize("name, code", [("TERM", 143), ("INT", 130)])
def test_a_signal_ends_the_gate_and_the_command(post, name: str, code: int):
    here: Post = post(
        Gate("t", f"echo $$ >pid; kill -{name} $PPID; sleep 600"), Gate("u", "touch u")
    )
    done = here.gates()

    assert done.code == code
    assert not has_members(int((here.worktree / "pid").read_text()))
    assert not (here.worktree / "u").exists()
