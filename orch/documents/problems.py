"""Problems of a document: where they are, what is wrong, what to write instead; as one error."""

import difflib
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.ids import printable, quoted

MOST_SHOWN = 50
Path = tuple[str | int, ...]


class Problem(NamedTuple):
    """One thing that is wrong. `code` is a code of `shared/errors`."""

    path: Path
    message: str
    instead: str | None = None
    code: str = "usage"
    line: int | None = None
    cycle: tuple[str, ...] = ()


def refusal(
    name: str, problems: Iterable[Problem], line_of: Callable[[Path], int]
) -> InboxOrchError:
    """The one error for all problems of the document `name`, in the order of their lines.

    Its code is that of the problems if they have one in common, else `usage`. Of more than 50
    the rest is only counted.
    """
    placed = [p if p.line is not None else p._replace(line=line_of(p.path)) for p in problems]
    placed.sort(key=lambda problem: problem.line or 0)
    codes = {problem.code for problem in placed}
    first = placed[0]
    shown = printable(name, 4096)
    place = f"{shown}:{first.line}: {_text(first)}"
    if len(placed) == 1:
        message, hint = place, first.instead or "nothing was changed; correct it and call again"
    else:
        message = f"{shown} has {len(placed)} problems; the first: {place}"
        hint = first.instead or "nothing was changed; correct them and call again"
    return InboxOrchError(
        codes.pop() if len(codes) == 1 else "usage",
        message,
        hint=hint,
        details={
            "file": shown,
            "problems": [_as_json(problem) for problem in placed[:MOST_SHOWN]],
            "problem_count": len(placed),
        },
    )


def lines_of(error: InboxOrchError) -> list[str]:
    """Every problem of such an error as a line for people, when there are several."""
    problems = error.details.get("problems", [])
    if len(problems) < 2:
        return []
    name, count = error.details["file"], error.details["problem_count"]
    lines = [
        f"{name}:{p['line']}: {p['message']}" + (f" ({p['instead']})" if p["instead"] else "")
        for p in problems
    ]
    if count > len(problems):
        lines.append(f"{name}: and {count - len(problems)} more")
    return lines


def _text(problem: Problem) -> str:
    return f"{dotted(problem.path)}: {problem.message}" if problem.path else problem.message


def _as_json(problem: Problem) -> dict[str, Any]:
    cycle = {"cycle": list(problem.cycle)} if problem.cycle else {}
    return {
        **cycle,
        "line": problem.line,
        "where": dotted(problem.path),
        "message": _text(problem),
        "instead": problem.instead,
        "code": problem.code,
    }


def dotted(path: Path) -> str:
    """`tasks[3].title`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += ("." if text else "") + printable(part)
    return text


def near(word: str, words: Iterable[str]) -> str | None:
    """`did you mean lexer?`, if there is one that is near."""
    found = difflib.get_close_matches(word, list(words), n=1)
    return f"did you mean `{found[0]}`?" if found else None


def problems_of(error: ValidationError, keys_at: Callable[[Path], Sequence[str]]) -> list[Problem]:
    """What pydantic has found. `keys_at` gives the keys that a mapping at a path may have."""
    return [_problem(found, keys_at) for found in error.errors(include_url=False)]


def _problem(found: ErrorDetails, keys_at: Callable[[Path], Sequence[str]]) -> Problem:
    path: Path = found["loc"]
    kind, given, context = found["type"], found["input"], found.get("ctx", {})
    if kind == "extra_forbidden":
        known = keys_at(path[:-1])
        hint = near(str(path[-1]), known) or "known are: " + ", ".join(known)
        return Problem(path, "there is no such key", hint)
    if kind == "missing":
        return Problem(path, "is missing", f"write `{path[-1]}: …`")
    if kind == "string_type":
        return Problem(path, f"must be text, not {_kind(given)}", _in_quotes(given))
    if kind in _EXPECTED:
        return Problem(path, f"must be {_EXPECTED[kind]}, not {_kind(given)}")
    if kind == "value_error" and "error" in context:
        message, _, instead = str(context["error"]).partition("\n")
        return Problem(path, message, instead or None)
    return Problem(path, f"{_lower(found['msg'])}, not {_kind(given)}")


_EXPECTED = {
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "`true` or `false`",
    "list_type": "a list",
    "dict_type": "a mapping of keys to values",
    "model_type": "a mapping of keys to values",
    "model_attributes_type": "a mapping of keys to values",
}


def _kind(value: Any) -> str:
    """A value in few words, for people."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "`true`" if value else "`false`"
    if isinstance(value, (int, float)):
        return f"the number {printable(str(value)[:40])}"
    if isinstance(value, str):
        return f"the text {quoted(value[:40])}"
    return "a list" if isinstance(value, list) else "a mapping"


def _in_quotes(value: Any) -> str | None:
    if isinstance(value, bool):
        return f'write "{str(value).lower()}" in quotes if it is meant as text'
    if isinstance(value, (int, float)):
        return f'write "{value}" in quotes if it is meant as text'
    return None


def _lower(message: str) -> str:
    text = message.replace("Input should be", "must be")
    return text[:1].lower() + text[1:]
