"""What a Python project says of itself in its files: what it needs, how it is laid out, which tools
it has settings for. Pure; nothing of it is run.
"""

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from .look import Look, names_at_top, table, texts

if TYPE_CHECKING:
    from configparser import RawConfigParser

WANTED = ("check", "dev", "lint", "test", "testing", "tests", "types", "typing")
"""Extras and groups of these names are installed: what gates need stands there."""
NO_PACKAGES = frozenset(
    {
        *("benchmark", "benchmarks", "build", "ci", "dist", "doc", "docs", "example", "examples"),
        *("script", "scripts", "setup", "test", "testing", "tests", "tool", "tools"),
    }
)
"""Folders with such names are not what is tested."""
_REQUIREMENTS = (
    *("requirements.txt", "requirements-dev.txt", "requirements-test.txt"),
    *("requirements-tests.txt", "requirements_dev.txt", "requirements_test.txt"),
    *("dev-requirements.txt", "test-requirements.txt", "requirements/dev.txt"),
    *("requirements/test.txt", "requirements/tests.txt", "requirements/testing.txt"),
)
_OF_PYTEST = {"pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "conftest.py"}
_MARKS = {
    *("pyproject.toml", "setup.py", "setup.cfg", "uv.lock", "tox.ini"),
    *_OF_PYTEST,
    *("mypy.ini", ".mypy.ini", "ruff.toml", ".ruff.toml"),
}
_NAME = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)")
_INCLUDED = re.compile(r"\s*(?:-r|--requirement)[ =]?(\S+)")
_TEST_FILE = re.compile(r"(?:^|.*/)(?:test_[^/]*|[^/]*_test)\.py")
_MOST_READ = 5  # files of tests, to see how they are written


class Project(NamedTuple):
    """`pyproject` is that file as a table, `settings` the sections of `setup.cfg` and `tox.ini` as
    `FILE [SECTION]`. `extras` and `groups` are those of `WANTED` that it has; `needs` what is named
    to be installed, as lines of requirements, `declared` the names of all packages that set-up
    would install by name. `files` are its files of requirements. `packages`: see `Found`."""

    top: frozenset[str]
    pyproject: Mapping[str, object]
    settings: frozenset[str]
    extras: tuple[str, ...]
    groups: tuple[str, ...]
    needs: tuple[str, ...]
    declared: frozenset[str]
    files: tuple[str, ...]
    packages: tuple[str, ...]
    tests: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def builds(self) -> bool:
        """Whether it can be installed: it says how it is built, or lies where setuptools, which
        is what builds without a word, finds it."""
        if table(self.pyproject, "tool", "uv").get("package") is False:
            return False
        named = "name" in table(self.pyproject, "project") and self.in_src
        return bool(self.pyproject.get("build-system")) or named or "setup.py" in self.top

    @property
    def in_src(self) -> bool:
        """Whether its packages lie where Python does not look by itself."""
        return any(package.startswith("src/") for package in self.packages)

    @property
    def has_commands(self) -> bool:
        """Whether installing it makes commands, or what other packages find it by."""
        said = table(self.pyproject, "project")
        return any(said.get(key) for key in ("scripts", "gui-scripts", "entry-points"))

    @property
    def says_less_than_it_needs(self) -> bool:
        """Whether what it needs is known only to what builds it."""
        project = table(self.pyproject, "project")
        dynamic = set(texts(project.get("dynamic"))) & {"dependencies", "optional-dependencies"}
        return self.builds and (not project or bool(dynamic))

    @property
    def uses_pytest(self) -> bool:
        """Whether pytest has settings here."""
        sections = {"setup.cfg [tool:pytest]", "tox.ini [pytest]"} & self.settings
        return bool(table(self.pyproject, "tool", "pytest") or _OF_PYTEST & self.top or sections)

    @property
    def path_of_pytest(self) -> tuple[str, ...]:
        """The folders that pytest puts on the path by its settings."""
        said = table(self.pyproject, "tool", "pytest", "ini_options").get("pythonpath")
        return tuple(said.split()) if isinstance(said, str) else tuple(texts(said))


