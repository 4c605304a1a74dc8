"""What an agent has to see in its first minutes: where, until when, the whole task, a receipt."""

import hashlib
import json

import pytest

from inbox_orch.shared.clock import rfc3339
from support.commands import Project

BODY = "Fix the lexer.\n\n\tTabs\\are lost: {thread} ä\n"
AS_WORKER = ("--agent", "w1", "--mailbox", "workers")
PAYLOAD = {
    "worktree": "/tmp",
    "base_commit": "c0ffee",
    "timeout_seconds": 90,
    "deadline": "2030-01-01T00:00:00.000Z",
    "other": [1],
}


@pytest.fixture
def project(tmp_path) -> Project:
    return Project(tmp_path / "project")


def sent(project: Project, payload: object) -> str:
    with project.bus("leader") as bus:
        text = json.dumps(payload)
        return bus.send(to="workers", subject="s", body=BODY, payload=text).thread.id


def rows(text: str) -> dict[str, str]:
    return dict(line.split("\t", 1) for line in text.splitlines() if "\t" in line)


def test_a_claim_says_where_and_until_when_as_far_as_the_payload_does(project: Project):
    sent(project, PAYLOAD)
    with_terms = rows(project.run("claim", *AS_WORKER).text)
    sent(project, {"worktree": 5, "timeout_seconds": "long"})
    without = rows(project.run("claim", *AS_WORKER).text)

    labels = ("worktree", "base", "time limit", "deadline")
    said = ["/tmp", "c0ffee", "90 s", PAYLOAD["deadline"]]
    assert [with_terms[label] for label in labels] == said
    assert not set(labels) & set(without)


@pytest.mark.parametrize("limit", ["9" * 4000, "1e308", "true", "-5", "[" * 98 + "]" * 98])
def test_no_payload_hides_the_token_of_a_lease(project: Project, limit: str):
    with project.bus("leader") as bus:
        bus.send(to="workers", subject="s", body=BODY, payload=f'{{"timeout_seconds": {limit}}}')

    claimed = project.run("claim", *AS_WORKER)

    assert claimed.code == 0, claimed
    found = rows(claimed.text)
    assert found["token"] and "time limit" not in found


def test_a_body_can_be_had_alone_and_as_it_is(project: Project, tmp_path):
    thread, target = sent(project, {}), tmp_path / "task {x}.md"
    claim = ("claim", thread, *AS_WORKER, "--body-to")
    refused = [project.run(*claim, bad) for bad in ("-", str(tmp_path), str(tmp_path / "no" / "f"))]
    assert [done.code for done in refused] == [2, 2, 2]

    claimed = project.run(*claim, str(target))

    assert target.read_text() == BODY
    facts = rows(claimed.text)
    assert (facts["body"], facts["body bytes"]) == (str(target), str(len(BODY.encode())))
    assert project.run("show", thread, "--raw").stdout == BODY.encode()
    token = facts["token"]
    asked = project.json("ask", thread, "--token", token, "--body", "Which?").data["message"]["id"]
    assert project.run("show", thread, "--raw", "--message", asked).stdout == b"Which?"
    written = project.json("show", thread, "--body-to", str(target), "--message", asked).data
    assert (written["path"], target.read_text()) == (str(target), "Which?")
    for wrong in (("--raw", "--json"), ("--message", asked), ("--raw", "--body-to", "f")):
        assert project.run("show", thread, *wrong).code == 2
    assert project.run("show", thread, "--raw", "--message", "0").code == 3


def test_a_body_that_cannot_be_written_hides_no_token(project: Project, tmp_path):
    thread, target = sent(project, {}), tmp_path / "dangling"
    target.symlink_to(tmp_path / "no" / "such")

    claimed = project.json("claim", thread, *AS_WORKER, "--body-to", str(target))

    assert claimed.code == 2
    assert claimed.value["data"]["lease"]["token"]
    assert claimed.value["data"]["messages"][0]["body"] == BODY


def test_renew_update_and_done_say_what_holds_from_now(project: Project, tmp_path):
    held = project.claim(sent(project, {}))
    report, payload = tmp_path / "{a}.txt", tmp_path / "p.json"
    report.write_text("x")
    payload.write_text('{"ok":true}')

    renewed = project.run("renew", *held.arguments, "--lease", "600").text.rstrip("\n").split("\t")
    updated = project.run("update", *held.arguments, "--progress", "5").text.rstrip("\n")
    with project.bus("w1") as bus:
        until = rfc3339(bus.show(held.thread).thread.lease.expires_at)
    attach = ("--attach", str(report), "--payload-file", str(payload))
    done = project.run("done", *held.arguments, "--body", "ok", *attach).text.rstrip("\n")

    assert len(renewed) == 4
    assert updated.split("\t")[3] == until
    digest = hashlib.sha256(b"ok").hexdigest()
    assert done.split("\t")[3:] == ["2", digest[:12], "11", "{a}.txt"]
