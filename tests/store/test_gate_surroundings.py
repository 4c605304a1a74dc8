"""Gates in the surroundings that there really are: what is said of them, and what counts.

Real repositories, worktrees, environments and tools; no index and no network. The active
environment is made by hand, with the tools of these tests and an editable install as installers
write it.
"""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from inbox_orch.orch.gates import surroundings_rows
from inbox_orch.orch.gates.canary import canary_read, canary_spec
from inbox_orch.orch.gates.definitions import Gate
from inbox_orch.orch.gates.finding import configured, find
from inbox_orch.orch.gates.interpreters import activated
from inbox_orch.orch.gates.look import Found
from inbox_orch.orch.gates.looking import FolderLook, Machine, TreeLook
from inbox_orch.orch.gates.proving import (
    UNKNOWN,
    Proof,
    Sighting,
    Surroundings,
    base_by,
    needed,
    proof_of,
)
from inbox_orch.orch.gates.results import GateResult
from inbox_orch.orch.gates.running import Runner
from inbox_orch.orch.gates.spec import GateSpec
from inbox_orch.orch.gates.trying import Ground, trying
from inbox_orch.orch.gates.turns import finished
from inbox_orch.orch.git.repository import Repository
from support.runs import Site, git, make_repository

PYTEST = ("python3", "-m", "pytest", "-q", "--junitxml={report}")
SRC = """
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"
[project]
name = "lexer"
version = "1"
"""
LEXER = "def words(text):\n    return text.split()\n"
BROKEN = "def words(text):\n    return []\n"
TEST = "import lexer\n\ndef test_words():\n    assert lexer.words('a b') == ['a', 'b']\n"


class Place:
    """A repository, an active environment, and a worktree of the repository's base."""

    def __init__(self, folder: Path, **files: str) -> None:
        self.folder = folder
        self.main = make_repository(folder / "main")
        self.write(self.main, files)
        git(self.main, "add", "--all")
        git(self.main, "commit", "--quiet", "--message", "Begin")
        self.worktree = folder / "trees" / "base"
        git(self.main, "worktree", "add", "--quiet", "--detach", str(self.worktree))
        self.active = folder / "active"
        make_environment(self.active)
        # Without the plugins of these tests: they take most of the time.
        bare = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        self.environment = {**bare, "PATH": f"{self.active}/bin:/usr/bin:/bin"}

    def write(self, where: Path, files: dict[str, str]) -> None:
        for name, text in files.items():
            path = where / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def look(self) -> TreeLook:
        return TreeLook(Repository.at(str(self.main)), "HEAD", Machine(self.environment))

    def set_up(self, found: Found) -> None:
        if found.setup is not None:
            subprocess.run(found.setup, shell=True, cwd=self.worktree, check=True, env=self.gates)

    @property
    def gates(self) -> dict[str, str]:
        return activated(self.environment, str(self.worktree))

    def tree_now(self) -> str:
        index = {**os.environ, "GIT_INDEX_FILE": str(self.folder / "index")}
        for words in (("read-tree", "HEAD"), ("add", "--all")):
            subprocess.run(("git", *words), cwd=self.worktree, env=index, check=True)
        written = ("git", "write-tree")
        done = subprocess.run(
            written, cwd=self.worktree, env=index, check=True, capture_output=True
        )
        return done.stdout.decode().strip()

    def put_back(self, tree: str) -> tuple[str, ...]:
        git(self.worktree, "clean", "-fdq")
        return ()

    def ground(self, runner: Runner) -> Ground:
        return Ground(
            runner,
            str(self.worktree),
            str(self.main / ".git"),
            self.gates,
            (),
            None,
            self.tree_now,
            self.put_back,
            lambda before, after: (),
            keeps=False,
        )

    def result(self, gate: Gate, proof: Proof | None = None) -> GateResult:
        """What a gate comes to in the worktree as it is, beside what was proved of the base."""
        base = None if proof is None else base_by(proof)
        with Runner(lambda _: None) as runner:
            return finished(trying(self.ground(runner), gate, self.tree_now(), base))

    def sighting(self, gate: Gate, packages: tuple[str, ...]) -> Sighting:
        common = str(self.main / ".git")
        spec = GateSpec("", str(self.worktree), common, self.gates, gate.timeout_seconds)
        canary = canary_spec(gate, spec, packages)
        if canary is None:
            return UNKNOWN
        with Runner(lambda _: None) as runner:
            return canary_read(runner.run(canary).content.decode(), str(self.worktree))

    def prove(self, found: Found) -> Surroundings:
        self.set_up(found)
        before = self.tree_now()
        proofs = []
        for gate in needed(found, None):
            seen = self.sighting(gate, found.packages)
            proofs.append(proof_of(gate, self.result(gate), seen, found.packages))
        assert self.tree_now() == before
        return Surroundings().with_proofs(found, proofs)

    def proof(self, found: Found) -> Proof:
        (proof,) = self.prove(found).proofs
        return proof


