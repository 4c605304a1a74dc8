"""`inbox work`: what a command is given, on its first run and later, and questions."""

import re

import pytest

from support.commands import Project
from support.timing import undisturbed
from support.workers import Worker, await_event, content, kinds, show, work_once


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path / "project")


ASK_ONCE = """
if grep -q '## Since then'; then
  cp "$INBOX_TASK_FILE" given; cat given; exit 0
fi
"$INBOX" ask --body 'Which?' --option a --option b {more} >/dev/null
"""


def reply_when_asked(project, thread, text="take a"):
    with project.bus("leader") as bus:
        await_event(bus, "question_asked", thread)
        assert bus.reply(thread, body=text).answered


def test_the_task_is_byte_exact_on_stdin_and_in_the_file(project):
    body = "line\r\n\ttab \x1b[2J ünï €"
    thread = project.send(body=body)
    work_once(project, 'cat; cp "$INBOX_TASK_FILE" file')
    assert content(project, thread, "stdout") == body.encode()
    assert (project.folder / "file").read_bytes() == body.encode()


def test_a_task_without_a_body_is_its_subject(project):
    thread = project.send(subject="Fix the parser", body=None)
    work_once(project, "cat")
    assert content(project, thread, "stdout") == b"Fix the parser\n"


def test_the_environment_says_everything_that_a_call_needs(project):
    (project.folder / "tree").mkdir()
    payload = f'{{"worktree": "{project.folder}/tree"}}'
    thread = project.send(payload=payload)
    script = 'pwd; echo "$INBOX_WORKTREE $PWD $INBOX_AGENT $INBOX_THREAD $INBOX_DB $EDITOR"; umask'
    code, _ = work_once(
        project,
        script,
        launcher=("sh", "-c", 'umask 027; exec "$@"', "sh"),
        environment={"EDITOR": "left/alone"},
    )
    tree = project.folder / "tree"
    said = f"{tree} {tree} w1 {thread} {project.path} left/alone"
    assert code == 0
    assert content(project, thread, "stdout").decode().splitlines() == [str(tree), said, "0027"]


def test_a_relative_command_is_found_from_where_the_worker_was_started(project):
    (project.folder / "tree").mkdir()
    (project.folder / "script.sh").write_text('echo "from $(pwd) with $1"\n')  # no #! line
    (project.folder / "script.sh").chmod(0o755)
    thread = project.send(payload='{"worktree": "tree"}')
    with Worker(project, "--once", command=("./script.sh", "an argument")) as worker:
        assert worker.end() == 0
    said = content(project, thread, "stdout").decode()
    assert said == f"from {project.folder}/tree with an argument\n"


def test_a_redelivered_task_carries_what_was_said_since(project):
    thread = project.send(body="the task")
    work_once(project, '"$INBOX" update --body halfway --progress 50; exit 75')
    with project.bus("leader") as bus:
        bus.reply(thread, body="use the other file")
        work = Worker(project, "--once", command=("cat",))
        with work as worker:
            assert worker.hear("claimed")["delivery"] == 2
            assert worker.end() == 0
    given = content(project, thread, "stdout").decode()
    task, _, since = given.partition("## Since then\n")
    assert task == "the task\n\n---\n\n"
    # Times and ids are any digits, so only whole lines can be looked for.
    said = [re.sub(r", 2\d{3}-.*Z$", "", line) for line in since.splitlines()]
    expected = [
        "### progress from w1",
        "Progress: 50 %",
        "halfway",
        "### failure from w1",
        "The command ended with exit status 75.",
        "### reply from leader",
        "use the other file",
    ]
    assert [line for line in said if line in expected] == expected
    assert re.search(r"75\.$.*^Attached: stdout .*^### reply", since, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("ending", ["exit 0", "exit 3", "exit 75", "kill -9 $$"])
def test_a_command_that_asked_and_ended_runs_again_with_the_answer(project, ending):
    thread = project.send(max_deliveries=1)
    script = ASK_ONCE.format(more="") + ending
    with Worker(project, "--once", command=("sh", "-c", script)) as worker:
        waiting = worker.hear("waiting")
        reply_when_asked(project, thread)
        finished = worker.hear("finished")
        assert worker.end() == 0
    shown = show(project, thread)
    assert waiting["question"] == str(shown.messages[1].id)
    assert (finished["outcome"], finished["runs"]) == ("done", 2)
    assert (shown.thread.epoch, shown.thread.deliveries) == (1, 1)
    given = (project.folder / "given").read_text()
    assert "Which?" in given
    assert "Options: a | b" in given
    assert "### reply from leader" in given
    assert given.rstrip().endswith("take a")


def test_an_answer_that_came_before_the_command_ended_is_not_lost(project):
    thread = project.send()
    wait = "while ! \"$INBOX\" show $INBOX_THREAD | grep -q 'take a'; do :; done"
    with Worker(project, "--once", command=("sh", "-c", ASK_ONCE.format(more="") + wait)) as worker:
        reply_when_asked(project, thread)
        assert worker.hear("finished")["runs"] == 2
    assert "take a" in (project.folder / "given").read_text()


def test_an_answer_that_the_command_has_read_runs_nothing_again(project):
    thread = project.send()
    script = """"$INBOX" ask --body 'Which?' >/dev/null; "$INBOX" wait-reply --json; exit 0"""
    with Worker(project, "--once", command=("sh", "-c", script)) as worker:
        reply_when_asked(project, thread)
        finished = worker.hear("finished")
    assert (finished["outcome"], finished["runs"]) == ("done", 1)


def test_a_question_that_nobody_answers_in_time_runs_the_command_again(project):
    thread = project.send()
    _, finished = work_once(project, ASK_ONCE.format(more="--deadline 0.3"))
    assert (finished["outcome"], finished["runs"]) == ("done", 2)
    assert "unanswered" in (project.folder / "given").read_text()
    assert show(project, thread).thread.state == "done"


def test_the_lease_is_kept_while_the_answer_is_waited_for(project):
    options = ("--once", "--lease", "1")
    command = ("sh", "-c", ASK_ONCE.format(more="--deadline 2.5"))

    def trial():
        thread = project.send()
        with Worker(project, *options, command=command) as worker:
            outcome = worker.hear("finished")["outcome"]
        happened = kinds(project, thread)
        if "lease_expired" in happened:  # the machine was so busy that it was too late to renew
            assert outcome == "lease_lost"
            return False
        assert outcome == "done"
        assert happened.count("lease_renewed") >= 2
        return True

    undisturbed(trial)


def test_each_run_leaves_its_own_output_and_result(project):
    thread = project.send()
    script = 'if [ -e "$INBOX_RESULT" ]; then echo stale; exit 1; fi; echo one > "$INBOX_RESULT"\n'
    with Worker(
        project, "--once", command=("sh", "-c", script + ASK_ONCE.format(more=""))
    ) as worker:
        reply_when_asked(project, thread)
        assert worker.hear("finished")["outcome"] == "done"
    shown = show(project, thread)
    assert [a.name for a in shown.artifacts].count("result") == 2
    assert shown.messages[-1].body == "one\n"


def test_a_cancel_ends_the_wait_for_an_answer(project):
    thread = project.send()
    with Worker(project, "--once", command=("sh", "-c", ASK_ONCE.format(more=""))) as worker:
        worker.hear("waiting")
        with project.bus("leader") as bus:
            bus.cancel(thread)
        assert worker.hear("finished")["outcome"] == "cancelled"
        assert worker.end() == 0
    assert kinds(project, thread)[-1] == "cancel_seen"
