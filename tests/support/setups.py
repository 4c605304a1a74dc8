"""Set-ups of agents in a home and a project of their own, filled as somebody would have them.

As a program (`main`) it kills set-ups, and their taking back, before each of their steps.
"""

import contextlib
import json
import os
import shutil
import stat
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from inbox_orch.inbox.setup import jsontext
from inbox_orch.inbox.setup.facts import Part, agents
from inbox_orch.inbox.setup.run import Result, check, install, place_of, undo
from support.commands import Outcome, run
from support.killing import EVERY_STEP_UNTIL, KILL_EVERY, killed_before, settle

FORMS = json.loads((Path(__file__).parents[1] / "data" / "setup" / "forms.json").read_text())
SCOPES = ("project", "user")
CASES = [(agent, scope) for agent in agents() for scope in SCOPES]

_HOOK = {"hooks": [{"type": "command", "command": "other --hook"}]}


class Desk(NamedTuple):
    """A home, and a project with a repository in it."""

    home: Path
    project: Path

    def root(self, scope: str) -> Path:
        """The folder that a scope is about."""
        return self.project if scope == "project" else self.home

    def setup(self, agent: str, scope: str, *options: str, **environment: str) -> Outcome:
        """Run `inbox setup`."""
        line = ("setup", agent, f"--{scope}", *options, "--json")
        return run(*line, folder=self.project, HOME=str(self.home), **environment)

    def snapshot(self) -> dict[str, tuple[Any, ...]]:
        """Everything that is there: kinds, modes, bytes, where links lead."""
        return {
            str(path): _seen(path)
            for root in self
            for path in [root, *sorted(root.rglob("*"))]
            if "/.git/" not in str(path)
        }

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """This process is in the project, and at home there."""
        earlier, folder = os.environ.get("HOME"), os.getcwd()
        os.environ["HOME"] = str(self.home)
        os.chdir(self.project)
        try:
            yield
        finally:
            os.chdir(folder)
            if earlier is not None:
                os.environ["HOME"] = earlier


def make_desk(folder: Path) -> Desk:
    """An empty home, and an empty project."""
    desk = Desk(folder / "home", folder / "project")
    for each in desk:
        each.mkdir(parents=True)
    (desk.project / ".git").mkdir()
    return desk


def paths_of(agent: str, scope: str) -> dict[str, list[Part]]:
    """The files of an agent, by their first names, with their parts."""
    found: dict[str, list[Part]] = {}
    for part in agents()[agent].parts:
        if scope in part.paths:
            found.setdefault(part.paths[scope][0], []).append(part)
    return found


def fill(desk: Desk, agent: str, scope: str, style: str) -> None:
    """The files that an agent shares with others, as somebody has them already."""
    for name, parts in paths_of(agent, scope).items():
        if parts[0].form != "file":
            path = desk.root(scope) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(STYLES[style](_full(name, parts)).encode())
            path.chmod(0o640)


def _full(name: str, parts: list[Part]) -> str:
    """A file as somebody has it, with a neighbour for each part."""
    if name.endswith(".toml"):
        return 'model = "m"\n\n[mcp_servers.other]  # theirs\ncommand = "other"\n'
    if name.endswith(".md"):
        return "# Rules\n\nBe kind.\n\n```sh\necho\n```\n"
    data: dict[str, Any] = {"model": "m", "zeta": [1, {"deep": None}], "ü": "ä\\u0041"}
    for part in parts:
        inner = data
        for key in part.at[:-1]:
            inner = inner.setdefault(key, {})
        if part.form == "item":
            inner[part.at[-1]] = [_HOOK]
        else:
            command = part.value["command"]
            inner["other"] = {**part.value, "command": ["o"] if command[1:] == ["mcp"] else "o"}
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def _one_line(text: str) -> str:
    return json.dumps(json.loads(text)) if text.startswith("{") else text


def _tabs(text: str) -> str:
    return json.dumps(json.loads(text), indent="\t") if text.startswith("{") else text


def _bare(text: str) -> str:
    return " {\n}\n" if text.startswith("{") else ""


STYLES: Mapping[str, Any] = {
    "two_spaces": lambda text: text,
    "tabs": _tabs,
    "one_line": _one_line,
    "no_newline_at_the_end": lambda text: text.rstrip("\n"),
    "other_line_ends": lambda text: text.replace("\n", "\r\n"),
    "byte_order_mark": lambda text: "\ufeff" + text,
    "nothing_in_it": _bare,
    "no_byte_in_it": lambda text: "",
    "blanks_alone": lambda text: " \n\n",
    "braces_alone": lambda text: "{}" if text.startswith("{") else "\n",
}


def parsed(path: Path, *, comments: bool = False) -> Any:
    """The value of a JSON or TOML file."""
    text = path.read_text(encoding="utf-8-sig")
    if path.suffix == ".toml":
        return tomllib.loads(text)
    return jsontext.parse(text, comments=True).value if comments else json.loads(text)


