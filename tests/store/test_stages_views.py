"""What people and programs see of attempts that go by a blueprint: where each is and how it came
there, who did what, what waits for somebody."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from inbox_orch.orch.board import view
from inbox_orch.orch.board.close_up import detail_lines, question_lines
from inbox_orch.orch.cli.blocked import question_blocks
from inbox_orch.orch.cli.parts.standings import blocks, row_of
from inbox_orch.orch.cli.parts.visits import visit_blocks
from inbox_orch.orch.cli.report import _for_a_pipe as for_a_pipe
from inbox_orch.orch.cli.report import _for_people as for_people
from inbox_orch.orch.cli.task.list import _who
from inbox_orch.orch.leader import trace as tracing
from inbox_orch.orch.leader.drive import Drive
from inbox_orch.orch.leader.next_facts import facts_of
from inbox_orch.orch.leader.next_rules import next_line
from inbox_orch.orch.leader.notices import notices_of
from inbox_orch.orch.leader.overview import overview
from inbox_orch.orch.leader.wish import Wish, open_wish, plan_of
from inbox_orch.orch.pictures.page import page
from inbox_orch.orch.pictures.timeline import bar_of_visit
from inbox_orch.orch.runs.config import Config
from inbox_orch.orch.runs.model import Run
from inbox_orch.orch.runs.plan import Opening
from inbox_orch.orch.runs.role import Role
from inbox_orch.orch.schemas import COMMANDS
from inbox_orch.orch.stages.decide import Answered
from inbox_orch.orch.views import logs
from inbox_orch.orch.views.detail import detail
from inbox_orch.orch.views.explain import explain
from inbox_orch.orch.views.happened import sentence
from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.shell.blocks import plain
from inbox_orch.shared.store import events
from support.buses import refused
from support.runs import Site, git
from support.screens import Here, play, press, seen
from support.stage_plays import verdict
from support.stages import Course, add, agent, gates, review

LOOKING = (
    agent("write", on_success="look"),
    gates("look", run="! grep -q bad a.txt", on_failure="mend"),
    agent("mend", max_visits=5, on_success="look"),
)
PAUSING = (
    agent("write", on_success="look"),
    gates("look", run="! grep -q bad b.txt", on_failure="pause"),
)
COST = '{"cost_usd": 0.25, "usage": {"input_tokens": 10, "output_tokens": 5}}'


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Site, Run]]:
    """For tests that only look: a task that another worker mended, one that gets no better, one
    that was accepted as it was, and a plain one whose worker asks."""
    site = Site(tmp_path_factory.mktemp("stages"))
    run = site.open_run()
    add(site, run, "good", *LOOKING)
    add(site, run, "stuck", *LOOKING)
    add(site, run, "taken", *PAUSING, named="pausing")
    site.add(run, "plain")
    items = site.dispatch(run)
    _hand_in(Course(site, run, "good"), "w1", "bad\n")
    _hand_in(Course(site, run, "good"), "w2", "good\n")
    for text in ("bad\n", "bad still\n", "bad as ever\n"):
        _hand_in(Course(site, run, "stuck"), "w1", text)
    _hand_in(Course(site, run, "taken"), "w1", "bad\n", "b.txt")
    decided = Answered("accept", "it is good enough")
    site.scheduler.answer(run, "taken", body="", decided=decided)
    site.worker.ask(items["plain"]["thread"], site.claim(items["plain"]), body="which?")
    site.scheduler.reconcile(run)
    yield site, run
    site.close()


def _hand_in(course: Course, name: str, text: str, file: str = "a.txt") -> None:
    bus, token = course.claim(name)
    (course.worktree / file).write_text(text)
    bus.done(course.attempt.thread_id, token, body=f"{name} is done", payload=COST)
    course.lead()


def shape(command: str, data: dict[str, Any]) -> None:
    """What `--json` gives is what the schema says."""
    COMMANDS[command].results[0].model_validate(data)


# -- where each is -------------------------------------------------------------------------


def test_the_status_says_in_which_stage_each_is_and_who_has_worked_on_it(lasting):
    site, run = lasting
    status = site.scheduler.status(run)
    shape("status", status.as_json())
    items = {item["key"]: item for item in status.as_json()["items"]}

    assert (items["good"]["stage"], items["good"]["visits"]) == ("look", 5)
    assert (items["stuck"]["stage"], items["stuck"]["visits"]) == ("decision", 8)
    assert "visits" not in items["plain"] and "stage" not in items["plain"]
    assert [items[key]["worker"] for key in ("good", "stuck", "taken")] == ["w2", "w1", "w1"]
    notes = {row[0]: row[-1] for block in blocks(status) for row in getattr(block, "rows", ())}
    assert str(notes["stuck"]).startswith("decision: stage look does not get better")
    assert "not verified: accepted by leader as it was: pause" in str(notes["taken"])
    assert notes["plain"] == "asks: see `orch blocked`"
    why = {row["key"]: row["why"] for row in status.brief_json()["items"]}
    assert str(why["stuck"]).startswith("a decision: stage look does not get better")
    assert why["plain"] == "its worker asks"


def test_while_a_worker_has_a_stage_that_stands_beside_its_progress(site: Site):
    run = site.open_run()
    add(site, run, "a", *LOOKING)
    site.dispatch(run)
    course = Course(site, run)
    _hand_in(course, "w1", "bad\n")
    bus, token = course.claim("w2")
    bus.update(course.attempt.thread_id, token, progress=40)
    site.scheduler.reconcile(run)

    (row,) = site.scheduler.status(run).rows
    assert row_of(row, 0)[-1] == "mend, 40 %"
    assert row.worker == "w2"
    assert view.note_of(site.scheduler.board(run), row).startswith("mend · ")


def test_the_visits_of_an_attempt_are_lines_and_values(lasting):
    site, run = lasting
    shown = site.scheduler.show_task(run, "good")
    shape("task show", shown.as_json())
    visits = shown.as_json()["attempts"][0]["visits"]

    assert [(v["stage"], v["nth"], v["state"]) for v in visits[1:]] == [
        *[("write", 1, "succeeded"), ("look", 1, "failed"), ("mend", 1, "succeeded")],
        ("look", 2, "succeeded"),
    ]
    assert visits[2]["gates"][0]["failures"] == 1
    (block,) = visit_blocks("good/1", shown.attempts[0], shown.visits[shown.attempts[0].id])
    assert plain(block).splitlines()[3] == "visit\t3. look, failed: look: 1 failure"
    taken = site.scheduler.show_task(run, "taken").as_json()["attempts"][0]["visits"]
    assert taken[-1]["decision"] == {
        "cause": "pause",
        "about": "look",
        "resume": "look",
        "answer": "accept",
        "hint": "it is good enough",
        "mailbox": None,
        "by": "leader",
    }


def test_who_worked_on_it_is_told_of_all_visits_and_not_who_decided(lasting):
    site, run = lasting
    works = {key: site.scheduler.show_task(run, key).works for key in ("good", "taken")}

    (good,), (taken,) = works["good"].values(), works["taken"].values()
    assert (good.workers, good.deliveries, good.last_words) == (("w1", "w2"), 2, "w2 is done")
    assert (taken.workers, taken.last_words) == (("w1",), "w1 is done")


def test_who_is_at_it_now_is_named_and_otherwise_who_wrote_it(site: Site):
    run = site.open_run(config=Config(roles={"reviewer": Role("reviewers")}))
    add(site, run, "a", agent("write", on_success="judge"), review("judge"))
    site.dispatch(run)
    course = Course(site, run)

    def who() -> list[str | None]:
        """As status, the list of tasks, the board, what is near and the report have it."""
        (row,) = site.scheduler.status(run).rows
        work = next(iter(site.scheduler.show_task(run, "a").works.values()))
        told = site.scheduler.report(run, most=9).told[0].work
        shown = [row_of(row, 0)[3], _who(row), view.who_of(site.scheduler.board(run), row)]
        return [*map(str, shown), row.as_json()["worker"], work.words, told and told.words]

    course.work("w1", a_txt="one")
    assert who() == ["w1"] * 6
    bus, token = course.claim("rev")
    assert who() == [*["rev"] * 4, *["rev, after w1"] * 2]
    bus.done(course.attempt.thread_id, token, body=verdict("approve"))
    assert who() == ["w1"] * 6, "before a leader has looked"
    course.lead()
    assert (site.states(run), who()) == ({"a": "succeeded"}, ["w1"] * 6)
    work = next(iter(site.scheduler.show_task(run, "a").works.values()))
    assert (work.workers, work.last_words) == (("w1", "rev"), "done")
    assert work.as_json()["worker"] == "w1"


def test_the_cost_is_that_of_all_visits(lasting):
    site, run = lasting
    report = site.scheduler.report(run, most=9)
    assert detail(site.scheduler.desk, run, "good").cost.usd == 0.5
    assert {told.key: told.cost and told.cost.usd for told in report.told} == {
        "good": 0.5,
        "stuck": 0.75,
        "taken": 0.25,
        "plain": None,
    }
    assert report.cost == (1.5, 60, 30)


def test_logs_have_what_was_said_in_each_visit_and_what_its_gates_put_out(lasting):
    site, run = lasting
    found = logs.sources(site.scheduler.desk, run, Course(site, run, "good").attempt)

    assert [(source.stage, source.what, source.name) for source in found] == [
        ("write", "message", "result"),
        ("look", "check", "look failed: 1 failure"),
        ("mend", "message", "result"),
        ("look (2)", "check", "look passed"),
    ]
    assert len({logs.identity(source) for source in found}) == len(found)
    plain_one = site.attempts(run, "plain")[0]
    said = [logs.read(site.scheduler.desk, run, s) for s in
            logs.sources(site.scheduler.desk, run, plain_one)]  # fmt: skip
    assert "stage" not in said[0].as_json()


def test_a_timeline_has_a_bar_for_each_visit(lasting):
    site, run = lasting
    found = site.scheduler.timeline(run, most=9)
    data = {**found.as_json(), "format": "text", "text": "", "path": None}
    shape("timeline", data)
    visits = found.visits[Course(site, run, "stuck").attempt.id]
    bars = [bar_of_visit(visit, found.end_ms(visit)) for visit in visits]

    assert [bar.label for bar in bars][-3:] == ["  mend (2)", "  look (3)", "  decision"]
    assert [bar.state for bar in bars][-3:] == ["succeeded", "failed", "blocked"]
    assert [item["key"] for item in data["items"] if "visits" not in item] == ["plain"]


def test_a_trace_has_a_span_for_each_visit_and_counts_no_decision_as_a_question(lasting):
    site, run = lasting
    found = tracing.trace(site.scheduler.desk, run, again=True)
    spans = [s for s in found.spans if s.name == "visit" and s.attempt_id
             == Course(site, run, "good").attempt.id]  # fmt: skip

    assert [span.attributes["orch.stage"] for span in spans] == [
        *("surroundings", "write", "look", "mend", "look")
    ]
    assert [span.failed for span in spans] == [False, False, True, False, False]
    assert found.sums["orch.questions", "", ""] == 1
    attempt = next(s for s in found.spans if s.id == spans[0].parent)
    assert (attempt.name, attempt.attributes["orch.cost_usd"]) == ("attempt", 0.5)


def test_a_report_tells_visits_decisions_and_what_was_not_verified(lasting):
    site, run = lasting
    report = site.scheduler.report(run, most=9)
    data = {**report.as_json(), "format": "text", "text": None, "path": None}
    shape("report", data)
    told = {item["key"]: item for item in data["items"]}
    lines = [plain(block) for block in for_people(report)]
    piped = "".join(plain(block) for block in for_a_pipe(report))
    html = page(report)

    assert told["taken"]["unverified"] == "accepted by leader as it was: pause"
    assert told["good"]["unverified"] is None and "unverified" not in told["plain"]
    assert "taken/1: not verified: accepted by leader as it was: pause\n" in lines
    assert "2 decisions" in lines[1]
    asked = [(d["name"], d["visit"]["decision"]["answer"]) for d in data["decisions"]]
    assert asked == [("stuck/1", None), ("taken/1", "accept")]
    assert len(data["questions"]) == 1
    assert "questions\t1\ndecisions\t2\n" in piped
    assert (
        "<strong>1</strong>" in html and '<strong>2</strong><span class="quiet small">dec' in html
    )
    assert any("mend (2)" in line and "look (3)" in line for line in lines)
    assert "not verified taken/1\taccepted by leader as it was: pause\n" in piped
    assert "visit\tgood/1\t3\tlook\t1\tgates\tfailed\t\t0\tlook: 1 failure\n" in piped
    assert "not verified: accepted by leader as it was: pause" in html
    assert "look failed" in html and "hint: it is good enough" in html
    assert "mend (2): succeeded" in html  # in the picture over time
    (stuck,) = [need for need in report.needs if need.standing.task.key == "stuck"]
    assert stuck.why.startswith("a decision: stage look does not get better")
    assert "`orch answer --run" in str(stuck.way_out) and "--decide ANSWER" in str(stuck.way_out)


def test_what_was_not_verified_is_said_in_the_commit_that_brings_it_in(lasting):
    site, run = lasting
    plan = site.scheduler.integrate(run, dry_run=True).plan
    messages = git(site.repository, "log", "--format=%B", f"{plan.start}..{plan.tip}")

    assert messages.count("Not verified: accepted by leader as it was: pause") == 1
    assert "Integrate good: Do good" in messages


# -- what waits for somebody ---------------------------------------------------------------


def test_a_decision_is_shown_with_what_each_answer_does(lasting):
    site, run = lasting
    asked = site.scheduler.questions(run)
    data = {"items": [q.as_json() for q in asked], "truncated": False, "next_cursor": None}
    shape("blocked", {**data, "stale": False})
    stuck = next(q for q in asked if q.task.key == "stuck")
    (block,) = question_blocks([stuck])

    assert block.heading[0].startswith("stuck: a decision, stage look does not get better")
    assert "  continue: go on at mend, with its counters anew" in block.text
    assert "4. mend, succeeded, by w1, $0.25" in block.text
    assert block.text.endswith("`orch answer stuck --decide ANSWER --body HINT` decides")
    assert plain(block).split("\t")[0::3] == [
        "stuck",
        "continue,change_role,accept,split,abandon\n",
    ]
    assert "\n" not in plain(block).rstrip("\n") and len(plain(block)) < 400


def test_a_packet_is_whole_where_the_task_is_shown_and_short_in_lists(site: Site):
    run = site.open_run()
    add(site, run, "a", *LOOKING, body="line\n" * 60 + "x" * 5000)
    site.dispatch(run)
    course = Course(site, run)
    for text in ("bad\n", "bad still\n", "bad as ever\n"):
        _hand_in(course, "w1", text)
    (question,) = site.scheduler.questions(run)
    listed = question.as_json()
    shown = site.scheduler.show_task(run, "a")
    whole = shown.as_json()["question"]
    shape("task show", shown.as_json())

    assert len(json.dumps(listed)) < 4096
    assert listed["message"]["body"].startswith("Task a of run")
    assert (listed["message"]["body_truncated"], listed["message"]["payload"]) == (True, None)
    assert listed["decision"]["meanings"]["abandon"].startswith("end the task")
    assert whole["message"]["body"] == question.message.body
    assert len(whole["message"]["payload"]["visits"]) == 7
    (brief,), (told,) = question_blocks([question]), question_blocks([shown.question], whole=True)
    assert "lines more: `orch task show a`" in brief.text
    assert "x" * 5000 in told.text
    near = ["".join(text for text, _ in line) for line in question_lines(question, 0, 90, most=99)]
    assert any("letters more: `orch task show a`" in line for line in near)


def test_the_overview_and_the_next_line_tell_questions_from_decisions(lasting):
    site, run = lasting
    (waiting,) = overview(site.scheduler.desk, None)
    shape("orch", {"items": [waiting.as_json()], "truncated": False, "next_cursor": None})
    why = {need["key"]: need["why"] for need in waiting.as_json()["needs"]}

    assert why["plain"] == "its worker asks"
    assert why["stuck"].startswith("a decision: stage look does not get better")
    facts = facts_of(site.scheduler.desk, run, run.name, None)
    assert (facts.asking, facts.deciding) == (("plain",), ("stuck",))
    assert next_line(facts).startswith("plain asks: ")
    assert next_line(facts._replace(asking=())) == (
        "stuck needs a decision: `orch blocked` shows why, "
        "`orch answer stuck --decide ANSWER` decides"
    )


def test_a_board_shows_decisions_and_where_each_task_is(lasting):
    site, run = lasting
    board = site.scheduler.board(run)
    rows = {row.standing.task.key: row for row in board.status.rows}
    asked = ["".join(t for t, _ in line) for line in
             view.question_lines(board, view.Place(), 4)]  # fmt: skip
    near = detail(site.scheduler.desk, run, "stuck")
    lines = ["".join(t for t, _ in line) for line in
             detail_lines(board, rows["stuck"], near, 90)]  # fmt: skip

    assert asked[0].startswith("? stuck, a decision: stage look does not get better")
    assert asked[0].endswith("(continue | change_role | accept | split | abandon)")
    assert view.note_of(board, rows["stuck"]).startswith("decision: stage look")
    assert view.note_of(board, rows["taken"]).startswith("not verified: accepted by leader")
    assert any(line.lstrip().startswith("› accept: take the work as it is") for line in lines)
    assert any("6. mend (2), succeeded, by w1" in line for line in lines)
    told = [each.text for each in view.happened(board)]
    assert "`good`: look failed: 1 failure" in told
    assert any(text.startswith("`stuck`: asks for a decision: stage look") for text in told)
    assert not any("has finished `good`" in text for text in told)


# -- why it went where it went --------------------------------------------------------------


def test_explain_tells_route_target_and_how_the_loop_gets_on(lasting):
    site, run = lasting
    found = explain(site.scheduler.desk, "stuck", run.name)
    shape("blueprint explain", found.as_json())

    assert [(e.visit.stage, e.route, e.target) for e in found.items] == [
        ("surroundings", None, "write"),
        ("write", "on_success", "look"),
        ("look", "on_failure", "mend"),
        ("mend", "on_success", "look"),
        ("look", "on_failure", "mend"),
        ("mend", "on_success", "look"),
        ("look", "on_failure", "decision"),
        ("decision", None, None),
    ]
    words = [None if e.verdict is None else e.verdict.word for e in found.items]
    assert words == [None, None, "begun", None, "stalled", None, "stalled", None]
    assert found.next.startswith("somebody decides: stage look does not get better")
    assert (found.used, found.most_visits) == (3, 6)


def test_explain_tells_what_a_decision_led_to_and_how_it_ended(lasting):
    site, run = lasting
    found = explain(site.scheduler.desk, "taken/1", run.name)

    assert [(e.visit.stage, e.route, e.target) for e in found.items][-2:] == [
        ("look", "on_failure", "decision"),
        ("decision", "accept", "done"),
    ]
    assert found.next == "nothing: it is succeeded"
    with refused("invalid_state"):
        explain(site.scheduler.desk, "plain", run.name)


def test_explain_of_what_goes_on_says_what_goes_on(site: Site):
    run = site.open_run()
    add(site, run, "a", *LOOKING)
    site.dispatch(run)

    found = explain(site.scheduler.desk, "a", run.name)
    assert found.next == "write goes on: a worker of `workers` has it, or takes it next"
    assert [e.target for e in found.items] == ["write", None]
    site.scheduler.cancel(run, ["a"])
    assert explain(site.scheduler.desk, "a", run.name).items[-1].visit.state == "cancelled"


def test_explain_of_a_run_of_do_leads_to_the_call_that_has_workers(site: Site):
    plan = plan_of("Fix it", "", ())
    wish = Wish(plan, Opening("Fix it"), str(site.repository), "main")
    run, _ = open_wish(site.scheduler.desk, wish)
    add(site, run, "a", *LOOKING)
    site.dispatch(run, "a")

    found = explain(site.scheduler.desk, "a", run.name)
    assert found.next.endswith("takes it next (the same `orch do` call again starts one)")


# -- what is told of it ----------------------------------------------------------------------


def _lines(site: Site, run: Run, **options: Any) -> tuple[list[str], list[str], list[Any]]:
    """What a drive tells: the kinds of its lines, the sentences, the notices."""
    kinds, said, notices = [], [], []
    for step in site.scheduler.drive(run, Drive(wait_seconds=0, checks=True, **options)):
        notices += notices_of(step)
        for line in step.lines:
            facts = line.facts
            kinds.append(facts.get("kind", line.type))
            if line.type == "change" and facts["kind"].startswith("visit"):
                said.append(str(sentence(facts["kind"], facts["data"])))
    return kinds, said, notices


def test_a_drive_tells_visits_and_not_each_time_that_something_was_handed_in(site: Site):
    run = site.open_run()
    add(site, run, "a", *PAUSING)
    kinds, said, _ = _lines(site, run)
    assert (kinds, said) == (["dispatched", "visit_begun"], ["write began"])
    bus, token = Course(site, run).claim()
    (Course(site, run).worktree / "b.txt").write_text("bad\n")
    bus.done(Course(site, run).attempt.thread_id, token, body="done")

    site.scheduler.reconcile(run)
    kinds, said, notices = _lines(site, run)
    assert "attempt_submitted" not in kinds
    assert said[1:3] == ["write is done, by w1", "look failed: 1 failure"]
    decision = next(n for n in notices if n.type == "decision")
    assert decision.text == "a needs a decision: stage look did not succeed: look: 1 failure"
    assert decision.as_json()["next"].endswith(" a --decide ANSWER --body HINT")
    assert decision.facts["options"] == ["continue", "change_role", "accept", "split", "abandon"]


def _latest(site: Site) -> int:
    with site.scheduler.database.snapshot() as snapshot:
        return events.latest(snapshot)


def test_with_only_a_decision_left_the_way_out_is_to_decide(site: Site):
    run = site.open_run()
    add(site, run, "a", agent("write"))
    site.dispatch(run)
    Course(site, run).fail("no idea")

    ending = list(site.scheduler.drive(run, Drive(wait_seconds=0)))[-1].ending
    assert ending is not None and isinstance(ending.failure, InboxOrchError)
    assert ending.failure.message.endswith("nothing runs, and decisions are open: a")
    assert ending.failure.hint == (
        "`orch blocked` shows the decisions, `orch answer TASK --decide ANSWER` decides"
    )
    assert ending.failure.details == {"tasks": ["a"], "deciding": ["a"]}


def test_a_wait_for_a_change_tells_what_a_visit_came_to(site: Site):
    run = site.open_run()
    add(site, run, "a", *PAUSING)
    site.dispatch(run)
    start = str(_latest(site))
    _hand_in(Course(site, run), "w1", "bad\n", "b.txt")

    waited = site.scheduler.wait(run, after=start, wait_seconds=0)
    assert [event.kind for event in waited.changes] == [
        *("visit_ended", "visit_ended", "attempt_blocked")
    ]
    assert [q.task.key for q in waited.questions] == ["a"]


def test_the_keys_of_a_board_decide(site: Site):
    run = site.open_run()
    add(site, run, "a", agent("write"))
    site.dispatch(run)
    Course(site, run).fail("no idea")

    async def playing(app, pilot):
        await press(pilot, "a")
        assert any("continue: go on at write" in line for line in seen(app))
        await press(pilot, "tab", "space", "h", "i", "n", "t", "tab", "enter")
        assert "change_role needs the mailbox" in " ".join(seen(app)[-3:])
        await press(pilot, "a", "tab", "tab", "tab", "enter")
        assert "decided a: continue" in seen(app)[-2]

    play(Here(site.scheduler), run, playing)
    site.scheduler.reconcile(run)

    assert Course(site, run).way()[1:] == [("decision", "continue"), ("write", "live")]
    assert Course(site, run).visits()[2].found["hint"] == "hint"
