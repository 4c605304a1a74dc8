"""What the models of documents have in common: strictness, checked text, the clocks."""

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.ids import quoted
from inbox_orch.shared.shell.values import DURATIONS, with_units

from ..runs import limits
from ..runs.model import Limits
from .problems import Path, problems_of
from .reading import Source

Model = TypeVar("Model", bound="Part")


class Part(BaseModel):
    """A mapping of a document. Nothing is converted, no unknown key is let in."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _without_empty(cls, given: Any) -> Any:
        """A key without a value is as good as not there."""
        if isinstance(given, dict) and None in given.values():
            return {key: value for key, value in given.items() if value is not None}
        return given


def checked(check: Callable[[str], object]) -> AfterValidator:
    """Text that passes a check of the domain, which raises `usage` otherwise."""

    def validate(text: str) -> str:
        try:
            check(text)
        except InboxOrchError as error:
            raise ValueError(error.message + (f"\n{error.hint}" if error.hint else "")) from error
        return text

    return AfterValidator(validate)


def _check_command(text: str) -> None:
    limits.check_commands([text])


Command = Annotated[str, checked(_check_command)]
Commands = Annotated[list[Command], Field(max_length=limits.MOST_CHECKS)]
Tries = Annotated[int, Field(ge=1, le=limits.MOST_ATTEMPTS)]


def _in_seconds(given: Any) -> Any:
    """A duration with units as its seconds; whatever is no text is left as it is."""
    if not isinstance(given, str):
        return given
    seconds = with_units(given)
    if seconds is None:
        raise ValueError(
            f"must be a number of seconds, or like {DURATIONS}, not the text {quoted(given[:40])}"
        )
    return seconds


# Strict pydantic takes a whole number for a number, too.
Seconds = Annotated[float, BeforeValidator(_in_seconds), Field(allow_inf_nan=False)]
ClockSeconds = Annotated[Seconds, Field(ge=1, le=limits.MAX_CLOCK_SECONDS)]


class LimitsPart(Part):
    """The clocks of an attempt, and of each check."""

    queue_seconds: ClockSeconds | None = None
    run_seconds: ClockSeconds | None = None
    silent_seconds: ClockSeconds | None = None
    block_seconds: ClockSeconds | None = None
    check_seconds: ClockSeconds | None = None

    def value(self) -> Limits:
        return Limits(**self.model_dump())


def validated(model: type[Model], source: Source) -> Model:
    """The whole document as this model; error `usage` with every problem."""
    try:
        return model.model_validate(source.value)
    except ValidationError as error:
        raise source.refusal(problems_of(error, keys_of(model))) from error


def keys_of(model: type[BaseModel]) -> Callable[[Path], list[str]]:
    """What gives the keys that a mapping may have, by its path in a document of this model."""

    def keys_at(path: Path) -> list[str]:
        """The keys of the model to which a path leads, through lists and optional parts."""
        here: type[BaseModel] | None = model
        for part in path:
            if isinstance(part, str) and here is not None:
                here = _model_in(_annotation(here, part))
        return [] if here is None else [f.alias or n for n, f in here.model_fields.items()]

    return keys_at


def _annotation(model: type[BaseModel], key: str) -> Any:
    for name, field in model.model_fields.items():
        if key in (name, field.alias):
            return field.annotation
    # A key of a mapping from names to parts stands between a field and its part.
    return model


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for inner in getattr(annotation, "__args__", ()):
        found = _model_in(inner)
        if found is not None:
            return found
    return None
