"""The whole life of a gate with real commands: tries, reports, what it writes, what it leaves."""

import json
import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from inbox_orch.orch.gates import matching, running
from inbox_orch.orch.gates.built_in import BUILT_IN
from inbox_orch.orch.gates.definitions import Gate
from inbox_orch.orch.gates.judging import Base
from inbox_orch.orch.gates.patch_safety import RawChange
from inbox_orch.orch.gates.results import GateResult
from inbox_orch.orch.gates.running import Interrupted, Mandate, Runner, Withdrawn
from inbox_orch.orch.gates.spec import GateSpec
from inbox_orch.orch.gates.trying import Ground, trying
from inbox_orch.orch.gates.turns import finished
from inbox_orch.orch.git import checkouts
from inbox_orch.orch.git.repository import Repository
from inbox_orch.shared.processes.groups import has_members
from inbox_orch.shared.store.artifacts import ArtifactStore, Stored
from support.processes import until
from support.runs import commit, git
from support.timing import PATIENCE_SECONDS
from support.workers import is_alive

REPORT = "<testsuite><testcase classname='a' name='b'>{}</testcase></testsuite>"


class Scene:
    """A worktree, and what is judged there: the tree of its first commit."""

    def __init__(self, place: Path) -> None:
        self.folder = place / "tree"
        git(place, "init", "--quiet", "tree")
        commit(self.folder, "a.txt", "text")
        self.tree = self.tree_now()
        self.store = ArtifactStore(str(place / "artifacts"))
        self.groups: list[int] = []

    def tree_now(self) -> str:
        git(self.folder, "add", "--all")
        return git(self.folder, "write-tree")

    def between(self, one: str, other: str) -> tuple[str, ...]:
        told = git(self.folder, "diff-tree", "-r", "--name-only", one, other)
        return tuple(told.splitlines())

    def put_back(self, tree: str) -> tuple[str, ...]:
        paths = self.between(tree, self.tree_now())
        git(self.folder, "read-tree", "--reset", "-u", tree)
        return paths

    def judged(self, gate: Gate, base: Base | None = None, **options) -> GateResult:
        def begins(group: int) -> bool:
            self.groups.append(group)
            return True

        mandate = options.pop("mandate", Mandate(begins=begins))
        with Runner(print, mandate, artifacts=self.store) as runner:
            ground = Ground(
                runner,
                str(self.folder),
                str(self.folder / ".git"),
                {**os.environ, "TOP": str(self.folder.parent)},
                (),
                None,
                self.tree_now,
                self.put_back,
                self.between,
            )
            return finished(trying(ground._replace(**options), gate, self.tree, base))


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def shell(command: str, reads: str = "exit", **options) -> Gate:
    return Gate("tests", command, reads, **{"timeout_seconds": PATIENCE_SECONDS, **options})


def once(first: str, then: str) -> str:
    """A command that is another one from the second time on."""
    return f'if test -e "$TOP/seen"; then {then}; else : >"$TOP/seen"; {first}; fi'


def test_what_passes_is_run_once_and_its_output_is_kept(scene: Scene):
    found = scene.judged(shell('echo "$TOP" >>"$TOP/runs"; echo fine'))

    assert (found.state, found.reason, found.tests) == ("passed", None, None)
    assert (scene.folder.parent / "runs").read_text().count("\n") == 1
    assert found.artifact is not None
    assert found.artifact[0] == "gate-tests.txt"
    assert scene.store.has(Stored(*found.artifact))


def test_what_fails_is_run_once_more_and_then_has_failed(scene: Scene):
    found = scene.judged(shell('echo x >>"$TOP/runs"; echo why; exit 3'))

    assert (found.state, found.failures) == ("failed", {"tests:exit": 1})
    assert found.output == "why\n"
    assert (scene.folder.parent / "runs").read_text() == "x\nx\n"


def test_what_fails_once_is_flaky(scene: Scene):
    found = scene.judged(shell(once("exit 1", "exit 0")))

    assert (found.state, found.flaky) == ("passed", ("tests:exit",))


def test_a_failure_that_the_base_has_is_not_tried_again(scene: Scene):
    command = f'echo x >>"$TOP/runs"; echo "{REPORT.format("<error/>")}" >{{report}}; exit 1'
    found = scene.judged(shell(command, "junit"), Base("failed", {"a::b": 1}))

    assert (found.state, found.known) == ("passed", 1)
    assert (scene.folder.parent / "runs").read_text() == "x\n"


