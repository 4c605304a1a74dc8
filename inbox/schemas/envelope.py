"""The envelope around every result and error, and what a command's contract consists of."""

from typing import Annotated, Any, Generic, Literal, NamedTuple, TypeVar

from pydantic import Field, TypeAdapter

from inbox_orch.shared.errors import EXIT_CODES

from .things import Shape

Data = TypeVar("Data", bound=Shape)
Partial = TypeVar("Partial")


class Error(Shape):
    """Why a command failed; the exit code follows from `code` (see docs/exit-codes.md)."""

    code: Annotated[str, Field(json_schema_extra={"examples": sorted(EXIT_CODES)})]
    message: str
    hint: str | None
    retryable: bool
    details: dict[str, Any]


class Success(Shape, Generic[Data]):
    """The one JSON value of a command that did what was asked."""

    schema_: Literal["inbox/1"] = Field(alias="schema")
    ok: Literal[True]
    data: Data


class Failure(Shape):
    """The one JSON value of a command that failed."""

    schema_: Literal["inbox/1"] = Field(alias="schema")
    ok: Literal[False]
    error: Error


class FailureWithData(Failure, Generic[Partial]):
    """A failure on exit 8 or 11, with what there is all the same."""

    data: Partial


class Contract(NamedTuple):
    """What a command puts on standard output with --json.

    `results` are the possible shapes of `data` on success; `beside_error` those of `data` on
    exits 8 and 11. A stream has `lines` instead, and its errors before the first line are an
    envelope like any other.
    """

    results: tuple[type[Shape], ...] = ()
    beside_error: tuple[type[Shape], ...] = ()
    lines: tuple[type[Shape], ...] = ()

    @property
    def stream(self) -> bool:
        """Whether the output is JSON Lines."""
        return bool(self.lines)

    def adapter(self) -> TypeAdapter[Any]:
        """Validates one JSON value of the output, a line of it for a stream."""
        # The generic is filled in with a value: pydantic reads it at run time, mypy cannot.
        shapes: list[Any] = [Success[result] for result in self.results]  # type: ignore[valid-type]
        shapes += [FailureWithData[data] for data in self.beside_error]  # type: ignore[valid-type]
        shapes += [*self.lines, Failure]
        union: Any = shapes[0]
        for shape in shapes[1:]:
            union = union | shape
        return TypeAdapter(union)
