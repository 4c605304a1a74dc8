"""A process that judges one value by one JSON Schema: `python -m … SECONDS`, of computing time.

Reads the schema, in one line, and behind it the value, if there is one; writes one JSON object:
`fault`, what is wrong with the schema itself, else `problems`, the first of what is wrong with the
value, and how many `more` there are. Fetches nothing: a reference leads to a place in the schema.
"""

import json
import re
import resource
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from jsonschema.exceptions import ValidationError, best_match
from jsonschema.protocols import Validator
from jsonschema.validators import (
    Draft4Validator,
    Draft6Validator,
    Draft7Validator,
    Draft201909Validator,
    Draft202012Validator,
)
from jsonschema_specifications import REGISTRY
from referencing.exceptions import Unresolvable
from referencing.jsonschema import specification_with

MOST_PROBLEMS = 10
_MOST_COUNTED = 1000
_PATH_CHARACTERS, _SHOWN_CHARACTERS = 200, 120
_MOST_STEPS = 100
# Python's own limit counts several calls for each level of a value.
_DEEPEST, _STACK_BYTES = 10_000, 64 * 1024 * 1024
_DRAFTS = {
    str(each.META_SCHEMA.get("$schema")).rstrip("#"): each
    for each in (
        Draft4Validator,
        Draft6Validator,
        Draft7Validator,
        Draft201909Validator,
        Draft202012Validator,
    )
}
_NEWEST = "https://json-schema.org/draft/2020-12/schema"
# Keywords whose schemas are about the very value that theirs is about.
_LISTS, _NAMED = ("allOf", "anyOf", "oneOf"), ("dependentSchemas", "dependencies")
_SINGLE = ("not", "if", "then", "else")

Problem = dict[str, str]
Verdict = dict[str, Any]


class Fault(Exception):
    """What is wrong with a schema, as the end of a sentence about it."""


def judge(schema: dict[str, Any], value: str) -> Verdict:
    """The verdict; see the module."""
    try:
        checked = _checked(schema)
        if not value:
            return _verdict()
        return _verdict(checked.iter_errors(json.loads(value)))
    except Fault as fault:
        return _verdict(fault=str(fault))
    except RecursionError:
        return _verdict(fault="leads too deep")
    except Exception as error:  # noqa: BLE001 - whatever a library makes of a hostile schema
        return _verdict(fault=f"cannot be used: {_cut(f'{type(error).__name__}: {error}')}")


def _verdict(errors: Iterable[ValidationError] = (), fault: str | None = None) -> Verdict:
    problems: list[Problem] = []
    more = 0
    for error in islice(errors, _MOST_COUNTED):
        problem = _problem_of(error)
        if problem not in problems and len(problems) < MOST_PROBLEMS:
            problems.append(problem)
        elif problem not in problems:
            more += 1
    return {"fault": fault, "problems": problems, "more": more}


# -- the schema itself -------------------------------------------------------------------------


def _checked(schema: dict[str, Any]) -> Validator:
    """Something to judge by. Raises `Fault`."""
    name = schema.get("$schema", _NEWEST)
    draft = _DRAFTS.get(name.rstrip("#")) if isinstance(name, str) else None
    if draft is None:
        raise Fault(f"names a `$schema` that is not known: use {_NEWEST}, or leave it out")
    wrong = best_match(draft(draft.META_SCHEMA, registry=REGISTRY).iter_errors(schema))
    if wrong is not None:
        problem = _problem_of(wrong)
        raise Fault(
            f"is not a JSON Schema: {problem['path']}: expected {problem['expected']}, "
            f"found {problem['found']}"
        )
    _refuse_what_leads_nowhere(schema, str(name))
    return draft(schema, registry=REGISTRY)


def _refuse_what_leads_nowhere(schema: dict[str, Any], name: str) -> None:
    """Raise `Fault` for a reference to elsewhere or to nothing, for a circle of references, and for
    an expression that is none."""
    specification = specification_with(name)
    root = specification.create_resource(schema)
    steps: dict[int, list[Any]] = {}
    waiting = [(root, REGISTRY.resolver_with_root(root))]
    while waiting:
        current, resolver = waiting.pop()
        contents = current.contents
        if not isinstance(contents, dict) or id(contents) in steps:
            continue
        _refuse_bad_patterns(contents)
        waiting += [(below, resolver.in_subresource(below)) for below in current.subresources()]
        steps[id(contents)] = list(_about_the_same(contents))
        target = _target(contents, resolver)
        if target is not None:
            # It need not stand where schemas stand.
            waiting.append((specification.create_resource(target.contents), target.resolver))
            steps[id(contents)].append(target.contents)
    _refuse_circles(steps)


def _refuse_bad_patterns(contents: Mapping[str, Any]) -> None:
    for pattern in (contents.get("pattern"), *contents.get("patternProperties", ())):
        if isinstance(pattern, str):
            try:
                re.compile(pattern)
            except (re.error, OverflowError) as error:
                raise Fault(
                    f"has the pattern {_shown(pattern)}, which is no regular expression of "
                    f"Python's: {error}"
                ) from error


