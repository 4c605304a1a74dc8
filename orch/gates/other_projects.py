"""Set-up and gates of projects for Node, Rust and Go, from their own files. Pure."""

import json
import re
from collections.abc import Mapping

from .definitions import Gate
from .look import Found, Look, names_at_top, table, texts

_NO_TEST = "no test specified"
"""What npm puts into the script of a new package."""
_LOCKS = {"package-lock.json": "npm", "npm-shrinkwrap.json": "npm", "pnpm-lock.yaml": "pnpm"}
_FOREIGN_LOCKS = {"yarn.lock": "yarn", "bun.lockb": "bun", "bun.lock": "bun"}
_INSTALLS = {"npm": "npm ci", "pnpm": "pnpm install --frozen-lockfile"}
_NEEDS = ("dependencies", "devDependencies", "optionalDependencies", "peerDependencies")
_SCRIPTS = {"lint": ("lint",), "types": ("typecheck", "type-check", "types"), "tests": ("test",)}


# -- Node ------------------------------------------------------------------------------------


def find_node(look: Look, setup_given: str | bool) -> Found | None:
    """What `package.json` at the top says; None where there is none. `setup_given`: see `find`."""
    top = names_at_top(look)
    if "package.json" not in top:
        return None
    package = _package(look.text("package.json"))
    if package is None:
        note = "package.json is passed over, since it is no object of JSON in UTF-8."
        return Found(notes=(note,))
    manager, notes = _manager(top, package)
    if not look.has(manager):
        notes.append(f"package.json is not used, since there is no `{manager}` on PATH.")
        return Found(notes=tuple(notes))
    setup, why = None, ""
    if setup_given is True:
        setup, why = _node_setup(top, package, manager, notes)
    return Found(setup, why, _scripts(package, manager), tuple(notes), _workspaces(look, package))


def _package(text: str | None) -> Mapping[str, object] | None:
    try:
        found = json.loads(text or "")
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _manager(top: frozenset[str], package: Mapping[str, object]) -> tuple[str, list[str]]:
    """The package manager, and what is said of other ones."""
    locks = [name for name in _LOCKS if name in top]
    said = package.get("packageManager")
    named = said.partition("@")[0] if isinstance(said, str) else None
    found = named if named in _INSTALLS else _LOCKS[locks[0]] if locks else "npm"
    notes = [
        f"{name} is not used, since the packages are installed by {found}."
        for name in locks
        if _LOCKS[name] != found
    ]
    for lock, program in _FOREIGN_LOCKS.items():
        if lock in top:
            notes.append(f"{lock} is not used: `setup` of the config can call {program}.")
    return found, notes


def _node_setup(
    top: frozenset[str], package: Mapping[str, object], manager: str, notes: list[str]
) -> tuple[str | None, str]:
    lock = next((name for name, by in _LOCKS.items() if name in top and by == manager), None)
    if not any(table(package, key) for key in _NEEDS) and not package.get("workspaces"):
        return None, ""
    if lock is not None:
        return _INSTALLS[manager], lock
    notes.append("There is no lock file: the packages installed today may be others tomorrow.")
    if manager == "pnpm":
        return "pnpm install --no-lockfile", "package.json"
    return "npm install --no-package-lock", "package.json"


def _scripts(package: Mapping[str, object], manager: str) -> tuple[Gate, ...]:
    scripts = table(package, "scripts")
    gates = []
    for gate, names in _SCRIPTS.items():
        name = next((each for each in names if isinstance(scripts.get(each), str)), None)
        if name is not None and _NO_TEST not in str(scripts[name]):
            words = (manager, "test") if name == "test" else (manager, "run", name)
            gates.append(Gate(gate, words))
    return tuple(gates)


def _workspaces(look: Look, package: Mapping[str, object]) -> tuple[str, ...]:
    """The folders of the packages that lie in the repository: others may import them by name."""
    said = package.get("workspaces")
    patterns = texts(table(package, "workspaces").get("packages") or said)
    patterns += re.findall(
        r"^\s*-\s*['\"]?([^'\"#\s]+)", look.text("pnpm-workspace.yaml") or "", re.M
    )
    inner = [path for path in look.paths if path.endswith("/package.json")]
    folders = {path: path.rpartition("/")[0] for path in inner}
    return tuple(path for path in inner if any(_matches(folders[path], p) for p in patterns))


def _matches(folder: str, pattern: str) -> bool:
    parts, wanted = folder.split("/"), pattern.removeprefix("./").rstrip("/").split("/")
    if wanted[-1] == "**":
        return parts[: len(wanted) - 1] == wanted[:-1]
    same = (want in ("*", part) for part, want in zip(parts, wanted, strict=False))
    return len(parts) == len(wanted) and all(same)


# -- Rust and Go -----------------------------------------------------------------------------


_RUST = Gate(
    "tests",
    ("cargo", "test", "--no-fail-fast"),
    "lines",
    pattern=r"^test (?P<id>\S.*?)(?: - should panic)? \.\.\. FAILED",
)
_GO = Gate(
    "tests",
    ("go", "test", "./..."),
    "lines",
    pattern=r"^(?: *--- FAIL:|FAIL\t) ?(?P<id>\S+)(?: \(|\s+\[(?:build|setup) failed\])",
)


def find_rust(look: Look, _: str | bool) -> Found | None:
    """`cargo test`, where `Cargo.toml` lies at the top. Cargo fetches what it needs itself."""
    return _with_program(look, "Cargo.toml", "cargo", _RUST)


def find_go(look: Look, _: str | bool) -> Found | None:
    """`go test`, where `go.mod` lies at the top. Go fetches what it needs itself."""
    return _with_program(look, "go.mod", "go", _GO)


def _with_program(look: Look, mark: str, program: str, gate: Gate) -> Found | None:
    if mark not in names_at_top(look):
        return None
    if not look.has(program):
        return Found(notes=(f"{mark} is not used, since there is no `{program}` on PATH.",))
    return Found(gates=(gate,))
