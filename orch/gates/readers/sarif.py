"""SARIF 2.1.0, which many linters write. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from inbox_orch.shared.processes.endings import Ending

from ..definitions import Gate
from .documents import at, document, number_at, text_at
from .reading import UNREADABLE, Found, Reading, by_exit, relative, suspect

EXITS = {0: "passed", 1: "failed", 2: "suspect"}
"""What linters have in common; what is reported counts whatever the status."""
_COUNT = ("error", "warning")


def read(
    gate: Gate, ending: Ending, output: bytes | None, report: bytes | None, folder: str
) -> Reading:
    """A failure is `path:rule`. Notes, what is suppressed, and results that are no faults do not
    count; without a level a result is a warning (SARIF 3.27.10)."""
    if EXITS.get(ending.exit_status or 0) == "suspect":
        return by_exit(gate, ending, Found(), EXITS)
    whole = document(output if report is None else report)
    if not isinstance(at(whole, "runs"), list):
        return suspect(UNREADABLE, "its report is no SARIF")
    found = Found()
    for run, result in _results(whole):
        rule = _rule_of(run, result)
        if _counts(result, rule):
            path = relative(_path_of(result), folder)
            line = number_at(result, "locations", 0, "physicalLocation", "region", "startLine")
            name = text_at(result, "ruleId") or text_at(rule, "id") or "result"
            told = text_at(result, "message", "text")
            found.add(f"{path}:{name}", f"{path}:{line}: {name} {told}")
    return by_exit(gate, ending, found, EXITS)


def _results(whole: Any) -> Iterator[tuple[Any, Mapping[str, Any]]]:
    for run in at(whole, "runs") or ():
        results = at(run, "results")
        for result in results if isinstance(results, list) else ():
            if isinstance(result, dict):
                yield run, result


def _rule_of(run: Any, result: Mapping[str, Any]) -> Any:
    rules = at(run, "tool", "driver", "rules")
    index = at(result, "ruleIndex")
    if type(index) is int and at(rules, index) is not None:
        return at(rules, index)
    known = rules if isinstance(rules, Sequence) else ()
    named = at(result, "ruleId")
    return next((rule for rule in known if named and at(rule, "id") == named), None)


def _counts(result: Mapping[str, Any], rule: Any) -> bool:
    level = text_at(result, "level") or text_at(rule, "defaultConfiguration", "level")
    if text_at(result, "kind") not in ("", "fail") or (level or "warning") not in _COUNT:
        return False
    given = at(result, "suppressions")
    accepted = [
        each
        for each in (given if isinstance(given, list) else ())
        if text_at(each, "status") in ("", "accepted")
    ]
    return not accepted


def _path_of(result: Mapping[str, Any]) -> str:
    from urllib.parse import unquote

    uri = text_at(result, "locations", 0, "physicalLocation", "artifactLocation", "uri")
    return unquote(uri.removeprefix("file://"))
