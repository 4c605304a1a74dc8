"""What a gate is: a named command, and how its failures are read. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

MOST_GATES = 30
READERS = ("exit", "junit", "ruff", "mypy", "sarif", "lines")
MODES = ("block", "warn")
WRITES = ("put_back", "keep")
DEFAULT_SECONDS = 900.0
REPORT = "{report}"
"""Stands in a command for the file of its report."""
_LINTERS = ("ruff", "mypy", "sarif")


class Gate(NamedTuple):
    """`run` are words, or a line for the shell; `{report}` in it is a file that the command writes
    its report to. `reads` is of `READERS`, `pattern` the regular expression of `lines`. `paths`:
    globs; without a change in one of them it is skipped. `mode` `warn` tells and lets through.
    `writes`: whether what it changes in the tree is put back or kept. `strict`: failures that the
    base has, too, count. `min_tests` `base`: fewer tests than at the base are a failure. `clean`:
    it runs in a checkout of its own."""

    name: str
    run: tuple[str, ...] | str
    reads: str = "exit"
    timeout_seconds: float = DEFAULT_SECONDS
    paths: tuple[str, ...] = ()
    mode: str = "block"
    writes: str = "put_back"
    clean: bool = False
    strict: bool = False
    pattern: str | None = None
    min_tests: str | None = None

    @property
    def lints(self) -> bool:
        """Whether it is a linter: what `run_linters` runs; `run_tests` runs the others."""
        return self.reads in _LINTERS or (self.name in ("lint", "format", "types"))

    @property
    def shown(self) -> str:
        """The command as a person can run it: without the report, that nobody would read."""
        if isinstance(self.run, str):
            return self.run.replace(REPORT, "/dev/null")
        import shlex

        return shlex.join(without_reports(self.run))

    def as_json(self) -> dict[str, Any]:
        """Only what is said; a gate's name always."""
        defaults = Gate("", ())
        found = {}
        for name, value in self._asdict().items():
            if name in ("name", "run") or value != getattr(defaults, name):
                found[name] = list(value) if isinstance(value, tuple) else value
        return found

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "Gate":
        """What `as_json` has made."""
        values: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in stored.items()
        }
        return cls(**values)


def without_reports(words: Sequence[str]) -> tuple[str, ...]:
    """Arguments without those that name the file of a report."""
    found: list[str] = []
    for word in words:
        if REPORT not in word:
            found.append(word)
        elif found and "=" not in word and found[-1].startswith("-"):
            found.pop()
    return tuple(found)
