"""JUnit XML, as pytest and most other programs for tests write it. Pure.

A report is written by what is judged, so it is read with care: piece by piece, without entities,
and what is not well-formed is not believed.
"""

from typing import Any

from inbox_orch.shared.processes.endings import Ending

from ..definitions import Gate
from .reading import (
    BROKEN,
    NO_TESTS,
    UNREADABLE,
    Found,
    Reading,
    failed_exit,
    one_line,
    suspect,
)

EXITS = {0: "passed", 1: "failed", 2: "interrupted", 3: "suspect", 4: "suspect", 5: "no tests"}
"""pytest's own (docs.pytest.org, "Exit codes"). 2: failed where files could not be collected, and
otherwise somebody has interrupted it."""
_COLLECTION = "collection failure"  # _pytest/junitxml.py
_MOST_DEPTH = 100
_MOST_BODY = 2000  # characters of a failure's text that are looked at


class _Refused(Exception):
    """The report is not what it should be; the text says in what."""


def read(
    gate: Gate, ending: Ending, output: bytes | None, report: bytes | None, folder: str
) -> Reading:
    """A failure is `classname::name` of a test, or the name of what could not be collected."""
    status = ending.exit_status or 0
    said = EXITS.get(status, "failed")
    if said == "suspect":
        return suspect(BROKEN, f"it could not judge: it ended with exit status {status}")
    if said == "no tests":
        return suspect(NO_TESTS, f"no tests have run (exit status {status})")
    if report is None:
        return suspect(UNREADABLE, "no report of it can be read; its output may say why")
    try:
        tests = _Tests(report)
    except _Refused as refused:
        return suspect(UNREADABLE, f"its report cannot be read: {refused}")
    return _judged(gate, ending, said, tests)


def _judged(gate: Gate, ending: Ending, said: str, tests: "_Tests") -> Reading:
    if said == "interrupted" and not tests.uncollected:
        return suspect(BROKEN, f"it was interrupted (exit status {ending.exit_status})")
    if tests.found:
        return tests.found.failed(gate, tests.ran)
    if said != "passed":
        return failed_exit(gate, ending, tests.ran)
    if tests.ran == 0:
        return suspect(NO_TESTS, "no tests have run")
    return Reading("passed", tests=tests.ran)


class _Tests:
    """What a report says: failures, how many tests have run, and whether some could not be
    collected."""

    def __init__(self, report: bytes) -> None:
        """Raises `_Refused`."""
        from xml.parsers import expat

        self.found, self.ran, self.uncollected = Found(), 0, False
        self._depth, self._is_report = 0, False
        self._test: dict[str, str] | None = None
        self._outcome, self._told = "", ""
        parser = expat.ParserCreate()
        parser.StartElementHandler = self._begin
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text
        parser.StartDoctypeDeclHandler = _refuse_doctype
        try:
            parser.Parse(report, True)
        except expat.ExpatError as error:
            raise _Refused(one_line(str(error))) from None
        except (LookupError, UnicodeError) as error:  # an encoding that there is not
            raise _Refused("its encoding is not known") from error
        if not self._is_report:
            raise _Refused("there are no test suites in it")

    def _begin(self, name: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > _MOST_DEPTH:
            raise _Refused(f"its elements are more than {_MOST_DEPTH} deep")
        self._is_report = self._is_report or name in ("testsuites", "testsuite")
        if name == "testcase":
            self._test, self._outcome, self._told = attributes, "", ""
        elif self._test is not None and name in ("failure", "error"):
            self._outcome, self._told = "failed", attributes.get("message", "")
            self.uncollected = self.uncollected or self._told == _COLLECTION
        elif self._test is not None and name == "skipped":
            self._outcome = self._outcome or "skipped"

    def _text(self, text: str) -> None:
        if self._outcome == "failed" and len(self._told) < _MOST_BODY:
            self._told += text[:_MOST_BODY]

    def _end(self, name: str) -> None:
        self._depth -= 1
        if name != "testcase" or self._test is None:
            return
        test, self._test = self._test, None
        self.ran += self._outcome != "skipped"
        if self._outcome == "failed":
            within, called = test.get("classname", ""), test.get("name", "")
            name_of = f"{within}::{called}" if within else called or "a test without a name"
            self.found.add(name_of, f"{name_of}: {self._told.lstrip()}")


def _refuse_doctype(*_: Any) -> None:
    raise _Refused("it declares a document type, which no report of tests needs")
