"""`inbox work`: what becomes of a thread when its command ends, row by row of the table."""

import pytest

from support.commands import Project
from support.timing import undisturbed
from support.workers import Worker, content, kinds, show, work_once


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path / "project")


def last_message(project, thread):
    return show(project, thread).messages[-1]


def test_exit_0_with_a_json_object_as_result_makes_it_the_payload(project):
    thread = project.send()
    code, finished = work_once(project, """printf '{"n": 1}' > "$INBOX_RESULT"; echo noise""")
    message = last_message(project, thread)
    assert (code, finished["outcome"], finished["exit_status"]) == (0, "done", 0)
    assert (message.kind, message.body, message.payload) == ("result", "", '{"n": 1}')
    assert content(project, thread, "result") == b'{"n": 1}'


def test_exit_0_with_any_other_text_as_result_makes_it_the_body(project):
    thread = project.send()
    work_once(project, """printf 'ünder\\r\\n[1]' > "$INBOX_RESULT"; echo noise""")
    assert last_message(project, thread).body == "ünder\r\n[1]"
    assert content(project, thread, "result") == "ünder\r\n[1]".encode()


def test_exit_0_without_a_result_makes_the_output_the_body(project):
    thread = project.send()
    work_once(project, "echo hello; echo complaint >&2")
    message = last_message(project, thread)
    assert message.body == "hello\n"
    assert [a.name for a in message.artifacts] == ["stdout", "stderr"]
    assert content(project, thread, "stderr") == b"complaint\n"


@pytest.mark.parametrize(
    "making, said",
    [
        (': > "$INBOX_RESULT"', "is empty"),
        (r"""printf 'a\377b' > "$INBOX_RESULT" """, "is not UTF-8"),
        (r"""printf 'a\000b' > "$INBOX_RESULT" """, "NUL"),
        ('head -c 16777217 /dev/zero | tr "\\0" x > "$INBOX_RESULT"', "too many for a body"),
    ],
)
def test_a_result_that_cannot_be_a_body_is_attached_and_that_is_said(project, making, said):
    thread = project.send()
    work_once(project, f"{making}; echo instead")
    shown = show(project, thread)
    assert shown.thread.state == "done"
    assert said in shown.messages[-1].body
    assert shown.messages[-1].body.endswith("instead\n")
    assert "result" in [a.name for a in shown.messages[-1].artifacts]


@pytest.mark.parametrize("making", ["ln", "ln -s"])
def test_a_result_that_is_the_database_is_not_read_and_that_is_said(project, making):
    thread = project.send()
    _, finished = work_once(project, f'{making} "$INBOX_DB" "$INBOX_RESULT"; echo instead')
    message = last_message(project, thread)
    assert finished["outcome"] == "done"
    assert "a file of the database, so it is not attached" in message.body
    assert message.body.endswith("instead\n")
    assert [a.name for a in message.artifacts] == ["stdout", "stderr"]


@pytest.mark.parametrize("making", ['mkdir "$INBOX_RESULT"', 'mkfifo "$INBOX_RESULT"'])
def test_a_result_that_is_no_file_is_said_and_holds_nobody_up(project, making):
    thread = project.send()
    work_once(project, making)
    assert "not a regular file" in last_message(project, thread).body


def test_exit_75_hands_the_thread_back_with_a_back_off(project):
    thread = project.send()
    _, finished = work_once(project, 'echo partial > "$INBOX_RESULT"; exit 75')
    shown = show(project, thread)
    assert finished["outcome"] == "handed_back"
    assert (shown.thread.state, shown.thread.deliveries) == ("pending", 1)
    assert 2000 < shown.thread.available_at - shown.messages[-1].created_at <= 5000
    assert content(project, thread, "result") == b"partial\n"