def test_words_are_run_without_a_shell(scene: Scene):
    words = (sys.executable, "-c", "import sys; sys.exit(sys.argv[1:] != ['$TOP; exit 1', ''])")
    gate = Gate("tests", (*words, "$TOP; exit 1", ""))

    assert scene.judged(gate).state == "passed"


@pytest.mark.parametrize("run", [("no-such-program",), "no-such-program", ("./a.txt",)])
def test_a_program_that_is_not_there_is_nobodys_failure(scene: Scene, run):
    found = scene.judged(Gate("tests", run))

    assert (found.state, found.failures) == ("error", {})
    assert "could not be run" in str(found.reason)


def test_a_program_that_is_there_at_the_base_is_the_changes_failure(scene: Scene):
    found = scene.judged(Gate("tests", ("./a.txt",)), Base("passed"))

    assert found.failures == {"tests:not-started": 1}


def test_a_report_is_read_from_a_file_outside_of_the_worktree(scene: Scene):
    command = f'echo {{report}} >"$TOP/at"; echo "{REPORT.format("")}" >{{report}}'
    found = scene.judged(shell(command, "junit"))
    report = Path((scene.folder.parent / "at").read_text().strip())

    assert (found.state, found.tests, found.wrote) == ("passed", 1, ())
    assert not report.is_relative_to(scene.folder)
    assert not report.parent.exists()


@pytest.mark.parametrize(
    "writes",
    [
        "true",
        "mkfifo {report}",
        "mkdir {report}",
        'echo "<testsuite/>" >"$TOP/x"; ln -s "$TOP/x" {report}',
        "echo '<testsuite' >{report}",
        "head -c 17000000 /dev/zero >{report}",
    ],
)
def test_a_report_that_is_none_is_suspect_and_never_waited_for(scene: Scene, writes: str):
    found = scene.judged(shell(writes, "junit"), Base("passed"))

    assert found.failures == {"tests:unreadable": 1}


def test_what_hangs_is_ended_and_is_the_changes_failure_where_the_base_is_judged(scene: Scene):
    gate = shell("sleep 600", timeout_seconds=0.2)

    assert scene.judged(gate, Base("passed")).failures == {"tests:timed-out": 1}
    assert scene.judged(gate).state == "error"
    assert len(scene.groups) == 4
    assert not any(map(has_members, scene.groups))


@pytest.mark.parametrize(
    "command",
    [
        "sleep 600 & exit 0",  # holds the pipe
        "sleep 600 >/dev/null 2>&1 & exit 0",
        "(sleep 600 & sleep 600 &) & exit 0",
    ],
)
def test_nothing_of_a_gate_is_left(scene: Scene, command: str):
    assert scene.judged(shell(command)).state == "passed"
    assert not any(map(has_members, scene.groups))


