"""How the house stands: what classes inherit, which names stay at home, where SQL is."""

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("inbox", "migrations", "orch", "shared")
# What the engine is made of; everybody else asks a session.
ENGINE = ("shared", "store", "sqlite")
_STATEMENTS = ("SELECT ", "INSERT ", "UPDATE ", "DELETE ", "WITH ", "PRAGMA ", "CREATE ", "DROP ")
_EXECUTING = {"all", "add", "execute", "executemany", "executescript", "one", "only", "run"} | {
    "run_many",
    "stream",
}


def texts(*tops: str) -> Iterator[tuple[Path, str]]:
    """Every module below some folders."""
    for top in tops:
        for path in sorted((ROOT / top).rglob("*.py")):
            yield path.relative_to(ROOT), path.read_text()


def modules(*tops: str, with_any: Sequence[str] = ("",)) -> Iterator[tuple[Path, ast.Module]]:
    """Those that have one of these words, with their trees; to make a tree takes long."""
    for path, text in texts(*tops):
        if any(word in text for word in with_any):
            yield path, ast.parse(text)


# -- classes ---------------------------------------------------------------------------------


def classes() -> dict[str, tuple[Path, ast.ClassDef]]:
    return {
        node.name: (path, node)
        for path, tree in modules(*SOURCES, with_any=("class ",))
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    }


def bases(node: ast.ClassDef) -> list[str]:
    return [ast.unparse(base).split("[")[0].split(".")[-1] for base in node.bases]


def behaves(known: dict[str, tuple[Path, ast.ClassDef]], name: str) -> bool:
    """Whether a class, or one of ours that it is made of, has methods of its own."""
    _, node = known[name]
    own = any(isinstance(item, ast.FunctionDef) for item in node.body)
    return own or any(behaves(known, base) for base in bases(node) if base in known)


def is_exempt(known: dict[str, tuple[Path, ast.ClassDef]], name: str) -> bool:
    """Protocols, errors, forms of data for pydantic, and what click has to see as its own."""
    path, node = known[name]
    above = bases(node)
    if "schemas" in path.parts:
        return True
    if {"Protocol", "BaseModel"} & {*above} or any(
        base.endswith(("Error", "Exception")) for base in above
    ):
        return True
    click_made = path.name in ("value_types.py", "commandline.py", "tree.py", "hook_group.py")
    return click_made or any(is_exempt(known, base) for base in above if base in known)


def inheriting(known: dict[str, tuple[Path, ast.ClassDef]]) -> list[str]:
    return [
        f"{path}: {name}({base})"
        for name, (path, node) in known.items()
        for base in bases(node)
        if base in known and base != name and behaves(known, base) and not is_exempt(known, name)
    ]


def test_no_class_inherits_behaviour_from_one_of_ours():
    assert inheriting(classes()) == []


def test_the_search_for_inheritance_finds_it():
    tree = ast.parse("class A:\n    def f(self): ...\nclass B(A): ...\nclass C(B): ...")
    known = {n.name: (Path("x.py"), n) for n in tree.body if isinstance(n, ast.ClassDef)}

    assert inheriting(known) == ["x.py: B(A)", "x.py: C(B)"]


# -- names that stay at home -----------------------------------------------------------------


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def private_uses(tree: ast.Module) -> list[str]:
    """Private names of other modules: imported, or taken as an attribute of an imported module."""
    found, imported = [], set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            ours = node.level > 0 or (node.module or "").startswith("inbox_orch")
            for alias in node.names:
                if ours and is_private(alias.name):
                    found.append(alias.name)
                elif ours:
                    imported.add(alias.asname or alias.name)
    found += [
        f"{node.value.id}.{node.attr}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id in imported
        and is_private(node.attr)
        and node.attr not in ("_make", "_fields", "_asdict", "_replace", "_field_defaults")
    ]
    return found


def test_no_private_name_crosses_a_file():
    crossing = {str(path): private_uses(tree) for path, tree in modules(*SOURCES)}

    assert {path: names for path, names in crossing.items() if names} == {}


def test_the_search_for_private_names_finds_them():
    tree = ast.parse("from .a import _b\nfrom . import c\nc._d(1)\nc.e._make(2)\nself._f = 1")

    assert private_uses(tree) == ["_b", "c._d"]


# -- SQL -------------------------------------------------------------------------------------


def may_hold_sql(path: Path) -> bool:
    if path.parts[0] in ("migrations", "shared"):
        return path.parts[0] == "migrations" or path.parts[1] == "store"
    return path.parts[:2] == ("inbox", "store") or path.stem.endswith("rows")


def sql_in(tree: ast.Module) -> list[int]:
    """The lines on which a session or a connection is given a statement."""
    return sorted(
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in _EXECUTING
        and node.args
        and any(
            isinstance(part, ast.Constant)
            and isinstance(part.value, str)
            and part.value.lstrip().startswith(_STATEMENTS)
            for part in ast.walk(node.args[0])
        )
    )


def test_sql_is_executed_by_rows_and_the_store_alone():
    found = {
        str(path): lines
        for path, tree in modules(*SOURCES, with_any=_STATEMENTS)
        if not may_hold_sql(path) and (lines := sql_in(tree))
    }

    assert found == {}


def test_the_search_for_sql_sees_every_way_of_executing_it():
    source = "tx.one('SELECT 1')\nx.run(f'UPDATE {t}')\nlog.all('SELECTED')\nc.execute('PRAGMA x')"

    assert sql_in(ast.parse(source)) == [1, 2, 4]


def imports_sqlite(tree: ast.Module) -> bool:
    return any(
        (isinstance(node, ast.Import) and any(a.name == "sqlite3" for a in node.names))
        or (isinstance(node, ast.ImportFrom) and node.module == "sqlite3")
        for node in ast.walk(tree)
    )


def test_only_the_engine_and_its_tests_know_the_library():
    found = [
        str(path)
        for path, tree in modules(*SOURCES, "tests", with_any=("sqlite3",))
        if imports_sqlite(tree)
        and path.parts[:3] != ENGINE
        and path.parts[:2] != ("tests", "sqlite")
    ]

    assert found == []


# -- sizes -----------------------------------------------------------------------------------


MOST_LINES_OF_A_FILE, MOST_LINES_OF_A_FUNCTION, MOST_PARAMETERS = 450, 60, 6
# A method for all that can be called, of a few lines each.
PAGES = {"orch/leader/scheduler.py"}
# Who calls them names each: a value would be made for one call alone.
LONG_LISTS = {"dispatch", "git"}


def functions(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def parameters(function: ast.FunctionDef) -> list[str]:
    """Its parameters, without what the rest of a call goes through."""
    given = function.args
    names = [each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return [name for name in names if name not in ("self", "cls", "desk")]


def test_no_file_of_orch_is_longer_than_can_be_read_at_once():
    long = {
        str(path): length
        for path, text in texts("orch")
        if (length := len(text.splitlines())) > MOST_LINES_OF_A_FILE and str(path) not in PAGES
    }

    assert long == {}


def test_no_function_of_orch_is_longer_than_a_page():
    long = [
        f"{path} {function.name}"
        for path, tree in modules("orch")
        for function in functions(tree)
        if function.end_lineno - function.lineno >= MOST_LINES_OF_A_FUNCTION
    ]

    assert long == []


def test_values_stand_in_orch_for_long_parameter_lists():
    long = {
        function.name
        for path, tree in modules("orch")
        for function in functions(tree)
        # click gives a command all that may stand in its line.
        if function.name != "command" and len(parameters(function)) > MOST_PARAMETERS
    }

    assert long == LONG_LISTS