@pytest.mark.parametrize("status, options", [(75, ()), (3, ("--retry-in", "0"))])
def test_the_last_delivery_ends_exhausted(project, status, options):
    thread = project.send(max_deliveries=1)
    _, finished = work_once(project, f"exit {status}", *options)
    shown = show(project, thread).thread
    assert finished["outcome"] == "exhausted"
    assert (shown.state, shown.reason) == ("failed", "exhausted")


def test_any_other_exit_fails_with_the_tail_of_stderr(project):
    thread = project.send()
    code, finished = work_once(
        project, 'echo fine; echo "it broke" >&2; echo notes > "$INBOX_RESULT"; exit 3'
    )
    shown = show(project, thread)
    assert (code, finished["outcome"], finished["exit_status"]) == (0, "failed", 3)
    assert (shown.thread.state, shown.messages[-1].kind) == ("failed", "failure")
    assert "exit status 3" in shown.messages[-1].body
    assert shown.messages[-1].body.endswith("it broke\n")
    assert content(project, thread, "result") == b"notes\n"


def test_retry_in_hands_a_failure_back(project):
    thread = project.send()
    _, finished = work_once(project, "exit 1", "--retry-in", "60")
    shown = show(project, thread)
    assert finished["outcome"] == "handed_back"
    assert shown.thread.state == "pending"
    assert shown.thread.available_at == shown.messages[-1].created_at + 60_000


def test_a_signal_fails_and_is_named(project):
    thread = project.send()
    _, finished = work_once(project, "kill -9 $$")
    assert (finished["outcome"], finished["signal"]) == ("failed", 9)
    assert "SIGKILL" in last_message(project, thread).body


@pytest.mark.parametrize(
    "options, payload", [(("--timeout", "2.5"), None), ((), '{"timeout_seconds": 2.5}')]
)
def test_a_time_limit_ends_the_command_and_fails_the_thread(project, options, payload):
    def trial():
        thread = project.send(payload=payload)
        _, finished = work_once(project, "echo begun >&2; exec sleep 1000", *options)
        body = last_message(project, thread).body
        assert (finished["outcome"], finished["timed_out"]) == ("failed", True)
        assert "2.5 s" in body
        return body.endswith("begun\n")  # if not, the shell had not got so far

    undisturbed(trial)


@pytest.mark.parametrize(
    "call, outcome, state",
    [
        ("done --body mine", "done", "done"),
        ("fail --body mine", "failed", "failed"),
        ("fail --body mine --retry-in 60", "handed_back", "pending"),
        ("release --delay 60 --body mine", "released", "pending"),
    ],
)
def test_what_the_command_itself_said_stands(project, call, outcome, state):
    thread = project.send()
    script = f'"$INBOX" {call} >/dev/null; echo log; echo r > "$INBOX_RESULT"; exit 9'
    _, finished = work_once(project, script)
    shown = show(project, thread)
    assert (finished["outcome"], finished["by_command"]) == (outcome, True)
    assert (shown.thread.state, shown.messages[-1].body) == (state, "mine")
    assert content(project, thread, "stdout") == b"log\n"
    assert content(project, thread, "result") == b"r\n"


@pytest.mark.parametrize(
    "payload, said",
    [
        ('{"worktree": "gone/away"}', "is not there"),
        ('{"worktree": 7}', "not the path of a folder"),
        ('{"timeout_seconds": true}', "not a number"),
        ('{"timeout_seconds": 0}', "not a number above zero"),
    ],
)
def test_terms_that_cannot_be_met_fail_the_thread_and_run_nothing(project, payload, said):
    thread = project.send(payload=payload)
    _, finished = work_once(project, "touch ran")
    shown = show(project, thread)
    assert (finished["outcome"], finished["runs"]) == ("failed", 0)
    assert shown.thread.state == "failed"
    assert said in shown.messages[-1].body
    assert not (project.folder / "ran").exists()


