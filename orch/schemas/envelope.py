"""What every output with --json looks like around its `data`."""

from typing import Any, Generic, Literal, NamedTuple, TypeVar

from pydantic import Field, TypeAdapter

from inbox_orch.inbox.schemas import Error, Shape

Data = TypeVar("Data", bound=Shape)
Partial = TypeVar("Partial")


class Success(Shape, Generic[Data]):
    """The one JSON value of a command that did what was asked."""

    schema_: Literal["orch/1"] = Field(alias="schema")
    ok: Literal[True]
    data: Data


class Failure(Shape):
    """The one JSON value of a command that failed."""

    schema_: Literal["orch/1"] = Field(alias="schema")
    ok: Literal[False]
    error: Error


class FailureWithData(Failure, Generic[Partial]):
    """A failure on exit 8 or 11, with what there is all the same."""

    data: Partial


class Contract(NamedTuple):
    """What `data` can be: on success, and beside an error on exits 8 and 11."""

    results: tuple[type[Shape], ...]
    beside_error: tuple[type[Shape], ...] = ()

    def adapter(self) -> TypeAdapter[Any]:
        """Validates the JSON value of the output."""
        # Models that are only known here: no type checker can follow.
        success: Any = Success
        with_data: Any = FailureWithData
        shapes: list[Any] = [success[result] for result in self.results]
        shapes += [with_data[data] for data in self.beside_error]
        union: Any = Failure
        for shape in reversed(shapes):
            union = shape | union
        return TypeAdapter(union)
