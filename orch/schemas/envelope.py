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


class Ended(Success[Data], Generic[Data]):
    """The last line of a stream that came to a good end."""

    type: Literal["outcome"]


class EndedOtherwise(FailureWithData[Partial], Generic[Partial]):
    """The last line of a stream on exits 8 and 11."""

    type: Literal["outcome"]


class BrokenOff(Failure):
    """The last line of a stream on any other exit."""

    type: Literal["outcome"]


class Contract(NamedTuple):
    """What `data` can be: on success, and beside an error on exits 8 and 11. A stream has
    `lines`, too; the envelope is then its last line."""

    results: tuple[type[Shape], ...]
    beside_error: tuple[type[Shape], ...] = ()
    lines: tuple[type[Shape], ...] = ()

    @property
    def stream(self) -> bool:
        """Whether the output is JSON Lines."""
        return bool(self.lines)

    def adapter(self) -> TypeAdapter[Any]:
        """Validates one JSON value of the output, a line of it for a stream."""
        if self.stream:
            return self._lines_adapter()
        # Models that are only known here: no type checker can follow.
        success: Any = Success
        with_data: Any = FailureWithData
        shapes: list[Any] = [success[result] for result in self.results]
        shapes += [with_data[data] for data in self.beside_error]
        union: Any = Failure
        for shape in reversed(shapes):
            union = shape | union
        return TypeAdapter(union)

    def _lines_adapter(self) -> TypeAdapter[Any]:
        ended: Any = Ended
        otherwise: Any = EndedOtherwise
        shapes: list[Any] = [*self.lines]
        shapes += [ended[result] for result in self.results]
        shapes += [otherwise[data] for data in self.beside_error]
        # After those with data: a pydantic before 2.8 takes the first that fits.
        shapes.append(BrokenOff)
        union: Any = Failure
        for shape in reversed(shapes):
            union = shape | union
        return TypeAdapter(union)
