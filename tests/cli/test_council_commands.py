"""What the commands about councils say and how they end: exit codes, first lines, files."""

import json
from pathlib import Path

import pytest

from inbox_orch.orch.council import views
from inbox_orch.orch.stages.model import Blueprint, Stage
from support.chambers import BRIEF, WAL
from support.commands import Outcome
from support.orch_matrix import Enterprise, orch_cells_council
from support.runs import add_task

REVIEWERS = ("ada", "bob", "eve")


@pytest.fixture
def project(tmp_path: Path) -> Enterprise:
    return Enterprise(tmp_path / "project")


def ended(
    project: Enterprise, valid: int, *, closed: bool = True, agent: str | None = None
) -> None:
    """A council of three with so many valid replies; the others have declined, or not come. With
    `agent` that one answers for all."""
    council = orch_cells_council.opened(project)
    with project.scheduler() as scheduler:
        sha256 = views.view(scheduler.desk, scheduler.council(None)).council.brief_sha256
    reply = {
        "schema": "orch.council.reply/1",
        "council_id": council,
        "round": 1,
        "brief_sha256": sha256,
        "checked": ["S1"],
        "recommendations": [WAL],
        "verdict": "approve",
    }
    for number, reviewer in enumerate(REVIEWERS):
        with project.bus(agent or reviewer) as bus:
            if number < valid:
                claimed = bus.claim(mailboxes=(reviewer,))
                token = str(claimed.lease.token)
                bus.done(claimed.thread.id, token, payload=json.dumps(reply))
            elif closed:
                claimed = bus.claim()
                bus.fail(claimed.thread.id, str(claimed.lease.token), body="declined")


@pytest.mark.parametrize("command", ["tally", "report", "report --format madr"])
def test_three_seats_of_one_agent_are_told_in_every_text(project, command):
    ended(project, 3, agent="bob")

    told = project.orch("council", *command.split()).text.replace("\\", "")

    assert "ada, bob and eve were answered by one agent (bob): not independent." in told


@pytest.mark.parametrize("command", ["wait --wait 0", "tally", "report"])
@pytest.mark.parametrize(
    "valid, closed, code, error",
    [
        (3, True, 0, None),
        (2, True, 11, "degraded"),
        (1, True, 11, "no_quorum"),
        (0, True, 11, "no_quorum"),
        (2, False, 8, "timeout"),
    ],
    ids=["complete", "degraded", "no quorum", "nobody", "open"],
)
def test_only_a_complete_council_ends_with_0(project, command, valid, closed, code, error):
    ended(project, valid, closed=closed)

    outcome = project.orch("council", *command.split(), "--json")

    assert outcome.code == code
    value = outcome.value
    assert (value["error"]["code"] if error else None) == error
    told = value["data"].get("tally") or value["data"]["council"]
    assert told["status"] == ("open" if not closed else "complete" if error is None else error)
    if error:
        assert f"{valid} of 3 valid" in value["error"]["message"] or not closed


@pytest.mark.parametrize("valid, word", [(3, "complete"), (2, "DEGRADED"), (1, "NO QUORUM")])
def test_the_first_line_says_how_many_seats_are_valid(project, valid, word):
    ended(project, valid)

    outcome = project.orch("council", "report")

    first = outcome.stdout.decode().splitlines()[0]
    assert f"{word}: {valid} of 3 valid" in first
    assert ("declined" in first) == (valid < 3)


def start(project: Enterprise, *options: str, **given: bytes) -> Outcome:
    return project.orch("council", "start", "--json", *options, **given)


def test_a_brief_may_come_from_standard_input(project):
    started = start(project, "--brief-file", "-", stdin=BRIEF.encode())

    assert started.data["council"]["title"] == "Where the job queue keeps its state"
    assert [seat["lens"] for seat in started.data["seats"]] == [
        "architecture-reviewer",
        "implementation-reviewer",
        "risk-reviewer",
    ]


