"""What a repository says by itself: how a worktree of it is set up, and by which gates work is
judged. Pure over a `Look`: the same files and programs give the same answer, and nothing is run.
"""

from collections.abc import Iterable, Sequence

from .definitions import Gate
from .look import Found, Look
from .other_projects import find_go, find_node, find_rust
from .python_gates import find_python

_FINDERS = (
    ("python", find_python),
    ("node", find_node),
    ("rust", find_rust),
    ("go", find_go),
)
_MARKS = ("pyproject.toml", "setup.py", "package.json", "Cargo.toml", "go.mod")
_MOST_NAMED = 3
_MOST_PACKAGES = 100


def find(look: Look, setup: str | bool = True) -> Found:
    """Set-up and gates of the project at the top of a repository. Of several languages, the first
    has the plain names of gates, the others `tests-node` and so on.

    `setup`: True looks for one, False has none, a line is used as it is.
    """
    parts = [(name, part) for name, finder in _FINDERS if (part := finder(look, setup)) is not None]
    gates: dict[str, Gate] = {}
    for language, part in parts:
        for gate in part.gates:
            name = gate.name if gate.name not in gates else f"{gate.name}-{language}"
            gates[name] = gate._replace(name=name)
    notes = [note for _, part in parts for note in part.notes]
    packages = [path for _, part in parts for path in part.packages]
    line, why = _joined([part for _, part in parts], setup)
    return Found(
        setup=line,
        why=why,
        gates=tuple(gates.values()),
        notes=(*notes, *(_further_down(look) if not gates else [])),
        packages=tuple(dict.fromkeys(packages))[:_MOST_PACKAGES],
    )


def configured(found: Found, gates: Iterable[Gate]) -> Found:
    """What was found, with the gates that somebody has named: one of theirs takes the place of the
    one of the same name."""
    named = {gate.name: gate for gate in (*found.gates, *gates)}
    return found._replace(gates=tuple(named.values()))


def _joined(parts: Sequence[Found], setup: str | bool) -> tuple[str | None, str]:
    """The one line that sets all of them up, and where it comes from."""
    if not setup:
        return None, "set-up is switched off"
    if isinstance(setup, str):
        return setup, "the config"
    found = [part for part in parts if part.setup is not None]
    if not found:
        return None, "nothing has to be installed"
    return " && ".join(str(part.setup) for part in found), " and ".join(p.why for p in found)


def _further_down(look: Look) -> Sequence[str]:
    """Where there is a project, when there is none at the top."""
    places = [
        path.rpartition("/")[0]
        for path in look.paths
        if "/" in path and path.rpartition("/")[2] in _MARKS
    ]
    named = list(dict.fromkeys(places))[:_MOST_NAMED]
    if not named:
        return []
    listed = ", ".join(f"`{place}`" for place in named)
    hint = f"name its gates, such as `cd {named[0]} && …`, under `gates` of the config"
    return [f"No gate was found at the top; there is a project in {listed}: {hint}."]