def test_a_command_that_cannot_start_costs_a_delivery_and_comes_back(project):
    (project.folder / "broken").write_text("#!/no/such/interpreter\n")
    (project.folder / "broken").chmod(0o755)
    thread = project.send()
    with Worker(project, "--once", command=("./broken",)) as worker:
        assert worker.hear("finished")["outcome"] == "handed_back"
        assert worker.end() == 0
    shown = show(project, thread)
    assert (shown.thread.state, shown.thread.deliveries) == ("pending", 1)
    assert "could not be started" in shown.messages[-1].body


def test_one_thread_gives_one_final_event(project):
    thread = project.send()
    work_once(project, "true")
    assert kinds(project, thread) == ["thread_sent", "thread_claimed", "thread_done"]


SCHEMA = '{"type": "object", "required": ["verdict"]}'


def test_a_result_that_the_schema_accepts_is_handed_in(project):
    thread = project.send(schema=SCHEMA)
    _, finished = work_once(
        project, """grep -q '"required":."verdict"' && echo '{"verdict": 1}' > "$INBOX_RESULT" """
    )
    assert finished["outcome"] == "done"
    assert last_message(project, thread).payload == '{"verdict": 1}\n'


@pytest.mark.parametrize("options, state", [((), "failed"), (("--retry-in", "60"), "pending")])
def test_a_result_that_the_schema_refuses_is_a_failure_that_says_why(project, options, state):
    thread = project.send(schema=SCHEMA)
    code, finished = work_once(project, "echo hello", *options)
    shown = show(project, thread)
    outcome = {"failed": "failed", "pending": "handed_back"}[state]
    assert (code, finished["outcome"], shown.thread.state) == (0, outcome, state)
    body = shown.messages[-1].body
    assert "does not accept the result: $: expected JSON" in body
    assert body.endswith("The command ended with exit status 0.\n\nhello\n")
    assert content(project, thread, "stdout") == b"hello\n"


@pytest.mark.parametrize("options", [(), ("--retry-in", "60")])
def test_a_thread_that_says_so_is_offered_again_when_its_result_is_refused(project, options):
    """Until its deliveries are used up; the next command reads what was wrong, and what it was."""
    thread = project.send(schema=SCHEMA, payload='{"retry_refused": true}', max_deliveries=2)
    script = 'cp "$INBOX_TASK_FILE" told; echo "looks fine" | tee "$INBOX_RESULT"'
    code, finished = work_once(project, script, *options)
    shown = show(project, thread)
    assert (code, finished["outcome"], shown.thread.state) == (0, "handed_back", "pending")
    assert (shown.thread.available_at > shown.thread.updated_at) == bool(options)
    if options:
        return
    body = shown.messages[-1].body
    assert "does not accept the result: $: expected JSON" in body
    assert body.endswith("What was handed in:\n\nlooks fine\n")

    _, finished = work_once(project, script)
    told = (project.folder / "told").read_text()
    assert body in told and finished["outcome"] == "exhausted"
    assert show(project, thread).thread.reason == "exhausted"


@pytest.mark.parametrize("script, told", [
    ("echo no key >&2; exit 3", "exit status 3"), ("exit 127", "exit status 127"),
    ("sleep 60", "0.2 s"),
])  # fmt: skip
def test_a_thread_that_says_so_is_offered_again_when_its_command_fails(project, script, told):
    thread = project.send(payload='{"retry_failed": true, "timeout_seconds": 0.2}')
    code, finished = work_once(project, script)
    shown = show(project, thread)
    assert (code, finished["outcome"], shown.thread.state) == (0, "handed_back", "pending")
    assert shown.thread.available_at > shown.thread.updated_at
    assert told in shown.messages[-1].body


@pytest.mark.parametrize("said", ["1", '"true"', "false", "{}"])
def test_what_does_not_say_so_fails_as_ever(project, said):
    thread = project.send(schema=SCHEMA, payload=f'{{"retry_refused": {said}}}')
    assert work_once(project, "echo hello")[1]["outcome"] == "failed"
    assert show(project, thread).thread.state == "failed"