def test_a_lens_of_ones_own_takes_the_place_of_the_ready_one(project):
    (project.folder / "lens.md").write_text("Look at the zebra crossings.\n")
    started = start(
        project,
        *("--brief-file", "-", "--lens", "risk-reviewer=lens.md", "--title", "Own title"),
        stdin=BRIEF.encode(),
    )

    assert started.data["council"]["title"] == "Own title"
    with project.bus("risk-reviewer") as bus:
        assert "zebra crossings" in str(bus.claim().messages[0].body)


@pytest.mark.parametrize(
    "options",
    [
        ("--brief-file", "missing.md"),
        ("--brief-file", "-", "--lens", "ada"),
        ("--brief-file", "-", "--lens", "ada=missing.md"),
        ("--brief-file", "-", "--reviewers", ""),
        ("--brief-file", "-", "--reviewers", "ada,,bob"),
        ("--brief-file", "-", "--quorum", "0"),
        ("--brief-file", "-", "--quorum", "8"),
        ("--brief-file", "-", "--deadline", "0"),
        ("--brief-file", "-", "--seat-timeout", "inf"),
        ("--brief-file", "-", "--at", "no-such-commit"),
    ],
    ids=" ".join,
)
def test_a_wrong_call_changes_nothing(project, options):
    before = project.contents()

    refused = start(project, *options, stdin=BRIEF.encode())

    assert refused.error["code"] == "usage"
    assert project.contents() == before


def test_a_brief_that_is_no_text_is_refused_with_the_place(project):
    refused = start(project, "--brief-file", "-", stdin=b"# T\n\xff")

    assert refused.error["code"] == "usage" and "byte 4" in refused.error["message"]


@pytest.mark.parametrize(
    "content, said",
    [
        ("{", "not JSON"),
        pytest.param(f"[{'9' * 5000}]", "not JSON: a number has too many digits", id="digits"),
        pytest.param("[" * 130_000, "not JSON: it is nested too deeply", id="deep"),
        ("[]", "no list `items`"),
        ('{"items": {}}', "no list `items`"),
        ('{"items": []}', "no pair"),
        ('{"items": [1]}', "/items/0"),
        ('{"items": [{"decision": "merge", "items": ["ada/wal"]}]}', "/items/0/items"),
        ('{"items": [{"decision": 1, "items": ["ada/wal", "bob/wal"]}]}', "/items/0/decision"),
        (
            '{"items": [{"decision": "merge", "items": ["ada/wal", "eve/journal"], "reason": 1}]}',
            "/items/0/reason",
        ),
        ('{"items": [], "items": [{"decision": "keep"}]}', "the key 'items' stands twice"),
        (
            '{"council": {"id": "OTHER"}, "items": [{"decision": "keep", "items": ["a", "b"]}]}',
            "council OTHER",
        ),
    ],
)
def test_a_file_that_cannot_be_applied_says_where(project, content, said):
    council = orch_cells_council.counted(project)
    before = project.contents()

    refused = project.orch(
        "council", "apply", "-", "--council", council, "--json", stdin=content.encode()
    )

    assert refused.error["code"] == "usage" and said in refused.error["message"]
    assert project.contents() == before


@pytest.mark.parametrize("name", ["G" + "1" * 5000, "G\u00b2", "G0", "g99"], ids=lambda n: n[:3])
def test_a_number_that_no_group_has_is_not_found(project, name):
    orch_cells_council.counted(project)

    assert (
        project.orch("council", "tally", "--explain", name, "--json").error["code"] == "not_found"
    )


