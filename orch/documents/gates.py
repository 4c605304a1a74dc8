"""Gates as a part of a document."""

import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from inbox_orch.shared.ids import check_name, quoted

from ..gates.built_in import BUILT_IN
from ..gates.definitions import DEFAULT_SECONDS, MOST_GATES, REPORT, Gate
from ..runs.limits import check_commands
from .parts import ClockSeconds, Part, checked
from .problems import near

MOST_WORDS = 200
MOST_PATHS = 100
MAX_PATTERN_CHARS = 1000


def _check_name(name: str) -> None:
    check_name(name, "gate")


def _check_glob(glob: str) -> None:
    parts = glob.split("/")
    if not glob.strip() or not glob.isprintable() or len(glob) > MAX_PATTERN_CHARS:
        raise ValueError("a glob is text without control characters, like src/**")
    if glob.startswith("/") or ".." in parts:
        raise ValueError(
            f"{quoted(glob)} must lead from the top of the repository to files below it\n"
            "without a leading '/' and without '..'"
        )


def _check_pattern(pattern: str) -> None:
    if not pattern or len(pattern) > MAX_PATTERN_CHARS:
        raise ValueError(f"a pattern has 1 to {MAX_PATTERN_CHARS} characters")
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(
            f"{quoted(pattern[:60])} is no regular expression: {error}\n"
            "as of Python's module re; the group (?P<id>…) may say what a failure is called"
        ) from error


def _checked(check: Callable[[str], None]) -> AfterValidator:
    """Text that passes a check, which raises ValueError otherwise."""

    def validate(text: str) -> str:
        check(text)
        return text

    return AfterValidator(validate)


def _check_run(run: Any) -> Any:
    """A line for the shell, or words. Of a built-in gate they may be none, as a tuple."""
    if run == () and isinstance(run, tuple):
        return run
    if isinstance(run, str):
        return _line(run)
    texts = isinstance(run, (list, tuple)) and all(isinstance(word, str) for word in run)
    if not texts or not 1 <= len(run) <= MOST_WORDS:
        raise ValueError(
            f"must be a line for the shell, or a list of 1 to {MOST_WORDS} words\n"
            "like `make test`, or [pytest, -q]; numbers stand in quotes"
        )
    _line(" ".join(run))
    if not run[0].strip() or run[0].startswith("-"):
        raise ValueError(f"the first word is the program, not {quoted(run[0][:60])}")
    return tuple(run)


def _line(line: str) -> str:
    from inbox_orch.shared.errors import InboxOrchError

    try:
        check_commands([line], "command", "gate")
    except InboxOrchError as error:
        raise ValueError(error.message) from error
    return line


GateName = Annotated[str, checked(_check_name)]
Glob = Annotated[str, _checked(_check_glob)]
Pattern = Annotated[str, _checked(_check_pattern)]
Run = Annotated[Any, AfterValidator(_check_run)]


class GatePart(Part):
    """One gate, without its name."""

    run: Run
    reads: Literal["exit", "junit", "ruff", "mypy", "sarif", "lines"] = "exit"
    timeout_seconds: ClockSeconds = DEFAULT_SECONDS
    paths: Annotated[list[Glob], Field(max_length=MOST_PATHS)] = Field([])
    mode: Literal["block", "warn"] = "block"
    writes: Literal["put_back", "keep"] = "put_back"
    clean: bool = False
    strict: bool = False
    pattern: Pattern | None = None
    min_tests: Literal["base"] | None = None

    @model_validator(mode="before")
    @classmethod
    def _no_unknown_name(cls, given: Any) -> Any:
        if isinstance(given, str):
            hint = near(given, BUILT_IN) or f"built in are {', '.join(BUILT_IN)}"
            raise ValueError(f"there is no gate {quoted(given[:60])} built in\n{hint}")
        return given

    @model_validator(mode="after")
    def _fits_together(self) -> "GatePart":
        words = self.run if isinstance(self.run, tuple) else (self.run,)
        writes_report = any(REPORT in word for word in words)
        if self.reads == "junit" and not writes_report:
            raise ValueError(
                "what reads junit needs a report, and `run` does not say where to write it\n"
                'put {report} where the file is named, like "--junitxml={report}"'
            )
        if (self.reads == "lines") != (self.pattern is not None):
            raise ValueError(
                "`reads: lines` and `pattern` go together\n"
                "the pattern says which lines are failures"
            )
        if self.clean and self.writes == "keep":
            raise ValueError(
                "`clean: true` runs in a folder that goes away, so nothing can be kept of it\n"
                "leave out `clean` or `writes: keep`"
            )
        if self.min_tests is not None and self.reads != "junit":
            raise ValueError("`min_tests` needs `reads: junit`: nothing else counts tests")
        return self

    def value(self, name: str) -> Gate:
        """The gate of this name as the frozen value."""
        return Gate.from_json({"name": name, **self.model_dump(exclude_unset=True)})


def _by_name(given: Any) -> Any:
    """Gates by their names, with what is known of those that are built in. What is wrong stays as
    it is, and is told where it stands."""
    if isinstance(given, list):
        given = _named(given)
    if not isinstance(given, dict):
        return given
    return {name: _with_built_in(name, gate) for name, gate in given.items()}


def _named(entries: list[Any]) -> dict[Any, Any]:
    """A list has the names of built-in gates, and gates with a `name`."""
    found: dict[Any, Any] = {}
    for entry in entries:
        gate: Any = entry
        name: Any = entry
        if isinstance(entry, dict):
            name, gate = entry.get("name"), {k: v for k, v in entry.items() if k != "name"}
        if not isinstance(name, str):
            raise ValueError(
                f"a list has names of built-in gates, or gates with a `name`\n"
                f"built in are {', '.join(BUILT_IN)}"
            )
        if name in found:
            raise ValueError(f"`gates` names {quoted(name[:60])} twice\nkeep one")
        found[name] = gate
    return found


def _with_built_in(name: Any, given: Any) -> Any:
    """A built-in gate by its name alone, or by its name with other settings."""
    if isinstance(given, str) and given in BUILT_IN:
        return _as_given(BUILT_IN[given])
    if not isinstance(name, str) or name not in BUILT_IN:
        return given
    if given is None:
        return _as_given(BUILT_IN[name])
    known = BUILT_IN[name]
    if isinstance(given, dict) and not given.get("run"):
        return {**_as_given(known), **{k: v for k, v in given.items() if k != "run"}}
    return given


def _as_given(gate: Gate) -> Mapping[str, Any]:
    facts = gate.as_json()
    del facts["name"]
    return {**facts, "run": gate.run}


Gates = Annotated[
    dict[GateName, GatePart],
    BeforeValidator(_by_name),
    Field(max_length=MOST_GATES),
]
