"""The shapes that the output of a command can have, in the order in which they are tried."""

from itertools import combinations
from typing import Any

import pytest

from inbox_orch.inbox import schemas as inbox
from inbox_orch.orch import schemas as orch

Json = dict[str, Any]


def fits(shape: Json, other: Json, named: Json) -> bool:
    """Whether all that has the `other` shape has this one, too: keys too many are allowed."""
    shape, other = (named[s["$ref"].split("/")[-1]] if "$ref" in s else s for s in (shape, other))
    if "properties" not in shape:
        return shape.get("const", other.get("const")) == other.get("const")
    keys = shape.get("required", [])
    ours, theirs = shape["properties"], other.get("properties", {})
    return set(keys) <= set(other.get("required", [])) and all(
        fits(ours[key], theirs[key], named) for key in keys
    )


@pytest.mark.parametrize("schemas", [inbox, orch], ids=["inbox", "orch"])
def test_no_shape_comes_before_one_that_has_all_its_keys_and_more(schemas):
    """A library that takes the first shape that fits would leave the others' keys unread."""
    wrong = []
    for name in schemas.COMMANDS:
        shapes = schemas.command_schema(name).json_schema
        for one, other in combinations(shapes.get("anyOf", []), 2):
            if one != other and fits(one, other, shapes["$defs"]):
                wrong.append((name, one["$ref"], other["$ref"]))

    assert wrong == []