def test_people_read_words_and_a_pipe_has_the_terms_that_are_counted(project):
    orch_cells_council.counted(project)
    (first, *_) = project.orch("council", "suggest", "--json").data["items"]

    piped = project.orch("council", "suggest").text.splitlines()[0].split("\t")
    shown = project.orch("council", "suggest", FORCE_COLOR="1", NO_COLOR="1", COLUMNS="200").text

    assert piped[-1] == ",".join(first["shared"]) == "sqlite,file,lost,noth,two,write"
    # Older releases of rich fill the last column with blanks.
    ends = [line.rstrip().rsplit("  ", 1)[-1] for line in shown.splitlines()]
    assert "sqlite, file, lost, nothing, two, write" in ends


def test_what_suggest_prints_is_what_apply_takes(project):
    orch_cells_council.counted(project)
    printed = json.loads(project.orch("council", "suggest", "--json").stdout)
    for pair in printed["data"]["items"]:
        pair["decision"] = "keep"

    applied = project.orch("council", "apply", "-", "--json", stdin=json.dumps(printed).encode())

    assert len(applied.data["overrides"]) == len(printed["data"]["items"]) > 0
    assert project.orch("council", "suggest", "--json").data["items"] == []
    again = project.orch("council", "apply", "-", "--json", stdin=json.dumps(printed).encode())
    assert again.data["already"] is True


def test_a_report_goes_to_standard_output_as_it_is_with_its_exit_code(project):
    ended(project, 2)

    outcome = project.orch("council", "report", "--output", "-", "--json")

    assert outcome.code == 11
    assert outcome.stdout.startswith(b"# Where the job queue") and b"2 of 3 valid" in outcome.stderr
    written = project.orch("council", "report", "--output", "r.md", "--json")
    assert (project.folder / "r.md").read_bytes() == outcome.stdout
    assert written.value["data"]["artifact"]["already"] is True


def test_a_report_is_never_written_over_the_database(project):
    ended(project, 3)

    refused = project.orch("council", "report", "--output", str(project.path), "--json")

    assert refused.error["code"] == "usage"
    assert project.orch("doctor", "--verify", "--json").code == 0


def test_the_template_has_all_that_a_reviewer_is_built_from(project):
    made = project.orch("council", "template", "--json").data

    assert set(made["lenses"]) == {
        "architecture-reviewer",
        "implementation-reviewer",
        "risk-reviewer",
    }
    assert "recommendations" in made["reply_schema"]["properties"]
    shown = project.orch("council", "template").text
    assert "JSON Schema of a reply" in shown and "COUNCIL_ID" in shown


def test_a_council_advises_on_a_decision_which_stays_open(project):
    name = project.open_run()
    drawn = Blueprint("tried", (Stage("write", "agent", goal="Write."),))
    with project.scheduler() as scheduler:
        run = scheduler.run(name)
        planned = {"blueprint": drawn.id, "drawn": drawn.canonical()}
        add_task(scheduler, run, key_name="a", title="Do a", **planned)
        item = scheduler.dispatch(run).items[0]
        with project.bus("w1") as bus:
            claimed = bus.claim(item["thread"], mailboxes=[item["mailbox"]])
            bus.fail(claimed.thread.id, str(claimed.lease.token), body="no idea")
        scheduler.reconcile(run)

    opened = project.orch("council", "start", "--from", "a", "--reviewers", "ada,bob", "--json")
    assert opened.code == 0, opened
    (decision,) = opened.data["council"]["decisions"]
    assert [*decision["choices"]] == ["continue", "change_role", "accept", "split", "abandon"]
    with project.bus("ada") as bus:
        told = bus.claim(mailboxes=["ada"]).messages[0].body or ""
    assert "stage write did not succeed: no idea" in told
    with project.scheduler() as scheduler:
        assert scheduler.questions(scheduler.run(name))
    again = project.orch("council", "start", "--from", "a", "--brief-file", "x")
    assert again.code == 2
    assert project.orch("council", "start").code == 2


def test_without_a_decision_there_is_nothing_to_advise_on(project):
    project.tasks("a")
    ended = project.orch("council", "start", "--from", "a", "--json")

    assert (ended.code, ended.error["code"]) == (4, "invalid_state")