def states(data: Mapping[str, Any]) -> set[str]:
    """How the parts of a set-up stand, of the JSON that is printed."""
    return {item["state"] for item in data["items"]}


def misfits(value: Any, form: Any, where: str = "", *, top: bool = True) -> list[str]:
    """What in a value is not as a form of `forms.json` says."""
    if isinstance(form, dict):
        return _misfits_of_object(value, form, where, top=top)
    if isinstance(form, list):
        if not isinstance(value, list):
            return [f"{where} is no array"]
        return [
            each
            for place, item in enumerate(value)
            for each in misfits(item, form[0], f"{where}[{place}]", top=False)
        ]
    kinds = {"<text>": str, "<number>": (int, float), "<truth>": bool}
    fits = isinstance(value, kinds[form]) if form in kinds else value == form
    return [] if fits else [f"{where} is {value!r}, not {form}"]


def _misfits_of_object(value: Any, form: dict[str, Any], where: str, *, top: bool) -> list[str]:
    if not isinstance(value, dict):
        return [f"{where} is no object"]
    wrong = [
        f"{where} has no {name}"
        for name in form
        if name != "*" and not name.endswith("?") and name not in value
    ]
    for name, each in value.items():
        inner = form.get(name, form.get(f"{name}?", form.get("*")))
        if inner is not None:
            wrong += misfits(each, inner, f"{where}.{name}", top=False)
        elif not top:
            wrong.append(f"{where} has {name}")
    return wrong


def _seen(path: Path) -> tuple[Any, ...]:
    status = path.lstat()
    if stat.S_ISLNK(status.st_mode):
        return ("link", os.readlink(path))
    mode = stat.S_IMODE(status.st_mode)
    return ("folder", mode) if path.is_dir() else ("file", mode, path.read_bytes())


# -- killed in the middle --------------------------------------------------------------------

Act = Callable[[str, str], Result]


def installing(agent: str, scope: str) -> Result:
    """Set the agent up."""
    return install(agents()[agent], place_of(scope))


def undoing(agent: str, scope: str) -> Result:
    """Take its set-up back."""
    return undo(agents()[agent], place_of(scope))


def kill_at_every_step(folder: Path, agent: str, scope: str, style: str | None) -> dict[str, int]:
    """Kill a set-up, and its taking back, before each step; judge that either way of going on
    leads to the right end. How many steps there were."""
    desk = make_desk(folder / "desk")
    if style is not None:
        fill(desk, agent, scope, style)
    before = desk.snapshot()
    steps = {"install": _killed(desk, folder, (agent, scope), installing, before)}
    with desk.entered():
        installing(agent, scope)
    steps["undo"] = _killed(desk, folder, (agent, scope), undoing, before)
    return steps


def _killed(
    desk: Desk, folder: Path, case: tuple[str, str], act: Act, before: Mapping[str, Any]
) -> int:
    prepared = folder / "prepared"
    shutil.copytree(folder / "desk", prepared, symlinks=True)
    step, survived = 1, False
    while True:
        for go_on in (installing, undoing):
            _restore(prepared, folder / "desk")
            with desk.entered():
                survived = not killed_before(step, lambda: _silently(act, case))
                try:
                    _judge(desk, case, go_on, before)
                except BaseException as error:
                    error.add_note(f"{act.__name__} killed before step {step}, {go_on.__name__}")
                    raise
        if survived:
            break
        step += 1 if step < EVERY_STEP_UNTIL // 2 or KILL_EVERY == 1 else 5
    _restore(prepared, folder / "desk")
    shutil.rmtree(prepared)
    return step


def _silently(act: Act, case: tuple[str, str]) -> None:
    act(*case)


def _judge(desk: Desk, case: tuple[str, str], go_on: Act, before: Mapping[str, Any]) -> None:
    agent, scope = case
    found = check(agents()[agent], place_of(scope))
    assert {item.state for item in found.items} <= {"in_place", "missing"}
    if go_on is installing:
        assert go_on(agent, scope).complete
        assert check(agents()[agent], place_of(scope)).complete
    undoing(agent, scope)
    now = desk.snapshot()
    assert now == before, sorted(set(now.items()) ^ set(before.items()))[:4]


def _restore(source: Path, target: Path) -> None:
    shutil.rmtree(target)
    shutil.copytree(source, target, symlinks=True)


def main() -> None:
    """FOLDER AGENT SCOPE STYLE|-: print how many steps were killed at."""
    folder, agent, scope, style = sys.argv[1:]
    settle()
    counted = kill_at_every_step(Path(folder), agent, scope, None if style == "-" else style)
    sys.stdout.write(json.dumps(counted) + "\n")
