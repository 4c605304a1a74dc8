"""A policy as a part of a document, and as a document of its own."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from ..patches.patterns import fault
from ..runs.policies import MAX_NUMBER, MAX_PATTERN_CHARS, MOST_PATTERNS
from .parts import Part, validated
from .reading import Source, read_document

MAX_POLICY_BYTES = 1024 * 1024
MOST_REVIEWERS = 20


def _check_pattern(text: str) -> str:
    found = fault(text)
    if found is not None:
        raise ValueError(f"{found}\nas in a .gitignore file, like src/ or **/*.py")
    return text


Pattern = Annotated[str, Field(max_length=MAX_PATTERN_CHARS), AfterValidator(_check_pattern)]
Patterns = Annotated[list[Pattern], Field(max_length=MOST_PATTERNS)]
Number = Annotated[int, Field(ge=0, le=MAX_NUMBER)]
Word = Literal["allow", "ask", "deny"]
Tests = Annotated[list[Pattern], Field(min_length=1, max_length=MOST_PATTERNS)]


class PolicyPart(Part):
    """A policy, whole: what is not given is as the layers around it say."""

    allow_paths: Patterns | None = None
    forbid_paths: Patterns | None = None
    ask_paths: Patterns | None = None
    max_files: Number | None = None
    max_lines: Number | None = None
    max_patch_bytes: Number | None = None
    max_file_bytes: Number | None = None
    binary: Word | None = None
    deletes: Word | None = None
    renames: Word | None = None
    mode_changes: Word | None = None
    symlinks: Word | None = None
    submodules: Word | None = None
    secrets: Word | None = None
    tests_for: Annotated[dict[Pattern, Pattern | Tests], Field(max_length=MOST_PATTERNS)] | None = (
        None
    )
    ascii_only: bool | None = None
    issue_ref: bool | None = None
    min_reviewers: Annotated[int, Field(ge=0, le=MOST_REVIEWERS)] | None = None
    history: Literal["squash", "keep"] | None = None

    def value(self) -> dict[str, Any]:
        """The layer, as `runs.policies` has it."""
        return self.model_dump(exclude_unset=True)


class Wrapped(Part):
    """A document that has a policy and nothing else."""

    policy: PolicyPart | None = None

    def value(self) -> dict[str, Any]:
        return {} if self.policy is None else self.policy.value()


def read_policy(path: str) -> dict[str, Any]:
    """The policy in a file of YAML or JSON (`-`: standard input): its rules, or a mapping that has
    them under `policy`. Error `usage` that lists every problem by its line."""
    return policy_of(read_document(path, MAX_POLICY_BYTES))


def policy_of(source: Source) -> dict[str, Any]:
    """The policy that a document is. Error `usage`."""
    if source.value is None:
        return {}
    if isinstance(source.value, dict) and source.value.keys() == {"policy"}:
        return validated(Wrapped, source).value()
    return validated(PolicyPart, source).value()
