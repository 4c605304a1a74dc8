"""What is found in a repository by its files alone: set-up, gates, packages, and what is said."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inbox_orch.orch.gates.built_in import BUILT_IN
from inbox_orch.orch.gates.definitions import Gate
from inbox_orch.orch.gates.finding import configured, find
from inbox_orch.orch.gates.look import MOST_BYTES, Found
from inbox_orch.orch.gates.readers.read import read
from inbox_orch.shared.processes.endings import Ending

VENV = "python3 -m venv .venv && printf '*\\n' > .venv/.gitignore"
PIP = f"{VENV} && .venv/bin/python -m pip install --quiet --disable-pip-version-check"
UV = "UV_PROJECT_ENVIRONMENT=.venv uv sync --frozen"
BUILT = "[build-system]\nrequires = ['x']\n"
TESTS = {"tests/test_a.py": "import pytest\n"}
OWN = Gate("tests", (".venv/bin/python", "-m", "pytest", "-q", "--junitxml={report}"), "junit")
REFORMATTED = BUILT_IN["ruff-format"].pattern
ACTIVE = OWN._replace(run=("python3", *OWN.run[1:]))


class Files:
    """A repository that is a table of texts, on a machine with some programs and modules."""

    def __init__(self, files: dict[str, str], has: str = "python3 npm pnpm uv cargo go") -> None:
        self.files, self.programs = files, has.split()
        folders = {path[:at] for path in files for at, c in enumerate(path) if c == "/"}
        self.paths: Sequence[str] = sorted({*files, *folders})

    def text(self, path: str, most_bytes: int = MOST_BYTES) -> str | None:
        return self.files.get(path)

    def has(self, program: str) -> bool:
        return program in self.programs

    def imports(self, interpreter: str, module: str) -> bool:
        return f"{interpreter}:{module}" in self.programs


def project(*lines: str, built: bool = True) -> str:
    return (BUILT if built else "") + "[project]\nname = 'a-b'\n" + "\n".join(lines)


@pytest.mark.parametrize(
    "files, setup, why",
    [
        # What a lock says is exact; extras and groups of tests are asked for by name.
        ({"uv.lock": ""}, UV, "uv.lock"),
        (
            {
                "uv.lock": "",
                "pyproject.toml": "[project.optional-dependencies]\ntests = []\ndocs = []\n"
                "[dependency-groups]\ndev = ['pytest']\nlint = []\n",
            },
            f"{UV} --extra tests --group dev --group lint",
            "uv.lock",
        ),
        (
            {"uv.lock": "", **TESTS},
            f"{UV} && uv pip install --quiet --python .venv/bin/python pytest",
            "uv.lock",
        ),
        # The project itself is installed so that changes are seen.
        (
            {"pyproject.toml": project("dependencies = ['x>=1']")},
            f"{PIP} -e .",
            "pyproject.toml",
        ),
        (
            {
                "pyproject.toml": project(
                    "[project.optional-dependencies]",
                    "dev = ['ruff']",
                    "test = ['Pytest[x]>=8 ; python_version > \"3\"']",
                    "docs = ['y']",
                ),
                **TESTS,
            },
            f"{PIP} -e '.[dev,test]'",
            "pyproject.toml",
        ),
        ({"setup.py": ""}, f"{PIP} -e .", "setup.py"),
        (
            {"setup.py": "", "setup.cfg": "[options.extras_require]\ntest =\n  pytest\n", **TESTS},
            f"{PIP} -e '.[test]'",
            "setup.py",
        ),
        # Groups are no extras: pip knows them only since 25.1, so what they say is installed.
        (
            {
                "pyproject.toml": project(
                    "[dependency-groups]",
                    "test = ['pytest>=8', {include-group = 'more'}]",
                    "more = ['z', {include-group = 'test'}]",
                ),
                **TESTS,
            },
            f"{PIP} -e . 'pytest>=8' z",
            "pyproject.toml",
        ),
        # What does not say how it is built is not installed, but what it needs is.
        (
            {"pyproject.toml": project("dependencies = ['x<2']", built=False)},
            f"{PIP} 'x<2'",
            "pyproject.toml",
        ),
        (
            {"pyproject.toml": project("dependencies = ['x']", "[tool.uv]", "package = false")},
            f"{PIP} x",
            "pyproject.toml",
        ),
        ({"requirements.txt": "x\n"}, f"{PIP} -r requirements.txt", "requirements.txt"),
        (
            {
                "requirements-dev.txt": "-r requirements.txt\n",
                "requirements.txt": "-r requirements-dev.txt\npytest\n",
                **TESTS,
            },
            f"{PIP} -r requirements.txt -r requirements-dev.txt",
            "requirements.txt and requirements-dev.txt",
        ),
        # Where pytest is needed and not named, it is named.
        (
            {"requirements.txt": "x\n", **TESTS},
            f"{PIP} -r requirements.txt pytest",
            "requirements.txt and pytest, which it does not name",
        ),
        (TESTS, f"{PIP} pytest", "pytest, which its tests need"),
        # In `src` Python does not look by itself; setuptools does.
        (
            {"pyproject.toml": project(built=False), "src/a/__init__.py": ""},
            f"{PIP} -e .",
            "pyproject.toml",
        ),
        (
            {"pyproject.toml": project(), "src/a/__init__.py": ""},
            f"{PIP} -e .",
            "pyproject.toml",
        ),
        (
            {"pyproject.toml": project("[project.scripts]", "x = 'a:b'")},
            f"{PIP} -e .",
            "pyproject.toml",
        ),
        (
            {"pyproject.toml": project("dynamic = ['dependencies']")},
            f"{PIP} -e .",
            "pyproject.toml",
        ),
        ({"pyproject.toml": BUILT + "[tool.poetry]\n"}, f"{PIP} -e .", "pyproject.toml"),
        # Nothing to install, nothing to set up.
        ({"pyproject.toml": project(), "a/__init__.py": ""}, None, "nothing has to be installed"),
        ({"pyproject.toml": "[tool.ruff]\n"}, None, "nothing has to be installed"),
        ({"tests/test_a.py": "import unittest\n"}, None, "nothing has to be installed"),
        ({"README": ""}, None, "nothing has to be installed"),
        ({"package.json": "{}"}, None, "nothing has to be installed"),
        ({"Cargo.toml": ""}, None, "nothing has to be installed"),
        # Node.
        (
            {"package.json": '{"devDependencies": {"x": "1"}}', "package-lock.json": ""},
            "npm ci",
            "package-lock.json",
        ),
        (
            {"package.json": '{"dependencies": {"x": "1"}}', "pnpm-lock.yaml": ""},
            "pnpm install --frozen-lockfile",
            "pnpm-lock.yaml",
        ),
        (
            {"package.json": '{"dependencies": {"x": "1"}}'},
            "npm install --no-package-lock",
            "package.json",
        ),
        (
            {
                "package.json": '{"dependencies": {"x": "1"}, "packageManager": "pnpm@9.1.0"}',
                "package-lock.json": "",
                "pnpm-lock.yaml": "",
            },
            "pnpm install --frozen-lockfile",
            "pnpm-lock.yaml",
        ),
        (
            {
                "uv.lock": "",
                "package.json": '{"dependencies": {"x": "1"}}',
                "package-lock.json": "",
            },
            f"{UV} && npm ci",
            "uv.lock and package-lock.json",
        ),
    ],
)
def test_set_up_is_found_by_what_a_repository_says(files: dict[str, str], setup: Any, why: str):
    found = find(Files(files))

    assert (found.setup, found.why) == (setup, why)


def test_what_is_given_is_not_looked_for():
    files = Files({"uv.lock": "", **TESTS})
    given = find(files, setup="make env")
    none = find(files, setup=False)

    assert (given.setup, given.why, given.gates) == ("make env", "the config", (ACTIVE,))
    assert (none.setup, none.why) == (None, "set-up is switched off")
    # Without set-up there is no pytest on this machine.
    assert none.gates == (Gate("tests", ("python3", "-m", "unittest", "discover", "-s", "tests")),)


PIP_OF = {"requirements.txt": "pytest\nruff\nmypy\n"}
RUFF = "[tool.ruff]\nline-length = 90\n"


@pytest.mark.parametrize(
    "files, has, gates",
    [
        ({**TESTS, **PIP_OF}, "python3", [OWN]),
        ({"pyproject.toml": "[tool.pytest.ini_options]\nminversion='8'\n", **PIP_OF}, "", [OWN]),
        ({"setup.cfg": "[tool:pytest]\n", **PIP_OF}, "", [OWN]),
        ({"pytest.ini": "", **PIP_OF}, "", [OWN]),
        ({"src/a/tests/a_test.py": "", **PIP_OF}, "", [OWN]),
        # Without set-up, by what there is.
        (TESTS, "python3 python3:pytest pytest", [ACTIVE]),
        (TESTS, "python3 pytest", [OWN._replace(run=("pytest", "-q", "--junitxml={report}"))]),
        (
            {"test_a.py": "import unittest\n"},
            "python3",
            [Gate("tests", ("python3", "-m", "unittest"))],
        ),
        (
            {"checks/test_a.py": "import unittest\n"},
            "python3",
            [Gate("tests", ("python3", "-m", "unittest", "discover", "-s", "checks"))],
        ),
        (
            {"a/__init__.py": "", "a/test_a.py": "import unittest\n"},
            "python3",
            [Gate("tests", ("python3", "-m", "unittest"))],
        ),
        # Linters only where they have settings; the one that set-up installs is taken.
        (
            {"pyproject.toml": RUFF, **PIP_OF},
            "ruff",
            [
                Gate(
                    "lint",
                    (".venv/bin/python", "-m", "ruff", "check", "--output-format=json", "."),
                    "ruff",
                )
            ],
        ),
        (
            {"ruff.toml": "[format]\n"},
            "ruff",
            [
                Gate("lint", ("ruff", "check", "--output-format=json", "."), "ruff"),
                Gate("format", ("ruff", "format", "--check", "."), "lines", pattern=REFORMATTED),
            ],
        ),
        (
            {"mypy.ini": "[mypy]\n"},
            "mypy",
            [Gate("types", ("mypy", "--no-pretty", "."), "mypy")],
        ),
        (
            {"pyproject.toml": "[tool.mypy]\nfiles = ['a']\n", "requirements.txt": "x"},
            "mypy",
            [
                Gate(
                    "types",
                    ("mypy", "--no-pretty", "--python-executable", ".venv/bin/python"),
                    "mypy",
                )
            ],
        ),
        ({"requirements.txt": "ruff\nmypy\n"}, "ruff mypy", []),
        # Scripts of a package.
        (
            {"package.json": '{"scripts": {"test": "x", "lint": "y", "typecheck": "z"}}'},
            "npm",
            [
                Gate("lint", ("npm", "run", "lint")),
                Gate("types", ("npm", "run", "typecheck")),
                Gate("tests", ("npm", "test")),
            ],
        ),
        (
            {
                "package.json": '{"scripts": {"test":'
                ' "echo \\"Error: no test specified\\" && exit 1"}}'
            },
            "npm",
            [],
        ),
        ({"package.json": '{"scripts": ["test"]}'}, "npm", []),
        (
            {"package.json": '{"scripts": {"test": "x"}}', **TESTS, **PIP_OF},
            "npm",
            [OWN, Gate("tests-node", ("npm", "test"))],
        ),
    ],
)
def test_gates_are_found_by_what_has_settings(files: dict[str, str], has: str, gates: list[Gate]):
    assert list(find(Files(files, has)).gates) == gates


@pytest.mark.parametrize(
    "files, has, note",
    [
        (
            {"uv.lock": "", "pyproject.toml": project("dependencies = ['x']")},
            "",
            "uv.lock is not used, since there is no `uv` on PATH: pip installs it.",
        ),
        (
            {"uv.lock": "", "requirements.txt": ""},
            "uv",
            "requirements.txt is not used, since there is uv.lock, too.",
        ),
        (
            {"poetry.lock": "", "pyproject.toml": BUILT},
            "",
            "poetry.lock is not used: `setup` of the config can call poetry.",
        ),
        (
            {"pyproject.toml": RUFF},
            "",
            "ruff has settings here and is no gate, since neither set-up nor PATH has `ruff`.",
        ),
        (
            {"package.json": "[]"},
            "npm",
            "package.json is passed over, since it is no object of JSON in UTF-8.",
        ),
        (
            {"package.json": "{}"},
            "",
            "package.json is not used, since there is no `npm` on PATH.",
        ),
        (
            {"package.json": "{}", "pnpm-lock.yaml": "", "package-lock.json": ""},
            "npm",
            "pnpm-lock.yaml is not used, since the packages are installed by npm.",
        ),
        (
            {"package.json": "{}", "yarn.lock": ""},
            "npm",
            "yarn.lock is not used: `setup` of the config can call yarn.",
        ),
        (
            {"package.json": '{"dependencies": {"x": "1"}}'},
            "npm",
            "There is no lock file: the packages installed today may be others tomorrow.",
        ),
        ({"go.mod": ""}, "", "go.mod is not used, since there is no `go` on PATH."),
        (
            {"test_a.py": "import unittest"},
            "python3",
            "The tests are run by unittest, since there is no pytest; it names no failures.",
        ),
        (
            {"back/end/pyproject.toml": "", "front/package.json": ""},
            "npm",
            (
                "No gate was found at the top; there is a project in `back/end`, `front`:"
                " name its gates,"
                " such as `cd back/end && …`, under `gates` of the config."
            ),
        ),
    ],
)
def test_what_was_seen_and_is_not_used_is_said(files: dict[str, str], has: str, note: str):
    assert find(Files(files, has)).notes == (note,)


def test_a_file_that_cannot_be_read_is_passed_over_and_the_rest_is_found():
    found = find(Files({"pyproject.toml": "[tool", "requirements.txt": "pytest\n", **TESTS}))

    assert found.gates == (OWN,)
    (note,) = found.notes
    assert note.startswith("pyproject.toml is passed over, since it is no TOML: ")


def test_what_is_tested_are_packages_and_named_modules():
    files = {
        "pyproject.toml": project("[tool.setuptools]", "py-modules = ['one', 'gone']"),
        **dict.fromkeys(
            ("a_b.py", "one.py", "other.py", "pkg/__init__.py", "pkg/sub/__init__.py"), ""
        ),
        **dict.fromkeys(("src/spaced/core.py", "src/full/__init__.py", "tests/__init__.py"), ""),
        **dict.fromkeys(("docs/__init__.py", "no-name/__init__.py", "plain/x.py"), ""),
    }

    found = find(Files(files))

    assert set(found.packages) == {"pkg", "src/full", "src/spaced", "a_b.py", "one.py"}


def test_workspaces_of_node_are_packages():
    inner = ("packages/a/package.json", "apps/deep/b/package.json", "other/package.json")
    package = '{"workspaces": ["./packages/*", "apps/**"]}'

    found = find(Files({"package.json": package, **dict.fromkeys(inner, "{}")}))

    assert set(found.packages) == set(inner[:2])


def test_what_somebody_names_takes_the_place_of_what_was_found():
    own, more = Gate("tests", "make test"), Gate("build", "make")

    found = configured(find(Files({**TESTS, **PIP_OF})), [own, more])

    assert found.gates == (own, more)


@pytest.mark.parametrize(
    "output",
    [
        b"Would reformat: a/b c.py\n1 file would be reformatted\n",
        b"unformatted: File would be reformatted\n --> a/b c.py:1:8\n  |\n  - x\n1 + y\n\n1 file\n",
    ],
)
def test_both_ways_in_which_ruff_names_a_file_are_read(output: bytes):
    gate = find(Files({"ruff.toml": "[format]\n"}, "ruff")).gates[1]

    assert dict(read(gate, Ending(1), output, None).failures) == {"a/b c.py": 1}


@pytest.mark.parametrize(
    "mark, output, failures",
    [
        (
            "Cargo.toml",
            (
                "running 3 tests\ntest a::ok ... ok\ntest a::bad ... FAILED\n"
                "test a::dies - should panic ... FAILED\n"
            ),
            {"a::bad": 1, "a::dies": 1},
        ),
        ("Cargo.toml", "error[E0308]: mismatched types\n", {"tests:exit": 1}),
        (
            "go.mod",
            (
                "--- FAIL: TestA (0.00s)\n    --- FAIL: TestA/in (0.00s)\nFAIL\nFAIL\tm/a\t0.01s\n"
                "FAIL\tm/b [build failed]\nok  \tm/c\t0.1s\n"
            ),
            {"TestA": 1, "TestA/in": 1, "m/b": 1},
        ),
    ],
)
def test_failures_of_rust_and_go_have_names(mark: str, output: str, failures: dict[str, int]):
    (gate,) = find(Files({mark: ""})).gates

    assert dict(read(gate, Ending(1), output.encode(), None).failures) == failures


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)
KEYS = ("scripts", "workspaces", "dependencies", "packageManager", "devDependencies")


@settings(max_examples=50)
@given(st.dictionaries(st.sampled_from(KEYS), JSON), st.text(max_size=60))
def test_whatever_stands_in_the_files_something_is_found(package: dict[str, Any], text: str):
    files = {"package.json": json.dumps(package), "setup.cfg": text, "requirements.txt": text}
    found = find(Files({**files, "pyproject.toml": text, "pnpm-workspace.yaml": text}))

    assert isinstance(found, Found)
    assert found == find(Files({**files, "pyproject.toml": text, "pnpm-workspace.yaml": text}))
