"""Pieces that are a whole file."""

import json

from inbox_orch.shared.shell.texts import packaged

from .edits import Edited
from .facts import Part
from .states import Found, digest


def wanted(part: Part) -> str:
    """The digest of the file as it should be."""
    return digest(_text(part))


def found(text: str, part: Part) -> Found | None:
    """The file as it is, None when nothing is in it."""
    return Found(digest(text)) if text else None


def add(edited: Edited, part: Part) -> tuple[Edited, int]:
    """The file as it should be."""
    assert not edited.text
    return edited.insert([(0, _text(part))]), 0


def remove(text: str, part: Part, made: int) -> str:
    """Nothing: the text is the piece."""
    return ""


def is_blank(text: str, part: Part) -> bool:
    """Whether nothing is in the file."""
    return not text


def _text(part: Part) -> str:
    if part.text is not None:
        return packaged("inbox_orch.inbox", part.text)
    return json.dumps(part.value, indent=2) + "\n"