def make_environment(folder: Path) -> None:
    """A virtual environment that has the tools of these tests, and no installer."""
    made = [sys.executable, "-m", "venv", "--without-pip", "--symlinks", str(folder)]
    subprocess.run(made, check=True)
    site_packages(folder).joinpath("tools.pth").write_text(sysconfig.get_path("purelib") + "\n")
    # As installers write it: the interpreter of the environment stands in the first line.
    program = folder / "bin" / "pytest"
    program.write_text(f"#!{folder}/bin/python3\nimport sys, pytest\nsys.exit(pytest.main())\n")
    program.chmod(0o755)
    (folder / "bin" / "ruff").symlink_to(Path(sys.executable).parent / "ruff")


def site_packages(environment: Path) -> Path:
    (found,) = environment.glob("lib/python*/site-packages")
    return found


def install_editable(environment: Path, source: Path) -> None:
    """What `pip install -e` leaves: a file that puts a folder on the path of that interpreter."""
    site_packages(environment).joinpath("__editable__.lexer-1.pth").write_text(f"{source}\n")


def in_worktree(source: str = "src") -> str:
    """A set-up that needs no index: an environment in the worktree with an editable install."""
    tools = sysconfig.get_path("purelib")
    return (
        f"{sys.executable} -m venv --without-pip --symlinks .venv && printf '*\\n' >"
        f" .venv/.gitignore"
        f" && for lib in .venv/lib/python*/site-packages; do"
        f" printf '%s\\n' {tools} \"$PWD/{source}\" > $lib/here.pth; done"
    )


@pytest.fixture
def place(tmp_path: Path, request: pytest.FixtureRequest) -> Place:
    """With the files that the test is given."""
    return Place(tmp_path, **request.param)


