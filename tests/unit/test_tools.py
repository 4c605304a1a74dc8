"""Commands as tools: what they take and give is what the commands take and give."""

import json
from typing import Any

import pytest

from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.tools.cutting import rest_tool
from inbox_orch.shared.tools.tools import (
    MOST_WAIT_SECONDS,
    VERBATIM,
    command_of,
    lean,
    outline,
    words_for,
)
from inbox_orch.shared.tools.wording import worded, wording_of
from support.tooling import PROGRAMS, tools_of

TOOLS = {name: about for program in PROGRAMS for name, about in tools_of(program).items()}


def words(tool: str, **given: Any) -> list[str]:
    return words_for(TOOLS[tool], given, lambda text: f"file of {text}")


def refusal(tool: str, **given: Any) -> InboxOrchError:
    with pytest.raises(InboxOrchError) as raised:
        words(tool, **given)
    assert raised.value.code == "usage"
    assert raised.value.hint
    return raised.value


def test_values_become_the_options_of_the_command():
    given = {"to": "w", "subject": "-s", "body": "--json", "attach": ["a", "b"], "sealed": True}
    assert words("inbox_send", **given) == [
        "send", "--to=w", "--subject=-s", "--body=--json", "--attach=a", "--attach=b", "--sealed",
        "--",
    ]  # fmt: skip
    assert words("inbox_renew", thread="-t", token="k", lease=60.0) == [
        "renew", "--token=k", "--lease=60", "--", "-t"
    ]  # fmt: skip
    assert words("orch_dispatch", tasks=["--a", "b"]) == ["dispatch", "--", "--a", "b"]
    assert words("orch_task_show", task="a") == ["task", "show", "--", "a"]


def test_null_and_false_say_nothing_and_one_stands_for_a_list_of_one():
    assert words("inbox_fetch", mailbox="m", peek=False, wait=None)[1:-1] == [
        "--mailbox=m", "--limit=10"
    ]  # fmt: skip


def test_an_object_is_handed_over_in_a_file():
    assert words("inbox_done", thread="t", token="k", payload={"a": "é"}) == [
        "done", "--token=k", '--payload-file=file of {"a": "\\u00e9"}', "--", "t"
    ]  # fmt: skip


def test_a_plan_is_given_as_text():
    given = {"task": "a", "body": "", "decide": "split", "plan": "tasks: []"}
    assert "--plan=file of tasks: []" in words("orch_answer", **given)
    assert TOOLS["orch_answer"].takes["properties"]["plan"]["type"] == "string"


def test_a_wait_stays_under_the_patience_of_clients():
    assert words("inbox_claim")[1:] == ["--"]
    assert f"--wait={MOST_WAIT_SECONDS}" in words("inbox_claim", wait=600)
    assert "--wait=45" in words("orch_wait")
    for about in TOOLS.values():
        assert about.takes["properties"].get("wait", {"maximum": 50})["maximum"] < 60


@pytest.mark.parametrize("given", [
    {"limit": True}, {"limit": [1]}, {"limit": {}}, {"after": {}}, {"count": "yes"},
    {"state": [None]}, {"after": "\ud800"}, {"no_such": 1},
])  # fmt: skip
def test_a_value_of_another_type_is_a_wrong_call(given):
    refusal("inbox_list", **given)


def test_what_is_missing_or_unknown_is_named():
    assert "thread" in refusal("inbox_done", token="k").message
    assert "body" in refusal("orch_answer", task="a").message
    assert refusal("inbox_send", to="w", subjekt="s").hint == "did you mean subject?"
    assert "payload" in refusal("inbox_done", thread="t", token="k", payload="{}").message


def test_what_the_environment_gives_need_not_be_given(monkeypatch: pytest.MonkeyPatch):
    assert TOOLS["inbox_done"].takes["required"] == ["thread", "token"]

    monkeypatch.setenv("INBOX_THREAD", "t")
    monkeypatch.setenv("INBOX_TOKEN", "k")
    assert "required" not in tools_of("inbox")["inbox_done"].takes
    assert tools_of("inbox")["inbox_ask"].takes["required"] == ["body"]
    assert tools_of("inbox")["inbox_reply"].takes["required"] == ["thread", "body"]


def test_every_tool_has_a_command_and_says_what_it_is_for():
    for name, about in TOOLS.items():
        program, _ = PROGRAMS[name.split("_")[0]]
        assert command_of(program, about.tool).callback is not None
        assert len(about.description) > 20
        for argument, schema in about.takes["properties"].items():
            assert schema.get("description"), (name, argument)


def test_the_tools_of_a_program_cost_a_client_little():
    for program, most in (("inbox", 10_000), ("orch", 10_000)):
        every = (*tools_of(program).values(), rest_tool(program))
        told = [(a.name, a.description, a.takes) for a in every]
        assert len(json.dumps(told)) < most


