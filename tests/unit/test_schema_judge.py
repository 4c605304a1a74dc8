"""The judge of results: which schemas it takes, and what it says of a value that one refuses."""

import json
import resource
from typing import Any

import pytest

from inbox_orch.inbox.services.schema_judge import MOST_PROBLEMS, cpu_limits, judge

OBJECT = {
    "type": "object",
    "required": ["verdict", "findings"],
    "properties": {
        "verdict": {"enum": ["approve", "reject"]},
        "findings": {"type": "array", "items": {"$ref": "#/$defs/finding"}},
    },
    "additionalProperties": False,
    "$defs": {
        "finding": {"type": "object", "properties": {"line": {"type": "integer", "minimum": 1}}}
    },
}
SELF = {"properties": {"below": {"$ref": "#"}}, "additionalProperties": {"type": "string"}}


def said(schema: dict[str, Any], value: Any) -> list[str]:
    verdict = judge(schema, json.dumps(value))
    assert (verdict["fault"], verdict["more"]) == (None, 0)
    return [f"{p['path']}: {p['expected']}, not {p['found']}" for p in verdict["problems"]]


@pytest.mark.parametrize(
    "schema, value",
    [
        (OBJECT, {"verdict": "approve", "findings": [{"line": 1}, {}]}),
        (SELF, {"below": {"below": {"name": "x"}}}),
        ({"type": ["array", "null"]}, None),
        ({}, "anything"),
        ({"$schema": "http://json-schema.org/draft-07/schema#", "if": True, "then": {}}, 1),
        ({"$id": "https://example.com/s", "$ref": "#a", "$defs": {"x": {"$anchor": "a"}}}, 1),
        # What is no schema may hold anything.
        ({"const": {"$ref": "https://example.com/"}}, {"$ref": "https://example.com/"}),
        ({"properties": {"$ref": {"type": "integer"}}}, {"$ref": 1}),
    ],
)
def test_what_a_schema_accepts_is_accepted(schema, value):
    assert said(schema, value) == []


@pytest.mark.parametrize(
    "schema, value, expected",
    [
        (OBJECT, {}, ['$: also "verdict", "findings", not {}']),
        (OBJECT, [1], ["$: type object, not [1]"]),
        (
            OBJECT,
            {"verdict": "maybe", "findings": [{"line": "7"}, {"line": 0}]},
            [
                '$.verdict: enum ["approve", "reject"], not "maybe"',
                '$.findings[0].line: type integer, not "7"',
                "$.findings[1].line: minimum 1, not 0",
            ],
        ),
        (
            {
                "properties": {"a": {}},
                "patternProperties": {"^b": {}},
                "additionalProperties": False,
            },
            {"a": 1, "b": 2, "c": 3},
            ['$: no other properties than "a", "^b", not {"a": 1, "b": 2, "c": 3}'],
        ),
        ({"type": ["string", "null"]}, 5, ["$: type string or null, not 5"]),
        ({"properties": {"a b": {"not": {}}}}, {"a b": 1}, ['$["a b"]: not {}, not 1']),
        ({"allOf": [False]}, 1, ["$: nothing here, not 1"]),
        ({"pattern": "^a$"}, "b", ['$: pattern "^a$", not "b"']),
        (
            {"anyOf": [{"properties": {"n": {"type": "integer"}}}, {"type": "string"}]},
            {"n": "x"},
            ['$.n: type integer (or another of 2 alternatives), not "x"'],
        ),
        ({"anyOf": [{"type": "null"}, {"const": 5}]}, 1, ["$: type null or const 5, not 1"]),
        ({"oneOf": [{}, True]}, 1, ["$: only one of 2 alternatives to fit, not 1"]),
    ],
)
def test_each_thing_that_is_wrong_is_named_with_its_place(schema, value, expected):
    assert sorted(said(schema, value)) == sorted(expected)


def test_much_that_is_wrong_is_counted_and_large_values_are_cut():
    verdict = judge({"items": {"maxLength": 3}}, json.dumps(["ä" * 100_000] * 30))

    assert (len(verdict["problems"]), verdict["more"]) == (MOST_PROBLEMS, 20)
    assert verdict["problems"][9]["path"] == "$[9]"
    assert len(json.dumps(verdict)) < 20_000
    deep = judge({"additionalProperties": {"type": "integer"}}, json.dumps({"k" * 5000: "x"}))
    assert len(deep["problems"][0]["path"]) < 250


@pytest.mark.parametrize(
    "schema, fault",
    [
        ({"type": "strin"}, '$.type: expected enum ["array", "boolean"'),
        ({"properties": []}, "$.properties"),
        ({"minLength": -1}, "minimum 0"),
        ({"$schema": "https://example.com/mine"}, "`$schema` that is not known"),
        ({"$schema": 5}, "`$schema`"),
        ({"$ref": "https://example.com/s.json"}, "nothing is fetched"),
        ({"items": {"$ref": "file:///etc/passwd"}}, "nothing is fetched"),
        ({"allOf": [{"$ref": "#/$defs/missing"}]}, "nothing is fetched"),
        ({"$id": "http://[::1", "$ref": "x"}, ""),
        ({"$dynamicRef": "#a"}, "$dynamicRef"),
        ({"properties": {"a": {"pattern": "("}}}, 'pattern "("'),
        ({"patternProperties": {"*": {}}}, 'pattern "*"'),
        ({"$ref": "#"}, "circle"),
        ({"$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}]}}}, "circle"),
        ({"not": {"if": {"$ref": "#"}}}, "circle"),
        ({"$ref": "#/mine", "mine": {"allOf": [{"$ref": "#/mine"}]}}, "circle"),
        (
            {"$defs": {str(n): {"$ref": f"#/$defs/{n + 1}"} for n in range(120)} | {"120": {}}},
            "on and on",
        ),
    ],
)
def test_a_schema_that_cannot_be_judged_by_is_refused(schema, fault):
    verdict = judge(schema, "")

    assert verdict["fault"] is not None and fault in verdict["fault"]
    assert len(verdict["fault"]) < 1000


def test_a_value_that_leads_too_deep_is_no_crash():
    value = "x"
    for _ in range(100):
        value = {"below": value}

    assert judge(SELF, json.dumps(value))["fault"] in (None, "leads too deep")


@pytest.mark.parametrize(
    "most, limits",
    [(resource.RLIM_INFINITY, (5, 6)), (60, (5, 6)), (6, (5, 6)), (5, (5, 5)), (3, (3, 3))],
)
def test_where_less_computing_time_is_allowed_the_judge_takes_no_more(most, limits):
    assert cpu_limits(5, most) == limits
