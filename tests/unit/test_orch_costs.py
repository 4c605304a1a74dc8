"""What a result says that it has cost."""

import json
from typing import Any

import pytest

from inbox_orch.orch.runs.costs import Cost, cost_in, total


@pytest.mark.parametrize("payload, expected", [
    ({"cost_usd": 0.5}, Cost(0.5)),
    ({"total_cost_usd": 2, "usage": {"input_tokens": 10, "output_tokens": 3}}, Cost(2.0, 10, 3)),
    ({"prompt_tokens": 1, "completion_tokens": 0}, Cost(None, 1, 0)),
    ({"cost_usd": -1, "input_tokens": True, "output_tokens": "many"}, None),
    ({"cost_usd": 1e300, "usage": [1]}, None),
    ({"cost_usd": 1e15, "input_tokens": 10**15, "output_tokens": 10**15 - 1},
     Cost(None, None, 10**15 - 1)),
    ({}, None),
])  # fmt: skip
def test_a_cost_is_what_a_payload_names_as_one(payload: dict[str, Any], expected: Cost | None):
    assert cost_in(json.dumps(payload)) == expected


def test_nothing_is_no_cost():
    assert cost_in(None) is None
    assert cost_in('{"cost_usd": NaN}') is None


def test_a_total_says_nothing_of_what_nobody_has_reported():
    assert total([]) == Cost()
    assert total([Cost(0.1), Cost(0.2, 5, None)]) == Cost(0.1 + 0.2, 5, None)
    assert total([Cost(None, 5, 7), Cost(0.5, 6, 8), Cost(0.5)]) == Cost(1.0, 11, 15)
