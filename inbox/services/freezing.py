"""The result of a writing call as text, to be kept under its key, and back again."""

import json
from typing import Any, TypeVar

from ..domain.model import Artifact, Lease, Message, Thread, Written

Kind = TypeVar("Kind", Message, Lease)


def freeze(result: Written) -> str:
    """A result as JSON by the names of its fields; a later release may have other ones."""
    thread, message, lease = result.thread, result.message, result.lease
    shape = result._asdict() | {
        "thread": _fields_of(thread) | {"lease": _fields_of(thread.lease)},
        "message": _fields_of(message),
        "lease": _fields_of(lease),
    }
    if message is not None:
        shape["message"]["artifacts"] = [artifact._asdict() for artifact in message.artifacts]
    return json.dumps(shape, ensure_ascii=False)


def _fields_of(thing: Thread | Message | Lease | None) -> dict[str, Any]:
    return {} if thing is None else thing._asdict()


def thaw(text: str) -> Written:
    """A `Written` from what `freeze` made of it, perhaps in another release."""
    stored = json.loads(text)
    thread = stored["thread"]
    values = _values(Thread, thread | {"lease": _thing(Lease, thread["lease"])})
    nested = {
        "thread": Thread._make(values),
        "message": _thaw_message(stored["message"]),
        "lease": _thing(Lease, stored["lease"]),
    }
    return Written._make(_values(Written, stored | nested))


def _thaw_message(stored: dict[str, Any]) -> Message | None:
    artifacts = tuple(Artifact._make(_values(Artifact, a)) for a in stored.get("artifacts", ()))
    message = _thing(Message, stored | {"artifacts": artifacts} if stored else stored)
    if message is None:
        return None
    return message._replace(to=tuple(message.to), options=tuple(message.options))


def _thing(kind: type[Kind], stored: dict[str, Any]) -> "Kind | None":
    return kind._make(_values(kind, stored)) if stored else None


def _values(kind: Any, stored: dict[str, Any]) -> list[Any]:
    """The values of a tuple's fields; one that was not stored has its default, or is None."""
    defaults = kind._field_defaults
    return [stored.get(name, defaults.get(name)) for name in kind._fields]
