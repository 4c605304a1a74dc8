"""Plans written out again, so that reading them gives equal plans.

The YAML is written for readers of every version: text that any of them could take for something
else, or could not print, stands in quotes.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from inbox_orch.shared.shell.blocks import harmless_json

from ..runs.plan import Link, Opening, Plan, TaskSpec

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*(?: [A-Za-z0-9_./-]+)*")
# Of YAML 1.1, where a document may be read by others.
_WORDS = frozenset(["y", "n", "yes", "no", "on", "off", "true", "false", "null"])
_UNSAFE = re.compile(
    "[\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff0-\ufffb\ufffe\uffff"
    "\ud800-\udfff\U000e0000-\U000e0fff]"
    "|[\U0001fffe\U0001ffff\U0002fffe\U0002ffff]"
)
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f]")


def plan_as_json(plan: Plan) -> dict[str, Any]:
    """A plan as plain values; what is the default is left out."""
    run = {} if plan.run is None else {"run": _run(plan.run)}
    return {**run, "tasks": [_task(task) for task in plan.tasks]}


def write_json(plan: Plan) -> str:
    """The document as JSON."""
    return harmless_json(json.dumps(plan_as_json(plan), ensure_ascii=False, indent=1)) + "\n"


def write_yaml(plan: Plan) -> str:
    """The document as YAML."""
    return "".join(_mapping(plan_as_json(plan), 0))


def _run(run: Opening) -> dict[str, Any]:
    found: dict[str, Any] = {"title": run.title}
    if run.base is not None:
        found["base"] = run.base
    if run.on_failure != "continue":
        found["on_failure"] = run.on_failure
    if run.max_parallel is not None:
        found["max_parallel"] = run.max_parallel
    if run.no_repo:
        found["no_repo"] = True
    config = run.config.given()
    return {**found, "config": config} if config else found


_NAMES = {"key": "task", "mailbox": "to", "result_schema": "schema"}
_DEFAULTS = TaskSpec("", "")


def _task(task: TaskSpec) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value, default in zip(TaskSpec._fields, task, _DEFAULTS, strict=True):
        if value != default:
            found[_NAMES.get(name, name)] = value
    if "depends_on" in found:
        found["depends_on"] = [_link(link) for link in task.depends_on]
    if "limits" in found:
        clocks = task.limits.as_json()
        found["limits"] = {name: clock for name, clock in clocks.items() if clock is not None}
    if "checks" in found:
        found["checks"] = list(found["checks"])
    return found


def _link(link: Link) -> str | dict[str, str]:
    if link.condition == "success":
        return link.upstream
    return {"task": link.upstream, "when": link.condition}


# -- YAML ----------------------------------------------------------------------------------


def _mapping(values: Mapping[str, Any], depth: int) -> Iterator[str]:
    for name, value in values.items():
        yield f"{'  ' * depth}{_text(name)}:{_after_key(value, depth)}"


def _after_key(value: Any, depth: int) -> str:
    """What stands after `key:`, with its line end."""
    if isinstance(value, Mapping):
        return "\n" + "".join(_mapping(value, depth + 1)) if value else " {}\n"
    if isinstance(value, list):
        if any(isinstance(each, Mapping) for each in value):
            return "\n" + "".join(_entries(value, depth))
        return f" [{', '.join(map(_scalar, value))}]\n"
    if isinstance(value, str) and _fits_a_block(value):
        return _block(value, depth)
    return f" {_scalar(value)}\n"


def _entries(values: Sequence[Any], depth: int) -> Iterator[str]:
    for value in values:
        if isinstance(value, Mapping):
            lines = "".join(_mapping(value, depth + 1))
            yield f"{'  ' * depth}- {lines[2 * depth + 2 :]}"
        else:
            yield f"{'  ' * depth}- {_scalar(value)}\n"


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        return _text(value)
    said = json.dumps(value)
    # To readers of YAML 1.1 a number with an exponent is text unless it has a dot.
    return said.replace("e", ".0e") if isinstance(value, float) and "." not in said else said


def _text(text: str) -> str:
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS:
        return text
    return _UNSAFE.sub(_escape, json.dumps(text, ensure_ascii=False))


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _fits_a_block(text: str) -> bool:
    """Whether text of several lines may stand as it is."""
    return (
        "\n" in text
        and text[0] not in " \n\t"
        and not _CONTROL.search(text)
        and not _UNSAFE.search(text)
        and not text.endswith("\n\n")
    )


def _block(text: str, depth: int) -> str:
    pad = "  " * (depth + 1)
    head = "|" if text.endswith("\n") else "|-"
    lines = text.removesuffix("\n").split("\n")
    return f" {head}\n" + "".join(f"{pad}{line}\n" if line else "\n" for line in lines)
