"""A thread may carry a schema: what `done` refuses, what it says, and that nothing is changed."""

import json
from pathlib import Path

import pytest

from support.commands import HeldThread, Project
from support.orch_matrix import Enterprise

SCHEMA = {
    "type": "object",
    "required": ["verdict"],
    "properties": {"verdict": {"enum": ["approve", "reject"]}, "lines": {"type": "integer"}},
}
SEND = ("send", "--agent", "leader", "--to", "w1", "--subject", "s", "--body", "b")
GOOD, BAD = {"verdict": "approve"}, {"verdict": "maybe", "lines": "x"}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


def held(project: Project, schema: object = SCHEMA) -> HeldThread:
    with project.bus("leader") as bus:
        thread = bus.send(to="w1", subject="s", body="b", schema=json.dumps(schema)).thread.id
    return project.claim(thread)


def test_a_schema_is_taken_from_a_file_or_as_it_is_and_shown_where_there_is_one(project: Project):
    (project.folder / "s.json").write_text(json.dumps(SCHEMA, indent=4))
    lines = [
        project.json(*SEND, "--schema", given, stdin=json.dumps(SCHEMA).encode())
        for given in ("s.json", "@s.json", "-", json.dumps(SCHEMA))
    ]
    ids = [line.data["thread"]["id"] for line in lines]

    claimed = project.json("claim", ids[0], "--agent", "w1").data
    assert claimed["result_schema"] == SCHEMA
    text = project.run("claim", ids[1], "--agent", "w1").text
    compact = json.dumps(SCHEMA, separators=(",", ":"))
    assert f"result schema\t{compact}\n" in text
    for thread in ids:
        assert project.json("show", thread).data["result_schema"] == SCHEMA
    assert f"result schema\t{compact}\n" in project.run("show", ids[3]).text
    exported = project.run("export").text.splitlines()
    threads = [t for t in map(json.loads, exported) if t["type"] == "thread"]
    assert [t.get("result_schema") for t in threads] == [SCHEMA] * 4


def test_nothing_is_said_of_a_schema_where_there_is_none(project: Project):
    thread = project.send()

    shown = project.run("show", thread).text + project.run("export").text
    claimed = project.run("claim", "--agent", "w1", "--mailbox", "workers").text
    assert "schema" not in (shown + claimed).replace("schema_version", "")


def test_what_the_schema_refuses_is_named_and_nothing_is_changed(project: Project):
    thread = held(project)
    before = project.contents()

    refused = project.json("done", *thread.arguments, "--body", json.dumps(BAD))
    told = project.run("done", *thread.arguments, "--body", json.dumps(BAD))

    assert refused.code == told.code == 2
    assert refused.error["code"] == "result_refused"
    assert refused.error["details"] == {
        "thread": thread.thread,
        "problems": [
            {"path": "$.verdict", "expected": 'enum ["approve", "reject"]', "found": '"maybe"'},
            {"path": "$.lines", "expected": "type integer", "found": '"x"'},
        ],
        "more": 0,
    }
    assert told.stdout == b""
    assert told.stderr.decode() == (
        f"inbox: the schema of thread {thread.thread} does not accept the result: "
        '$.verdict: expected enum ["approve", "reject"], found "maybe"; '
        '$.lines: expected type integer, found "x"\n'
        "hint: nothing was changed, and the thread is still yours: put the result right "
        f"and call `done` again; `inbox show {thread.thread}` has the schema\n"
    )
    assert project.contents() == before


def test_the_payload_is_the_result_and_without_one_the_body(project: Project, tmp_path: Path):
    (tmp_path / "good").write_text(json.dumps(GOOD))
    (tmp_path / "bad").write_text(json.dumps(BAD))
    payload = ("--payload-file", str(tmp_path / "good"))
    first, second = held(project), held(project)

    text = project.json("done", *first.arguments, "--body", "It is good.")
    nothing = project.json("done", *first.arguments)
    wrong = ("--payload-file", str(tmp_path / "bad"), "--body", json.dumps(GOOD))
    assert text.error["details"]["problems"][0]["found"] == '"It is good."'
    assert nothing.error["details"]["problems"][0]["expected"] == "a result"
    assert project.json("done", *first.arguments, *wrong).error["code"] == "result_refused"

    done = ("done", *first.arguments, *payload, "--body", "It is good.")
    assert project.json(*done).data["thread"]["state"] == "done"
    assert project.json(*done).data["already"] is True
    taken_in = project.run("done", *second.arguments, "--body", json.dumps(GOOD)).text
    assert taken_in.startswith(f"{second.thread}\tdone\t")


def test_a_stale_token_is_told_so_whatever_the_result(project: Project):
    thread = held(project)
    with project.bus("w1") as bus:
        bus.release(thread.thread, thread.token)

    ended = project.json("done", *thread.arguments, "--body", json.dumps(BAD))
    other = project.json("done", thread.thread, "--token", "no", "--body", json.dumps(BAD))

    assert (ended.error["code"], other.error["code"]) == ("invalid_state", "lease_lost")


