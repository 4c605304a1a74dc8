"""Real outputs held against the published models, with no key too many."""

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel

from inbox_orch.inbox import schemas


def validated(
    command: str, line: str | bytes, contracts: Mapping[str, Any] = schemas.COMMANDS
) -> Any:
    """One JSON value of a command's output as its model; fails on a key that no model names."""
    model = contracts[command].adapter().validate_json(line, strict=True)
    assert list(surplus(model)) == [], "the models do not know these keys"
    return model


def surplus(value: object, path: str = "") -> Iterator[str]:
    """The paths of keys that are in the output and in no model."""
    if isinstance(value, BaseModel):
        yield from (f"{path}.{key}" for key in value.model_extra or ())
        for name in type(value).model_fields:
            yield from surplus(getattr(value, name), f"{path}.{name}")
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from surplus(item, f"{path}[]")