def test_only_a_look_is_called_one():
    reads = {name for name, about in TOOLS.items() if about.tool.reads}
    assert reads == {
        "inbox_list", "inbox_show", "orch_status", "orch_ready", "orch_blocked", "orch_task_show"
    }  # fmt: skip


def free_objects(schema: Any, name: str = "") -> set[str]:
    """The properties that may hold anything."""
    if isinstance(schema, list):
        return {found for each in schema for found in free_objects(each, name)}
    if not isinstance(schema, dict):
        return set()
    found = {name} if schema.get("type") == "object" and "properties" not in schema else set()
    for key, value in schema.items():
        named = value.items() if key in ("properties", "$defs") else [(name, value)]
        found |= {each for n, v in named for each in free_objects(v, n)}
    return found


def test_what_others_wrote_is_never_made_lean():
    assert {name for about in TOOLS.values() for name in free_objects(about.gives)} <= {
        *VERBATIM, "counts", "failures", "meanings"  # which have numbers or words alone
    }  # fmt: skip
    assert lean({"payload": {"a": None, "b": []}, "a": None, "b": [{"c": False, "d": 0}]}) == {
        "payload": {"a": None, "b": []}, "b": [{"d": 0}]
    }  # fmt: skip


def test_an_empty_list_is_a_list_and_every_list_is_promised():
    assert lean({"items": [], "more": None, "cut": False}) == {"items": []}
    for name in ("orch_ready", "orch_blocked", "inbox_list"):
        assert "items" in TOOLS[name].gives["required"]


def test_the_list_of_all_tools_is_short():
    told = [*TOOLS.values(), *map(rest_tool, PROGRAMS)]
    # As the SDK writes it, which tests/process/test_mcp.py holds to the same bound.
    listed = [
        {"name": e.name, "description": e.description, "in": e.takes, "out": outline(e.gives)}
        for e in told
    ]
    assert len(json.dumps(listed, separators=(",", ":"))) < 23_000


def test_the_outline_of_a_schema_has_the_names_of_what_is_always_there():
    schema = {
        "$defs": {"T": {"type": "object", "properties": {"a": {"type": "string"}}}},
        "type": "object",
        "properties": {
            "thread": {"$ref": "#/$defs/T"},
            "items": {"type": "array", "items": {"$ref": "#/$defs/T"}},
            "lease": {"anyOf": [{"$ref": "#/$defs/T"}, {"type": "null"}]},
        },
        "required": ["thread", "items"],
    }
    assert outline(schema) == {"type": "object", "required": ["thread", "items"]}


@pytest.mark.parametrize("program, text, said", [
    ("inbox", "--wait S waits for one", "`wait` waits for one"),
    ("inbox", "Nothing to claim is exit 8; held is Exit 4.",
     "Nothing to claim is exit_code 8; held is exit_code 4."),
    ("inbox", "`claim` does, `wait-reply` waits, `unseal` opens",
     "inbox_claim does, inbox_wait_reply waits, `unseal` opens"),
    ("inbox", "`inbox show THREAD --full` has it", "inbox_show has it"),
    ("inbox", "`inbox prune --older-than 1` helps", "`inbox prune --older-than 1` helps"),
    ("orch", "`orch status --run r-1` lists them", "orch_status lists them"),
    ("orch", "`orch task show` tells, --no-verify too", "orch_task_show tells, --no-verify too"),
    ("orch", "`inbox reply T --body TEXT` --run", "`inbox reply T --body TEXT` `run`"),
    ("inbox", "`inbox list --help` shows how", "the input schema of inbox_list shows how"),
    ("inbox", "`--wait` and `one", "`wait` and `one"),
])  # fmt: skip
def test_commands_are_told_in_the_words_of_tools(program: str, text: str, said: str):
    found = tuple(tools_of(program).values())
    assert wording_of(program, found).of(text) == said


def test_no_tool_describes_itself_by_exits_and_options():
    for program in PROGRAMS:
        found = tuple(tools_of(program).values())
        for each in worded(found, wording_of(program, found)):
            told = [
                each.description,
                *(v["description"] for v in each.takes["properties"].values()),
            ]
            assert [text for text in told if "--" in text or "xit " in text] == [], each.name


def test_a_text_is_handed_over_in_a_file_as_it_is():
    assert words("orch_council_start", brief="# Why?\n") == [
        "council", "start", "--brief-file=file of # Why?\n", "--"
    ]  # fmt: skip
    assert TOOLS["orch_council_start"].takes["properties"]["brief"]["type"] == "string"
    assert "text" in refusal("orch_council_start", brief={"a": 1}).message
