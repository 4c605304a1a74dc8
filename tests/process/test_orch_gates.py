"""The runner of gates with real commands: what it asks its caller, ends and keeps."""

import os
import shlex
from functools import partial
from pathlib import Path

import pytest

from inbox_orch.orch.gates.running import Mandate, Runner, Withdrawn
from inbox_orch.orch.gates.spec import GateSpec, NotStarted
from inbox_orch.orch.gates.turns import finished
from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.processes.groups import has_members
from inbox_orch.shared.store.artifacts import ArtifactStore
from support.runs import commit, git
from support.timing import PATIENCE_SECONDS


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A worktree of the repository `main`."""
    git(tmp_path, "init", "--quiet", "main")
    commit(tmp_path / "main", "a.txt", "text")
    git(tmp_path / "main", "worktree", "add", "--quiet", str(tmp_path / "tree"))
    return tmp_path / "tree"


def gate(tree: Path, command: str, **options) -> GateSpec:
    shared = str(tree.parent / "main" / ".git")
    spec = GateSpec(command, str(tree), shared, dict(os.environ), PATIENCE_SECONDS)
    return spec._replace(**options)


def test_gates_run_in_order_up_to_the_first_that_fails(tree: Path):
    commands = ("echo one >>said", "echo two >>said; exit 3", "echo three >>said")
    noted: list[int] = []

    def note(results) -> bool:
        noted.append(len(results))
        return True

    with Runner(print, Mandate(noted=note)) as runner:
        results = finished(runner.series([partial(gate, tree, each) for each in commands]))

    assert (tree / "said").read_text() == "one\ntwo\n"
    assert results is not None
    assert [each.ending.exit_status for each in results] == [0, 3]
    assert noted == [1, 2]


def test_a_gate_is_made_only_when_its_turn_has_come(tree: Path):
    """What the one before has changed counts for it."""

    def second() -> GateSpec:
        return gate(tree, f"echo {shlex.quote((tree / 'said').read_text())} >again")

    with Runner(print) as runner:
        finished(runner.series([partial(gate, tree, "printf one >said"), second]))

    assert (tree / "again").read_text() == "one\n"


def test_no_gate_begins_when_the_time_is_over_and_the_first_always_does(tree: Path):
    gates = [partial(gate, tree, f"touch {name}") for name in ("one", "two")]

    with Runner(print, Mandate(over=lambda: True)) as runner:
        assert finished(runner.series(gates)) is None

    assert (tree / "one").exists()
    assert not (tree / "two").exists()


def test_nothing_of_a_command_happens_that_the_caller_has_refused(tree: Path):
    groups: list[int] = []

    def refuse(group: int) -> bool:
        groups.append(group)
        return False

    with Runner(print, Mandate(begins=refuse)) as runner, pytest.raises(Withdrawn):
        runner.run(gate(tree, "touch done"))

    assert not (tree / "done").exists()
    assert not has_members(groups[0])


def test_a_command_that_is_not_wanted_any_more_is_ended(tree: Path):
    groups: list[int] = []

    def begin(group: int) -> bool:
        groups.append(group)
        return True

    mandate = Mandate(begins=begin, wanted=lambda: False)
    with Runner(print, mandate) as runner, pytest.raises(Withdrawn):
        runner.run(gate(tree, f"sleep {10 * PATIENCE_SECONDS}"))

    assert not has_members(groups[0])


def test_a_series_whose_results_are_not_wanted_goes_no_further(tree: Path):
    gates = [partial(gate, tree, f"touch {name}") for name in ("one", "two")]

    with Runner(print, Mandate(noted=lambda _: False)) as runner, pytest.raises(Withdrawn):
        finished(runner.series(gates))

    assert not (tree / "two").exists()


def test_output_is_kept_under_its_name_without_secrets(tree: Path, tmp_path: Path):
    store = ArtifactStore(str(tmp_path / "artifacts"))
    spec = gate(tree, "echo it is s3cret", secrets=("s3cret",), artifact="check-1.txt")

    with Runner(print, artifacts=store) as runner:
        outcome = runner.run(spec)

    assert outcome.content == b"it is ***\n"
    assert (outcome.checked.command, outcome.checked.output_tail) == ("echo it is ***", "")
    assert outcome.checked.artifact == "check-1.txt"
    with store.open(outcome.checked.artifact_sha256) as kept:
        assert kept.read() == b"it is ***\n"


def test_no_command_runs_where_git_is_about_other_files(tree: Path, tmp_path: Path):
    git(tmp_path, "init", "--quiet", "other")

    with Runner(print) as runner, pytest.raises(InboxOrchError) as refused:
        runner.run(gate(tree, "touch done", repository=str(tmp_path / "other" / ".git")))

    assert refused.value.code == "git_failed"
    assert not (tree / "done").exists()


def test_a_folder_that_has_gone_away_is_told_apart_from_a_command_that_cannot_be_started(
    tree: Path, tmp_path: Path
):
    nowhere = str(tmp_path / "nowhere")
    too_long = {"LONG": "x" * (4 << 20)}

    with Runner(print) as runner:
        with pytest.raises(NotStarted) as gone:
            runner.run(gate(tree, "true", folder=nowhere, repository=None))
        with pytest.raises(NotStarted) as full:
            runner.run(gate(tree, "true", environment=too_long))

    assert gone.value.gone
    assert not full.value.gone
    assert full.value.reason == os.strerror(7)  # E2BIG