@pytest.mark.parametrize(
    "given, said",
    [
        ("{", "not JSON"),
        ('{"type": "object", "type": "array"}', "twice"),
        ('{"type": "strin"}', "$.type: expected enum"),
        ('{"$ref": "https://example.com/s.json"}', "nothing is fetched"),
        ('{"$ref": "#"}', "circle"),
        ('{"pattern": "("}', "no regular expression"),
        ('{"not":' * 60 + "{}" + "}" * 60, "too deeply"),
        ('{"title": "%s"}' % ("x" * 65536), "more than 65536 bytes"),
        ("missing.json", "cannot read"),
        ("list.json", "must be a JSON object"),
        ("latin.json", "not UTF-8"),
    ],
)  # fmt: skip
def test_a_schema_that_cannot_be_judged_by_is_refused_when_it_is_sent(project, given, said):
    (project.folder / "list.json").write_text("[]")
    (project.folder / "latin.json").write_bytes(b'{"title": "\xe4"}')
    before = project.contents()

    refused = project.json(*SEND, "--schema", given)

    assert (refused.code, refused.error["code"]) == (2, "usage")
    assert said in refused.error["message"], refused.error
    assert project.contents() == before


def test_an_expression_without_end_is_given_up_and_the_lease_stays(project: Project, monkeypatch):
    thread = held(project, {"pattern": "^(a+)+$"})

    with project.bus("w1") as bus, monkeypatch.context() as patched:
        patched.setattr("inbox_orch.inbox.services.accepting.CPU_SECONDS", 1)
        with pytest.raises(Exception, match="more than 1 s to judge") as raised:
            bus.done(thread.thread, thread.token, body=json.dumps("a" * 40 + "!"))
        assert raised.value.code == "result_refused"
        assert bus.done(thread.thread, thread.token, body='"aa"').thread.state == "done"


def test_nothing_is_judged_inside_a_transaction_of_the_callers(project: Project):
    thread = held(project)

    with project.bus("w1") as bus:
        for call in (
            lambda: bus.done(thread.thread, thread.token, body=json.dumps(GOOD)),
            lambda: bus.send(to="w1", subject="s", schema="{}"),
        ):
            with pytest.raises(Exception, match="inside a transaction"), bus.transaction():
                call()
        assert bus.done(thread.thread, thread.token, body=json.dumps(GOOD)).thread.state == "done"


def test_the_same_key_with_another_schema_is_another_request(project: Project):
    key = (*SEND, "--key", "k", "--schema")

    first = project.json(*key, '{"type": "object"}').data["thread"]["id"]
    again = project.json(*key, '{"type":   "object"}').data["thread"]["id"]
    other = project.json(*key, '{"type": "array"}')

    assert again == first
    assert other.error["code"] == "key_conflict"


def test_a_pruned_thread_has_no_schema_left(project: Project):
    thread = held(project)
    with project.bus("w1") as bus:
        bus.done(thread.thread, thread.token, body=json.dumps(GOOD))
        bus.prune(0, unread=True)
        assert bus.show(thread.thread).result_schema is None


PLAN = """\
run: {title: Reviews, no_repo: true}
tasks:
  - {task: plain, title: Plain, worktree: false}
  - task: review
    title: Review
    worktree: false
    schema:
      type: object
      required: [verdict]
"""


def test_a_task_hands_its_schema_on_to_its_thread(tmp_path: Path):
    site = Enterprise(tmp_path / "project")
    schema = {"type": "object", "required": ["verdict"]}

    assert site.orch("plan", "import", "-", "--new-run", stdin=PLAN.encode()).code == 0
    line = ("task", "add", "--task", "more", "--title", "More", "--no-worktree", "--schema")
    assert site.orch(*line, json.dumps(schema), "--json").data["task"]["result_schema"] == schema
    refused = site.orch(*line, '{"$ref": "#"}', "--json")
    assert (refused.code, "circle" in refused.error["message"]) == (2, True)
    items = site.orch("dispatch", "--json").data["items"]
    shown = [site.json("show", item["thread"]).data.get("result_schema") for item in items]
    assert shown == [None, schema, schema]
    assert "result_schema" not in json.dumps(site.orch("status", "--json").data)
    assert "result schema\t{" in site.orch("task", "show", "review").text

    exported = site.orch("plan", "export", "--json").data["plan"]["tasks"]
    assert [json.loads(task.get("schema", "null")) for task in exported] == [None, schema, schema]
    written = site.orch("plan", "export").text.encode()
    again = site.orch("plan", "import", "-", "--new-run", "--json", stdin=written)
    assert again.data["task_count"] == 3


def test_a_plan_with_a_schema_that_cannot_be_judged_by_is_refused_by_its_line(tmp_path: Path):
    site = Enterprise(tmp_path / "project")
    plan = PLAN.replace("type: object", "type: objekt")

    refused = site.orch("plan", "import", "-", "--new-run", "--json", stdin=plan.encode())

    assert (refused.code, refused.error["code"]) == (2, "usage")
    (problem,) = refused.error["details"]["problems"]
    assert problem["line"] in (7, 8) and "is not a JSON Schema: $.type" in problem["message"]