def with_files(**files: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("place", [files], indirect=True, ids=["here"])


IN_SRC = {"pyproject.toml": SRC, "src/lexer/__init__.py": LEXER, "tests/test_words.py": TEST}
AT_TOP = {"lexer/__init__.py": LEXER, "tests/test_words.py": TEST}


# -- an editable install in the active environment -----------------------------------------------


@with_files(**IN_SRC)
def test_what_looks_at_the_main_checkout_is_no_gate(place: Place):
    install_editable(place.active, place.main / "src")
    found = find(place.look(), setup=False)
    (gate,) = found.gates

    proof = place.proof(found)

    assert (proof.usable, proof.state, proof.reason) == (False, "passed", "elsewhere")
    assert proof.sentence == (
        "`tests` looked at the main checkout: it imports `lexer` from"
        f" {place.main}/src/lexer, so no change in a worktree would be seen. An editable install or"
        " PYTHONPATH does that; let `setup` make an environment in the worktree (`python3 -m venv"
        " .venv && .venv/bin/pip install -e .`)."
    )
    # It is as bad as that: this passes.
    place.write(place.worktree, {"src/lexer/__init__.py": BROKEN})
    assert place.result(gate).state == "passed"


@with_files(**IN_SRC)
def test_with_an_environment_in_the_worktree_it_is_one_and_sees_the_change(place: Place):
    install_editable(place.active, place.main / "src")
    found = find(place.look(), setup=in_worktree())
    (gate,) = found.gates

    proof = place.proof(found)

    assert (proof.usable, proof.tests) == (True, 1)
    assert proof.sentence == "`tests` passes on the base (1 test)."
    place.write(place.worktree, {"src/lexer/__init__.py": BROKEN})
    assert place.result(gate, proof).failures == {"tests.test_words::test_words": 1}


@pytest.mark.parametrize(
    "run", [("pytest", "-q", "tests", "--junitxml={report}"), "pytest -q --junitxml {report} tests"]
)
@with_files(**AT_TOP)
def test_a_program_on_path_is_looked_through_too(place: Place, run: Any):
    """pytest called by its name has the worktree not on its path, as `python -m pytest` has."""
    install_editable(place.active, place.main)
    gate = Gate("tests", run, "junit")
    found = configured(find(place.look(), setup=False), [gate])

    seen = place.sighting(gate, found.packages)

    assert seen == Sighting("elsewhere", "lexer", f"{place.main}/lexer", str(place.main), True)


@with_files(**AT_TOP)
def test_what_a_started_process_would_import_is_said_and_is_no_objection(place: Place):
    install_editable(place.active, place.main)

    proof = place.proof(find(place.look(), setup=False))

    assert proof.usable
    assert proof.sentence == (
        "`tests` passes on the base (1 test). A process that its tests start may import"
        " `lexer` from"
        f" {place.main}/lexer instead of the worktree."
    )


@with_files(**{**IN_SRC, "pyproject.toml": SRC + "[tool.pytest.ini_options]\npythonpath='src'\n"})
def test_the_path_that_pytest_makes_counts(place: Place):
    install_editable(place.active, place.main / "src")
    found = find(place.look(), setup=False)

    seen = place.sighting(found.gates[0], found.packages)

    assert (seen.state, seen.beside) == ("here", f"{place.main}/src/lexer")


@with_files(**IN_SRC)
def test_what_was_installed_once_is_a_copy(place: Place):
    shutil.copytree(place.main / "src/lexer", site_packages(place.active) / "lexer")

    proof = place.proof(find(place.look(), setup=False))

    assert (proof.usable, proof.reason) == (False, "copy")
    assert proof.sentence == (
        f"`tests` looked at a copy: it imports `lexer` from"
        f" {site_packages(place.active)}/lexer, where"
        " it was installed once, so no change would be seen. Let `setup` install it with"
        " `-e`, into an"
        " environment in the worktree."
    )


@with_files(**IN_SRC)
def test_a_finder_of_an_installer_leads_to_the_main_checkout_too(place: Place):
    """Newer editable installs put no folder on the path, but a finder that knows one package."""
    finder = (
        "import sys\nfrom importlib.util import spec_from_file_location as spec_from\n"
        f"AT = {str(place.main / 'src/lexer/__init__.py')!r}\n"
        "class Finder:\n    @classmethod\n    def find_spec(cls, name, path=None, target=None):\n"
        "        return spec_from(name, AT) if name == 'lexer' else None\n"
        "def install():\n    sys.meta_path.append(Finder)\n"
    )
    site_packages(place.active).joinpath("__editable___lexer_finder.py").write_text(finder)
    line = "import __editable___lexer_finder as f; f.install()\n"
    site_packages(place.active).joinpath("__editable__.lexer-1.pth").write_text(line)
    found = find(place.look(), setup=False)

    seen = place.sighting(found.gates[0], found.packages)

    assert (seen.state, seen.main) == ("elsewhere", True)


@with_files(**{**AT_TOP, "json/__init__.py": ""})
def test_a_folder_that_is_called_as_a_module_of_python_says_nothing(place: Place):
    gate = Gate("tests", ("pytest", "-q"), "junit")

    assert place.sighting(gate, ("json",)) == UNKNOWN


# -- without what it needs -----------------------------------------------------------------------


@with_files(
    **{
        "pyproject.toml": SRC + 'dependencies = ["no-such-thing"]\n',
        "src/lexer/__init__.py": "import no_such_thing\n",
        "tests/test_words.py": TEST,
        "tests/test_other.py": "def test_one():\n    assert True\n",
    }
)
def test_without_its_dependencies_nothing_is_judged(place: Place):
    install_editable(place.active, place.worktree / "src")
    found = find(place.look(), setup=False)
    (gate,) = found.gates

    proof = place.proof(found)

    assert (proof.usable, proof.state, proof.reason) == (False, "failed", "missing_module")
    assert proof.sentence == (
        "`tests` needs `no_such_thing`, which is not there in a fresh worktree, so it"
        " cannot judge. Let"
        " `setup` of the config install it, so that `python3 -m pytest -q`"
        " works."
    )
    # Its one failure is an old one, and would be the only one whatever is changed.
    place.write(place.worktree, {"src/lexer/__init__.py": "import no_such_thing\n" + BROKEN})
    assert place.result(gate).failures == proof.failures


@with_files(**{"tests/helper.py": LEXER})
def test_a_gate_that_finds_no_test_is_none(place: Place):
    proof = place.proof(Found(gates=(Gate("tests", PYTEST, "junit"),)))

    assert (proof.usable, proof.state, proof.reason) == (False, "error", "no_tests")
    assert proof.sentence == (
        "`tests` ran no test on the base, so it cannot judge. Let `python3 -m pytest -q`"
        " run tests there, or leave the gate out."
    )


@with_files(**{"tests/test_a.py": "def broken(:\n", "tests/test_b.py": "def test_b(): pass\n"})
def test_a_file_that_cannot_be_loaded_keeps_every_test_from_running(place: Place):
    proof = place.proof(find(place.look(), setup=False))

    assert (proof.usable, proof.reason) == (False, "no_tests")
    assert "cannot judge: `tests.test_a` cannot be loaded. Let" in proof.sentence


# -- Node ----------------------------------------------------------------------------------------

# As npm does it, as far as these tests go: the tools of the packages come first on PATH.
NPM = """#!/bin/sh
PATH="$PWD/node_modules/.bin:$PATH"
case $1 in
ci) mkdir -p node_modules/.bin
    printf '#!/bin/sh\\ngrep -q good code.js\\n' > node_modules/.bin/checker
    chmod +x node_modules/.bin/checker ;;
test) exec sh -c checker ;;
esac
"""
PACKAGE = {
    "package.json": json.dumps(
        {"devDependencies": {"checker": "1"}, "scripts": {"test": "checker"}}
    ),
    "package-lock.json": "{}",
    ".gitignore": "node_modules\n",
    "code.js": "good\n",
}


@pytest.fixture(params=["a stand-in for npm", "npm"])
def npm(place: Place, request: pytest.FixtureRequest) -> str:
    """A stand-in everywhere, and the real one where it is installed."""
    program = place.active / "bin" / "npm"
    if request.param == "npm":
        real = shutil.which("npm")
        if real is None or shutil.which("node") is None:
            pytest.skip("there is no npm here")
        place.environment["PATH"] += f":{os.path.dirname(real)}"
    else:
        program.write_text(NPM)
        program.chmod(0o755)
    return request.param


@with_files(**PACKAGE)
def test_without_its_packages_a_node_project_has_no_gate(place: Place, npm: str):
    found = find(place.look(), setup=False)

    proof = place.proof(found)

    assert found.gates == (Gate("tests", ("npm", "test")),)
    assert (proof.usable, proof.state, proof.reason) == (False, "error", "suspect")
    assert proof.sentence == (
        "`tests` could not be judged on the base: its command could not be run (exit"
        " status 127). Try"
        " `npm test` in a fresh worktree, and give what works there under `gates` of the config."
    )


@with_files(**PACKAGE)
def test_with_its_packages_it_has_one(place: Place):
    program = place.active / "bin" / "npm"
    program.write_text(NPM)
    program.chmod(0o755)
    found = find(place.look())

    proof = place.proof(found)

    assert (found.setup, found.why) == ("npm ci", "package-lock.json")
    assert (proof.usable, proof.sentence) == (True, "`tests` passes on the base.")
    place.write(place.worktree, {"code.js": "bad\n"})
    assert place.result(found.gates[0], proof).state == "failed"


WORKSPACES = {
    "package.json": json.dumps({"workspaces": ["packages/*"], "scripts": {"test": "node t.js"}}),
    "packages/a/package.json": json.dumps({"name": "@it/a"}),
    "packages/a/index.js": "",
}


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no node here")
@with_files(**WORKSPACES)
def test_a_worktree_below_the_main_checkout_finds_the_packages_of_that(place: Place):
    place.environment["PATH"] += f":{os.path.dirname(str(shutil.which('node')))}"
    place.worktree = place.main / "trees" / "inner"
    git(place.main, "worktree", "add", "--quiet", "--detach", str(place.worktree))
    link(place.main)
    (gate,), packages = (Gate("tests", ("npm", "test")),), ("packages/a/package.json",)

    seen = place.sighting(gate, packages)
    link(place.worktree)

    at = f"{place.main}/packages/a"
    assert seen == Sighting("elsewhere", "@it/a", at, str(place.main), True)
    assert place.sighting(gate, packages).state == "here"


def link(folder: Path) -> None:
    """What npm makes of a workspace."""
    (folder / "node_modules/@it").mkdir(parents=True)
    (folder / "node_modules/@it/a").symlink_to("../../packages/a")


# -- old findings and failures -------------------------------------------------------------------


OLD = {
    "pyproject.toml": "[tool.ruff.lint]\nselect = ['F']\n[tool.ruff.format]\n",
    "lexer/__init__.py": LEXER,
    "lexer/old.py": "".join(f"import old_{n}\n" for n in range(30)),
    "tests/test_words.py": TEST
    + "".join(f"def test_old_{n}():\n    assert lexer.words('a') == {n}\n\n" for n in range(3)),
}


@with_files(**OLD)
def test_what_is_old_is_known_and_what_is_new_counts(place: Place):
    found = find(place.look(), setup=False)
    lint, form, tests = found.gates

    known = place.prove(found)

    assert [proof.sentence for proof in known.proofs] == [
        "`lint` has 30 failures on the base: only new ones count.",
        "`format` has 1 failure on the base: only new ones count.",
        "`tests` has 3 failures on the base (4 tests): only new ones count.",
    ]
    assert known.usable == (lint, form, tests)
    unchanged = [place.result(gate, known.proof(gate)) for gate in found.gates]
    assert [(each.state, each.known) for each in unchanged] == [
        ("passed", number) for number in (30, 1, 3)
    ]
    place.write(place.worktree, {"lexer/__init__.py": "import os\n\n\n" + BROKEN})
    changed = [place.result(gate, known.proof(gate)) for gate in (lint, tests)]
    assert [dict(each.failures) for each in changed] == [
        {"lexer/__init__.py:F401": 1},
        {"tests.test_words::test_words": 1},
    ]


# -- what is stored ------------------------------------------------------------------------------


@pytest.fixture
def found() -> Found:
    lint, tests = Gate("lint", ("ruff",), "ruff"), Gate("tests", PYTEST, "junit")
    return Found("npm ci", "package-lock.json", (lint, tests), ("A note.",), ("src/lexer",))


@pytest.fixture
def stored(site: Site) -> Iterator[tuple[Site, str]]:
    return site, site.open_run().id


def test_what_was_proved_is_had_again_as_it_was(stored: tuple[Site, str], found: Found):
    site, run_id = stored
    lint, tests = found.gates
    failed = GateResult("lint", "failed", "2 failures", {"a.py:F401": 2}, {"a.py:F401": "unused"})
    proofs = [proof_of(lint, failed), proof_of(tests, GateResult("tests", "passed", tests=4))]
    database = site.scheduler.desk.database
    with database.transaction() as tx:
        put = surroundings_rows.put(tx, run_id, "1" * 40, found, proofs)

    with database.snapshot() as session:
        again = surroundings_rows.get(session, run_id, "1" * 40)
        base = surroundings_rows.base_of(session, run_id, "1" * 40, lint)
        other = surroundings_rows.base_of(session, run_id, "2" * 40, lint)

    assert again == put
    assert (put.setup, put.why, put.notes, put.packages) == (found.setup, *found[1:2], *found[3:])
    assert needed(found, again) == []
    assert (base.state, base.failures) == ("failed", {"a.py:F401": 2})
    assert (other.state, other.reason) == ("unusable", "it was not tried there")


def test_a_gate_that_is_tried_later_is_added(stored: tuple[Site, str], found: Found):
    site, run_id = stored
    lint, tests = found.gates
    first = found._replace(gates=(lint,))
    database = site.scheduler.desk.database
    with database.transaction() as tx:
        surroundings_rows.put(
            tx, run_id, "1", first, [proof_of(lint, GateResult("lint", "passed"))]
        )
    with database.transaction() as tx:
        passed = GateResult("tests", "passed", tests=1)
        known = surroundings_rows.put(tx, run_id, "1", found, [proof_of(tests, passed)])

    assert needed(first, None) == [lint]
    assert [proof.gate for proof in known.proofs] == ["lint", "tests"]
    assert known.usable == (lint, tests)


# -- looks ---------------------------------------------------------------------------------------


@with_files(**{**IN_SRC, "a/b/c/d/e.py": "", "vendor/x/y.py": "", "größe/ü.py": "x\n"})
def test_a_commit_and_a_folder_look_alike(place: Place):
    tree = place.look()
    folder = FolderLook(str(place.worktree), Machine(place.environment))

    assert [path for path in folder.paths if path != ".git"] == list(tree.paths)
    assert "a/b/c/d" in tree.paths
    assert not {"a/b/c/d/e.py", "vendor/x"} & set(tree.paths)
    assert tree.text("größe/ü.py") == folder.text("größe/ü.py") == "x\n"
    assert tree.text("größe/ü.py", 1) is folder.text("größe/ü.py", 1) is None
    assert tree.text("src") is folder.text("src") is None
    assert tree.text("none") is folder.text("none") is None
    assert find(tree) == find(folder)


@with_files(**IN_SRC)
def test_no_link_is_followed_and_no_pipe_is_waited_for(place: Place):
    (place.worktree / "link.toml").symlink_to(place.main / "pyproject.toml")
    os.mkfifo(place.worktree / "pipe.toml")
    (place.worktree / "circle").symlink_to(".")
    folder = FolderLook(str(place.worktree), Machine(place.environment))

    assert folder.text("link.toml") is folder.text("pipe.toml") is None
    assert not [path for path in folder.paths if path.startswith("circle/")]


def test_the_machine_is_asked_outside_of_the_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "only_here.py").write_text("")
    monkeypatch.chdir(tmp_path)
    machine = Machine({**os.environ, "PATH": os.path.dirname(sys.executable), "PYTHONPATH": "."})

    assert machine.imports("python3", "pytest")
    assert not machine.imports("python3", "only_here")
    assert not machine.imports("no-such-python", "pytest")
    # A shim chooses the interpreter by the folder that it is called in.
    shim = tmp_path / "bin" / "python3"
    shim.parent.mkdir()
    shim.write_text(f"#!/bin/sh\npwd > {tmp_path}/asked\n")
    shim.chmod(0o755)
    assert Machine({"PATH": str(shim.parent)}).imports("python3", "pytest")
    assert (tmp_path / "asked").read_text() == "/\n"
    assert not machine.has("no-such-python")
