"""Makes docs/reference/inbox-json.md and orch-json.md: what each command prints with --json, as
tables, from the same JSON Schemas that `inbox schema` and `orch schema` print.

The schemas come from the models of `*/schemas`, against which the tests hold every real output.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import inbox_orch.inbox.schemas as of_inbox
import inbox_orch.orch.schemas as of_orch

ROOT = Path(__file__).resolve().parent.parent
MADE = "<!-- Made by script/reference. Change the models in */schemas, not this page. -->\n"
ENVELOPES = ("Success_", "FailureWithData_", "Ended_", "EndedOtherwise_")

Schema = dict[str, Any]

PAGE = """\
{made}
# JSON of `{program}`

What stands under `data` on success, beside `error` on exits 8 and 11, or on each line of a stream.
The envelope around it is the same everywhere: [JSON](../json.md). `{program} schema COMMAND` prints
the JSON Schema itself, with the patterns and bounds that are left out here.

## Commands

{commands}
## Shapes

{shapes}"""


class Shape(NamedTuple):
    """One of the named objects of a program's JSON."""

    name: str
    schema: Schema
    names: dict[str, str]
    """Under which names the shapes that this one refers to stand on the page."""


def pages() -> dict[Path, str]:
    """The pages, by their path."""
    folder = ROOT / "docs" / "reference"
    return {
        folder / "inbox-json.md": _page("inbox", of_inbox),
        folder / "orch-json.md": _page("orch", of_orch),
    }


def _page(program: str, models: Any) -> str:
    rows, shapes = [], dict[str, Shape]()
    for name in models.COMMANDS:
        schema = models.command_schema(name).json_schema
        names = _names(schema["$defs"], name, shapes)
        rows.append(_row(program, name, schema, names))
    text = [_section(shapes[name]) for name in sorted(shapes)]
    headings = ("command", "prints")
    return PAGE.format(
        made=MADE, program=program, commands=_table(headings, rows), shapes="\n".join(text)
    )


def _names(definitions: Schema, command: str, shapes: dict[str, Shape]) -> dict[str, str]:
    """Under which name each definition of a command's schema stands on the page.

    Two commands may use one name for different shapes; the later one then says whose it is.
    """
    names: dict[str, str] = {}
    for name, schema in definitions.items():
        if name == "Failure" or name.startswith(ENVELOPES):
            continue
        shown = name
        if name in shapes and not _same(shapes[name].schema, schema):
            shown = f"{name} of {command}"
        names[name] = shown
        shapes.setdefault(shown, Shape(shown, schema, names))
    return names


def _same(one: Schema, other: Schema) -> bool:
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def _row(program: str, name: str, schema: Schema, names: dict[str, str]) -> tuple[str, ...]:
    called = program if name == program else f"{program} {name}"
    results: list[str] = []
    for reference in _references(schema.get("anyOf", [])):
        if reference == "Failure":
            continue
        definition = schema["$defs"][reference]
        if not reference.startswith(ENVELOPES):
            results.append(_link(names[reference]))
        elif "data" in definition["properties"]:
            beside = reference.startswith(("FailureWithData_", "EndedOtherwise_"))
            found = _type(definition["properties"]["data"], names)
            results.append(f"{found} beside `error`" if beside else found)
    return (f"`{called}`", ", ".join(dict.fromkeys(results)))


def _references(choices: list[Schema]) -> list[str]:
    return [choice["$ref"].rpartition("/")[2] for choice in choices]


def _section(shape: Shape) -> str:
    required = shape.schema.get("required", ())
    rows = [
        (f"`{key}`" + ("" if key in required else " (may be missing)"), _type(value, shape.names))
        for key, value in shape.schema.get("properties", {}).items()
    ]
    parts = [f"### {shape.name}\n"]
    if "description" in shape.schema:
        parts.append(_escaped(shape.schema["description"]) + "\n")
    if rows:
        parts.append(_table(("key", "value"), rows))
    return "\n".join(parts)


def _type(schema: Schema, names: dict[str, str]) -> str:
    """What a value may be, in words."""
    if "$ref" in schema:
        return _link(names[schema["$ref"].rpartition("/")[2]])
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_type(choice, names) for choice in schema["anyOf"]))
    if "const" in schema:
        return f"`{json.dumps(schema['const'])}`"
    if "enum" in schema:
        return " or ".join(f"`{json.dumps(value)}`" for value in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}), names)}"
    if schema.get("type") == "object":
        return _object(schema, names)
    return _scalar(schema)


def _object(schema: Schema, names: dict[str, str]) -> str:
    values = schema.get("additionalProperties")
    if not isinstance(values, dict):
        patterns = schema.get("patternProperties", {})
        values = next(iter(patterns.values()), None)
    return f"object of {_type(values, names)}" if values else "object"


def _scalar(schema: Schema) -> str:
    kind = schema.get("type", "any value")
    words = {"null": "null", "boolean": "true or false"}.get(kind, kind)
    note = _escaped(schema.get("description", "")).rstrip(".")
    if note.startswith("RFC 3339"):
        return "time"
    return f"{words} ({note})" if note else words


def _escaped(text: str) -> str:
    """One line, in which `<` opens no tag."""
    return " ".join(text.split()).replace("<", "&lt;")


def _link(name: str) -> str:
    anchor = name.lower().replace(" ", "-")
    return f"[{name}](#{anchor})"


def _table(headings: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = ["| " + " | ".join(headings) + " |", "|" + "---|" * len(headings)]
    lines += [
        "| " + " | ".join(cell.replace("|", "\\|") or "–" for cell in row) + " |" for row in rows
    ]
    return "\n".join(lines) + "\n"