def test_a_gate_that_is_deaf_to_being_ended_is_killed(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(running, "GRACE_SECONDS", 0.1)
    gate = shell("trap '' TERM; while :; do sleep 600; done", timeout_seconds=0.2)

    assert scene.judged(gate, Base("passed")).failures == {"tests:timed-out": 1}
    assert not any(map(has_members, scene.groups))


def test_processes_without_end_are_ended_with_their_gate(scene: Scene):
    gate = shell("for n in $(seq 60); do (sleep 600 & sleep 600) & done; wait", timeout_seconds=0.3)

    assert scene.judged(gate, Base("passed")).failures == {"tests:timed-out": 1}
    assert not any(map(has_members, scene.groups))


def test_output_without_end_is_bounded_and_told_to_be_cut(scene: Scene):
    found = scene.judged(shell("head -c 60000000 /dev/zero | tr '\\0' 'x'; exit 1", "ruff"))

    assert (found.state, found.failures) == ("error", {})
    assert found.artifact is not None
    assert found.artifact[2] < 1024 * 1024
    assert len(found.output) < 5000


def test_only_standard_output_is_read_for_json_and_what_was_read_is_not_told_twice(scene: Scene):
    said = json.dumps([{"code": "X1", "filename": str(scene.folder / "a.py"), "message": "no"}])
    found = scene.judged(shell(f"echo warned >&2; echo '{said}'; exit 1", "ruff"))

    assert found.failures == {"a.py:X1": 1}
    assert found.output == ""


def test_what_a_gate_writes_is_put_back(scene: Scene):
    found = scene.judged(shell("echo more >>a.txt; echo new >b.txt"))

    assert (found.state, found.wrote) == ("passed", ("a.txt", "b.txt"))
    assert scene.tree_now() == scene.tree


def test_what_a_formatter_writes_is_kept_and_told(scene: Scene):
    found = scene.judged(shell("echo more >>a.txt", writes="keep"))

    assert (found.state, found.wrote) == ("passed", ("a.txt",))
    assert (scene.folder / "a.txt").read_text() == "textmore\n"


def test_a_second_try_sees_nothing_of_what_the_first_has_written(scene: Scene):
    """Otherwise a formatter that fails would call its own work flaky."""
    command = "test -e b.txt && exit 0; echo new >b.txt; exit 1"

    assert scene.judged(shell(command, writes="keep")).state == "failed"
    assert scene.judged(shell(command)).state == "failed"


def test_what_was_left_by_a_gate_that_was_killed_is_put_back_before_the_next(scene: Scene):
    (scene.folder / "left.txt").write_text("by another")

    assert scene.judged(shell("test ! -e left.txt")).state == "passed"


def test_another_tree_than_the_one_that_is_meant_is_not_judged(scene: Scene):
    (scene.folder / "left.txt").write_text("by another")
    found = scene.judged(shell('echo x >"$TOP/runs"'), put_back=lambda tree: ())

    assert found.state == "error"
    assert not (scene.folder.parent / "runs").exists()


@pytest.mark.parametrize(
    "changed, state",
    [(("doc/a.md",), "skipped"), (("doc/a.md", "src/x/a.py"), "passed"), (None, "passed")],
)
def test_a_gate_is_skipped_when_nothing_of_its_paths_is_changed(scene: Scene, changed, state: str):
    found = scene.judged(shell("true", paths=("src/**",)), changed_paths=changed)

    assert found.state == state
    assert found.reason == ("nothing is changed in src/**" if state == "skipped" else None)


def test_secrets_are_in_nothing_that_is_told(scene: Scene):
    said = json.dumps([{"code": "s3cret", "filename": "a.py", "message": "s3cret"}])
    found = scene.judged(shell(f"echo '{said}'; exit 1", "ruff"), secrets=("s3cret",))

    assert found.failures == {"a.py:***": 1}
    assert "s3cret" not in json.dumps(found.as_json())
    assert found.artifact is not None
    with scene.store.open(found.artifact[1]) as kept:
        assert b"s3cret" not in kept.read()


def test_a_gate_that_is_not_wanted_any_more_is_ended(scene: Scene):
    groups: list[int] = []

    def begins(group: int) -> bool:
        groups.append(group)
        return True

    with pytest.raises(Withdrawn):
        scene.judged(shell("sleep 600"), mandate=Mandate(begins, wanted=lambda: False))

    assert not has_members(groups[0])


@pytest.mark.parametrize("bare", [False, True])
def test_a_clean_gate_runs_in_a_checkout_of_the_tree_that_goes_away(
    scene: Scene, tmp_path: Path, bare: bool
):
    (scene.folder / ".gitignore").write_text("made\n")
    commit(scene.folder, "run.sh", "#!/bin/sh\ncat in/a.txt; test -x run.sh; pwd >$TOP/at\n")
    commit(scene.folder, "in/a.txt", "text\n")
    (scene.folder / "run.sh").chmod(0o755)
    (scene.folder / "link").symlink_to("in")
    (scene.folder / "made").touch()
    scene.tree = scene.tree_now()
    repository = Repository(str(scene.folder))
    if bare:
        git(tmp_path, "clone", "--quiet", "--bare", "tree", "bare.git")
        git(scene.folder, "commit", "--quiet", "--message", "all")
        git(tmp_path / "bare.git", "fetch", "--quiet", str(scene.folder), "HEAD")
        repository = Repository(str(tmp_path / "bare.git"))
    gate = shell(
        'test -L link && test ! -e made && ./run.sh && touch new && test "$PWD" = "$(pwd)"'
    )

    found = scene.judged(
        gate._replace(clean=True), checkout=partial(checkouts.checkout, repository)
    )
    folder = Path((tmp_path / "at").read_text().strip())

    assert (found.state, found.wrote) == ("passed", ())
    assert not folder.is_relative_to(scene.folder)
    assert not folder.exists()
    assert not (scene.folder / "new").exists()


def test_a_clean_gate_runs_in_the_worktree_where_nobody_makes_checkouts(scene: Scene):
    found = scene.judged(shell("touch made")._replace(clean=True))

    assert found.wrote == ("made",)


def test_patch_safety_is_judged_by_what_git_says_of_the_tree(scene: Scene):
    asked: list[str] = []

    def changes(tree: str):
        asked.append(tree)
        return [RawChange("up", "000000", "120000", 9, "../../up")]

    found = scene.judged(BUILT_IN["patch-safety"], changes=changes)
    nothing_known = scene.judged(BUILT_IN["patch-safety"])

    assert found.failures == {"up:link": 1}
    assert set(asked) == {scene.tree}
    assert nothing_known.state == "skipped"


def with_tools() -> Callable[[Gate], Gate]:
    """The gate with its tool as it is installed beside these tests."""
    folder = Path(sys.executable).parent

    def found(gate: Gate) -> Gate:
        return gate._replace(run=(str(folder / gate.run[0]), *gate.run[1:]))

    return found


@pytest.mark.parametrize(
    "name, content, failures",
    [
        ("ruff", "import os\n", {"src/m.py:F401": 1}),
        ("ruff", "def f(:\n", {"src/m.py:invalid-syntax": 2}),
        ("ruff-format", "x  =  1\n", {"src/m.py": 1}),
        ("pytest", "def test_a():\n    assert 1 == 2\n", {"src.test_m::test_a": 1}),
        ("pytest", "import nothing_of_this_name\n", {"src.test_m": 1}),
    ],
)
def test_real_tools_are_understood(scene: Scene, name: str, content: str, failures: dict):
    path = scene.folder / "src" / ("test_m.py" if name == "pytest" else "m.py")
    path.parent.mkdir()
    path.write_text(content)
    scene.tree = scene.tree_now()
    gate = with_tools()(BUILT_IN[name])
    if name == "pytest":
        gate = gate._replace(run=(*gate.run, "-p", "no:randomly", "-p", "no:cacheprovider"))
    found = scene.judged(gate, Base("passed", tests=0))

    assert (found.state, found.failures) == ("failed", failures)
    assert found.texts.keys() == failures.keys()


@pytest.mark.parametrize("where", ["is printed", "is reported"])
def test_a_pattern_that_takes_years_is_an_error_and_no_hang(scene: Scene, monkeypatch, where: str):
    """The time is that of the processor, so that a busy machine changes nothing."""
    monkeypatch.setattr(matching, "CPU_SECONDS", 1)
    line = "a" * 60 + "!"
    command = f"echo {line}" + ("" if where == "is printed" else " >{report}")
    found = scene.judged(shell(command, "lines", pattern="(a+)+$"), Base("passed"))

    assert found.state == "error"
    assert found.reason == (
        "its pattern took longer than 1 s on what it put out: make it a simpler one"
    )


def test_what_is_read_apart_is_what_would_be_read_here(scene: Scene, monkeypatch):
    gate = shell("echo FAIL one; echo ok two; echo FAIL three; exit 1", "lines")
    gate = gate._replace(pattern=r"^FAIL (?P<id>\w+)")
    here = scene.judged(gate._replace(pattern="FAIL"))
    assert matching.has_to_be_apart(gate) and not matching.has_to_be_apart(BUILT_IN["ruff-format"])

    found = scene.judged(gate)
    assert (found.state, found.failures) == ("failed", {"one": 1, "three": 1})
    assert (found.texts["one"], here.failures) == ("FAIL one", {"FAIL one": 1, "FAIL three": 1})


def test_a_command_that_the_signal_to_its_caller_has_met_too_has_come_to_nothing(scene: Scene):
    def begins(group: int) -> bool:
        os.kill(os.getpid(), signal.SIGTERM)
        os.killpg(group, signal.SIGTERM)
        until(lambda: not is_alive(group))
        return True

    noted: list[object] = []
    mandate = Mandate(begins=begins, noted=lambda results: bool(noted.append(results)))
    spec = GateSpec("exit 0", str(scene.folder), None, os.environ, PATIENCE_SECONDS)
    with pytest.raises(Interrupted), Runner(print, mandate) as runner:
        finished(runner.series([lambda: spec]))
    assert noted == [], "it is no check that has failed"