def read(look: Look) -> Project | None:
    """The Python project at the top of a repository; None where there is none."""
    top, notes = names_at_top(look), list[str]()
    tests = tuple(path for path in look.paths if _TEST_FILE.fullmatch(path))
    files = tuple(path for path in _REQUIREMENTS if path in set(look.paths))
    if not (tests or files or top & _MARKS):
        return None
    pyproject = _pyproject(look, notes)
    extras, groups = _extras(look, pyproject), table(pyproject, "dependency-groups")
    chosen = tuple(sorted(name for name in groups if name in WANTED))
    needs = texts(table(pyproject, "project").get("dependencies"))
    for name in chosen:
        needs += _of_group(groups, name, ())
    by_extras = [line for name in extras for line in extras[name]]
    legacy = texts(table(pyproject, "tool", "uv").get("dev-dependencies"))
    in_files = [line for path in files for line in _lines_of(look, path, ())]
    return Project(
        top=top,
        pyproject=pyproject,
        settings=_sections(look, "setup.cfg") | _sections(look, "tox.ini"),
        extras=tuple(sorted(extras)),
        groups=chosen,
        needs=tuple(dict.fromkeys([*needs, *legacy])),
        declared=frozenset(_names([*needs, *legacy, *by_extras, *in_files])),
        files=files,
        packages=packages(look, pyproject),
        tests=tests,
        notes=tuple(notes),
    )


def packages(look: Look, pyproject: Mapping[str, object]) -> tuple[str, ...]:
    """The packages at the top and in `src`, and the single modules that the project is named
    after, or names."""
    paths = set(look.paths)
    found = []
    for path in look.paths:
        folder, _, name = path.rpartition("/")
        parent, _, package = folder.rpartition("/")
        if parent in ("", "src") and package.isidentifier() and package not in NO_PACKAGES:
            is_package = name == "__init__.py"
            # Without that file, a folder of `src` is a package all the same (PEP 420).
            if is_package or (parent == "src" and name.endswith(".py")):
                found.append(folder)
    for module in _modules(pyproject):
        found += [path for path in (f"{module}.py", f"src/{module}.py") if path in paths]
    return tuple(dict.fromkeys(found))


def reads_like_pytest(look: Look, project: Project) -> bool:
    """Whether the tests are functions, or ask for pytest by name; unittest would not see those."""
    said = [look.text(path) or "" for path in project.tests[:_MOST_READ]]
    return any(re.search(r"^(?:import pytest|from pytest|def test)", text, re.M) for text in said)


def normal(name: str) -> str:
    """A package's name in its one form (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _pyproject(look: Look, notes: list[str]) -> Mapping[str, object]:
    import tomllib

    text = look.text("pyproject.toml")
    if text is None:
        return {}
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        notes.append(f"pyproject.toml is passed over, since it is no TOML: {error}.")
        return {}


def _extras(look: Look, pyproject: Mapping[str, object]) -> dict[str, list[str]]:
    """The extras of `WANTED` and what they ask for."""
    said = table(pyproject, "project", "optional-dependencies")
    found = {name: texts(said[name]) for name in said if name in WANTED}
    sections = _parsed(look, "setup.cfg")
    if not found and sections is not None and sections.has_section("options.extras_require"):
        section = sections["options.extras_require"]
        found = {name: section[name].splitlines() for name in section if name in WANTED}
    return found


def _of_group(groups: Mapping[str, object], name: str, above: tuple[str, ...]) -> list[str]:
    """The requirements of a group, with those of the groups that it includes (PEP 735)."""
    found: list[str] = []
    listed = groups.get(name)
    for each in listed if isinstance(listed, list) and name not in above else []:
        if isinstance(each, str):
            found.append(each)
        elif isinstance(each, Mapping) and isinstance(each.get("include-group"), str):
            found += _of_group(groups, each["include-group"], (*above, name))
    return found


def _lines_of(look: Look, path: str, above: tuple[str, ...]) -> list[str]:
    """The lines of a file of requirements, with those of the files that it includes."""
    found: list[str] = []
    for line in (look.text(path) or "").splitlines() if path not in above else ():
        included = _INCLUDED.match(line)
        if included is None:
            found.append(line)
        else:
            folder = path.rpartition("/")[0]
            inner = f"{folder}/{included[1]}" if folder else included[1]
            found += _lines_of(look, inner, (*above, path))
    return found


def _names(lines: Iterable[str]) -> set[str]:
    matches = (_NAME.match(line) for line in lines)
    return {normal(match[1]) for match in matches if match is not None}


def _sections(look: Look, path: str) -> frozenset[str]:
    parsed = _parsed(look, path)
    return frozenset(f"{path} [{name}]" for name in parsed.sections()) if parsed else frozenset()


def _parsed(look: Look, path: str) -> "RawConfigParser | None":
    import configparser

    text = look.text(path)
    if text is None:
        return None
    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read_string(text)
    except configparser.Error:
        return None
    return parser


def _modules(pyproject: Mapping[str, object]) -> list[str]:
    """Names of modules that the project says it consists of, its own first."""
    named = [table(pyproject, "project").get("name")]
    named += texts(table(pyproject, "tool", "setuptools").get("py-modules"))
    named.append(table(pyproject, "tool", "flit", "module").get("name"))
    plain = (each.replace("-", "_").lower() for each in named if isinstance(each, str))
    return [name for name in plain if name.isidentifier()]