def _target(contents: Mapping[str, Any], resolver: Any) -> Any:
    """What a schema refers to, None when it refers to nothing."""
    for keyword in ("$dynamicRef", "$recursiveRef"):
        if keyword in contents:
            raise Fault(f"uses `{keyword}`, which is not known here: use `$ref`")
    reference = contents.get("$ref")
    if not isinstance(reference, str):
        return None
    try:
        return resolver.lookup(reference)
    except Unresolvable as error:
        raise Fault(
            f"refers to {_shown(reference)}, which is not in it; nothing is fetched"
        ) from error


def _about_the_same(contents: Mapping[str, Any]) -> Iterator[Any]:
    """The schemas that are asked about the value that this one is asked about."""
    for keyword in _LISTS:
        yield from contents.get(keyword, ())
    for keyword in _NAMED:
        yield from contents.get(keyword, {}).values()
    yield from (contents[keyword] for keyword in _SINGLE if keyword in contents)


def _refuse_circles(steps: Mapping[int, list[Any]]) -> None:
    """Raise `Fault` where a schema asks itself about the same value again, or asks on and on."""
    lengths: dict[int, int] = {}
    for start in steps:
        path, waiting = {start: None}, [(start, iter(steps[start]))]
        while waiting:
            current, following = waiting[-1]
            step = next((s for s in following if id(s) in steps and id(s) not in lengths), None)
            if step is None:
                waiting.pop()
                path.pop(current, None)
                beyond = (lengths.get(id(s), 0) for s in steps[current])
                lengths[current] = 1 + max(beyond, default=0)
                if lengths[current] > _MOST_STEPS:
                    raise Fault(f"refers on and on, more than {_MOST_STEPS} times")
            elif id(step) in path:
                raise Fault("refers to itself in a circle, without going into the value")
            else:
                path[id(step)] = None
                waiting.append((id(step), iter(steps[id(step)])))


# -- what is wrong with a value ----------------------------------------------------------------


def _problem_of(error: ValidationError) -> Problem:
    """What is wrong, in words: for a choice of schemas, of the one that nearly fits."""
    near = best_match([error]) or error
    expected = _expected(near)
    if near is not error:
        expected += f" (or another of {len(error.validator_value)} alternatives)"
    found = _shown(near.instance)
    return {"path": _path(near.absolute_path), "expected": _cut(expected), "found": found}


def _expected(error: ValidationError) -> str:
    keyword, asked, value = error.validator, error.validator_value, error.instance
    if keyword is None:
        return "nothing here"
    if keyword == "type":
        return "type " + (" or ".join(map(str, asked)) if isinstance(asked, list) else str(asked))
    if keyword == "required" and isinstance(asked, list):
        missing = [name for name in asked if name not in value]
        return "also " + ", ".join(map(_shown, missing))
    if keyword == "additionalProperties" and asked is False:
        return "no other properties than " + (_names(error.schema) or "none")
    if keyword in ("anyOf", "oneOf"):
        fits = f"only one of {len(asked)} alternatives to fit"
        first = {each.schema_path[0]: _expected(each) for each in reversed(error.context)}
        return " or ".join(dict.fromkeys(first[n] for n in sorted(first))) or fits
    return f"{keyword} {_shown(asked)}"


def _names(schema: Any) -> str:
    return ", ".join(
        map(_shown, (*schema.get("properties", ()), *schema.get("patternProperties", ())))
    )


def _path(parts: Iterable[str | int]) -> str:
    """Where it is, as in JSONPath (RFC 9535)."""
    said = "$"
    for part in parts:
        if isinstance(part, int):
            said += f"[{part}]"
        else:
            plain = re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", part)
            said += f".{part}" if plain else f"[{json.dumps(part, ensure_ascii=False)}]"
    return said if len(said) <= _PATH_CHARACTERS else said[:_PATH_CHARACTERS] + "…"


def _shown(value: Any) -> str:
    """The beginning of a value as JSON; no more of it is written out than is shown."""
    said = ""
    for chunk in json.JSONEncoder(ensure_ascii=False).iterencode(_short(value)):
        said += chunk
        if len(said) > _SHOWN_CHARACTERS:
            return said[:_SHOWN_CHARACTERS] + "…"
    return said


def _short(value: Any) -> Any:
    return value[: _SHOWN_CHARACTERS + 1] if isinstance(value, str) else value


def _cut(text: str, most: int = 300) -> str:
    return text if len(text) <= most else text[:most] + "…"


def cpu_limits(seconds: int, most: int) -> tuple[int, int]:
    """The soft and the hard limit of computing time, in seconds, for a process that may have no
    hard limit above `most` (RLIM_INFINITY: any)."""
    if most == resource.RLIM_INFINITY:
        return seconds, seconds + 1
    return min(seconds, most), min(seconds + 1, most)


def main() -> None:
    """Judge what stands on standard input."""
    _, most = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, cpu_limits(int(sys.argv[1]), most))
    schema, _, value = sys.stdin.buffer.read().partition(b"\n")
    verdict: list[Verdict] = []
    sys.setrecursionlimit(_DEEPEST)
    threading.stack_size(_STACK_BYTES)
    thread = threading.Thread(
        target=lambda: verdict.append(judge(json.loads(schema), value.decode()))
    )
    thread.start()
    thread.join()
    sys.stdout.write(json.dumps(verdict[0]))


if __name__ == "__main__":
    main()
