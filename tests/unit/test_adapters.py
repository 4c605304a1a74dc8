"""What is read from what coding agents print, and what they are called with."""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from inbox_orch.inbox.worker.happenings import Happening
from inbox_orch.inbox.worker.rest import Rest
from inbox_orch.shared.adapters import commands, running
from inbox_orch.shared.adapters.facts import TOOLSETS, agents
from inbox_orch.shared.adapters.probing import probe
from inbox_orch.shared.adapters.reading import MOST_BYTES, Reader, Reading, read
from inbox_orch.shared.adapters.usage import Session, is_usage, session_in, usage_of
from inbox_orch.shared.errors import InboxOrchError
from support.stub_agents import Stub

TRANSCRIPTS = Path(__file__).parents[1] / "data" / "adapters"
OF_ALL = ("done", "log_in", "rate_limit")


def transcripts() -> list[Path]:
    return sorted(TRANSCRIPTS.glob("*.json"))


def name_of(transcript: Path) -> str:
    return next(name for name in agents() if transcript.stem.startswith(name))


def reading_of(transcript: Path) -> tuple[Reading, Reading]:
    """What is read of a recorded run, and what stands beside it."""
    beside = json.loads(transcript.read_text())
    errors = transcript.with_suffix(".err")
    found = read(
        agents()[name_of(transcript)],
        transcript.with_suffix(".out").read_bytes(),
        beside["exit"],
        errors.read_bytes() if errors.exists() else b"",
    )
    return found, Reading(**beside["reading"])


def test_each_recorded_run_gives_the_result_cost_and_verdict_beside_it():
    read_of = {transcript.stem: reading_of(transcript) for transcript in transcripts()}
    assert {name: found for name, (found, _) in read_of.items()} == {
        name: beside for name, (_, beside) in read_of.items()
    }


def test_every_agent_has_recorded_runs_that_end_well_at_a_limit_and_without_a_log_in():
    recorded = {(name_of(each), reading_of(each)[1].outcome) for each in transcripts()}
    assert {(name, outcome) for name in agents() for outcome in OF_ALL} <= recorded


def test_every_sign_of_an_outcome_has_a_recorded_run():
    recorded = {(name_of(each), reading_of(each)[1].outcome) for each in transcripts()}
    known = {(name, outcome) for name, agent in agents().items() for outcome in agent.prints.means}
    assert known <= recorded


def test_what_comes_in_pieces_is_read_as_if_it_came_at_once():
    output = (TRANSCRIPTS / "codex-done.out").read_bytes()
    reader = Reader(agents()["codex"])
    for place in range(0, len(output), 7):
        reader.add(output[place : place + 7])
    assert reader.finish(0, b"") == read(agents()["codex"], output, 0)


def test_what_is_no_json_or_far_too_long_is_not_read():
    codex = agents()["codex"]
    assert read(codex, b"{half\n[]\n\xff\n" + b"[" * 100_000 + b"\n", 0).outcome == "unread"
    reader = Reader(codex)
    reader.add(b"{" + b" " * MOST_BYTES)
    reader.add(b"}\n" + (TRANSCRIPTS / "codex-done.out").read_bytes())
    assert reader.finish(0, b"").outcome == "done"


def test_odd_numbers_are_no_cost():
    for number in ("true", "-1", "NaN", "1e400", '"2"', "null", "[]"):
        output = f'{{"type":"result","is_error":false,"result":"x","total_cost_usd":{number}}}'
        assert read(agents()["claude"], output.encode(), 0).cost_microdollars is None, number


def test_a_number_beyond_all_others_leaves_the_result_as_it_is():
    used = f'{{"a":{{"inputTokens":1.5}},"b":{{"inputTokens":{"9" * 400}}}}}'
    output = f'{{"type":"result","is_error":false,"result":"x","modelUsage":{used}}}'

    found = read(agents()["claude"], output.encode(), 0)

    assert (found.message, found.input_tokens) == ("x", None)


def test_the_cost_that_is_handed_in_is_what_reports_look_for():
    from inbox_orch.orch.runs.costs import Cost, cost_in

    found, _ = reading_of(TRANSCRIPTS / "claude-done.json")
    handed_in = usage_of("claude", found)
    assert handed_in["session_id"] == found.session
    assert handed_in["cost_microdollars"] == 83412
    assert is_usage(json.dumps(handed_in)) and not is_usage('{"cost_usd": 1}')
    assert cost_in(json.dumps(handed_in)) == Cost(0.083412, 46139, 852)


def test_only_the_coding_toolset_lets_an_agent_change_files():
    for agent in agents().values():
        assert set(agent.arguments) == set(TOOLSETS)
        assert agent.arguments["coding"] != agent.arguments["readonly"]
        assert agent.sources and all(each["address"] and each["read"] for each in agent.sources)
        bare = agent.bare
        if bare is not None:
            coding = agent.starting("coding")
            assert set(coding) & set(bare.edits)
            assert commands.warning_of((agent.program, *coding)) is None


def test_with_a_session_an_agent_may_do_what_it_may_without_and_nothing_more():
    """Codex alone says it in other words: `exec resume` knows no --sandbox."""
    for agent in agents().values():
        for toolset in TOOLSETS:
            resuming = agent.resuming(toolset, "s-1")
            assert "s-1" in resuming and not any("{" in word for word in resuming)
            if agent.name != "codex":
                starting = agent.starting(toolset)
                assert resuming[: len(starting)] == starting
    codex = agents()["codex"]
    assert 'sandbox_mode="read-only"' in codex.resuming("readonly", "s-1")
    assert 'sandbox_mode="workspace-write"' in codex.resuming("coding", "s-1")


def test_a_model_is_named_among_the_options_of_a_new_run_and_of_a_resumed_one():
    for agent in agents().values():
        for toolset in TOOLSETS:
            plain, named = agent.starting(toolset), agent.starting(toolset, "m-1")
            resumed = agent.resuming(toolset, "s-1", "m-1")
            for words in (named, resumed):
                assert words[words.index("--model") + 1] == "m-1", agent.name
            assert [word for word in named if word not in ("--model", "m-1")] == [*plain]
            assert not any("{" in word for word in (*plain, *named, *resumed))
    assert agents()["codex"].starting("coding", "m-1")[0] == "exec", "before it, it is not heard"


ACTS = """#!/bin/sh
here=$(dirname -- "$0")
printf '%s\\n' "$*" >> "$here/calls"
cat >> "$here/heard"
case " $* " in
*' {session} '*) answer={resumed} exit={code} ;;
*) answer={name}-done exit=0 ;;
esac
[ ! -e "{data}/$answer.err" ] || cat "{data}/$answer.err" >&2
cat "{data}/$answer.out"
exit $exit
"""
LOST = {
    "claude": ("claude-session-lost", 1),
    "codex": ("codex-session-lost", 1),
    "gemini": ("gemini-session-lost", 42),
    "opencode": ("opencode-session-lost", 1),
    "cursor-agent": ("unknown", 1),
}
"""What each prints for a session that is not there; of one it is not known, so it says nothing."""


class Resumed:
    """An agent that is run with a session, as a recording has it."""

    def __init__(self, folder: Path, name: str, recording: str, code: int) -> None:
        self.folder = folder
        program = folder / name
        values = {"session": "s-1", "resumed": recording, "code": str(code), "name": name}
        text = ACTS.replace("{data}", str(TRANSCRIPTS))
        for key, value in values.items():
            text = text.replace(f"{{{key}}}", value)
        program.write_text(text)
        program.chmod(0o755)
        (folder / "task").write_text("the whole task\n")
        command = (sys.executable, "-P", "-m", "inbox_orch.shared.adapters")
        environment = {
            "INBOX_SESSION": "s-1",
            "INBOX_RESULT": str(folder / "result"),
            "INBOX_TASK_FILE": str(folder / "task"),
        }
        self.ended = subprocess.run(
            (*command, name, "coding", program),
            input=b"mend it\n",
            capture_output=True,
            env={**os.environ, **environment},
        )
        self.calls = (folder / "calls").read_text().splitlines()
        self.heard = (folder / "heard").read_text()

    @property
    def usage(self) -> dict[str, str]:
        return json.loads((self.folder / running.USAGE_FILE).read_text())


@pytest.mark.parametrize("name", sorted(LOST))
def test_each_agent_goes_on_with_its_session(tmp_path, name):
    seen = Resumed(tmp_path, name, f"{name}-done", 0)

    assert (seen.ended.returncode, seen.heard) == (0, "mend it\n")
    assert seen.calls == [" ".join(agents()[name].resuming("coding", "s-1"))]
    assert seen.usage["resumed_session_id"] == "s-1"
    assert "lost_session_id" not in seen.usage


@pytest.mark.parametrize("name", sorted(LOST))
def test_each_agent_begins_anew_where_its_session_is_lost(tmp_path, name):
    seen = Resumed(tmp_path, name, *LOST[name])

    assert (seen.ended.returncode, seen.heard) == (0, "mend it\nthe whole task\n")
    assert seen.calls[1] == " ".join(agents()[name].starting("coding"))
    assert seen.usage["lost_session_id"] == "s-1"
    assert b"is lost, so a new one is begun" in seen.ended.stderr


@pytest.mark.parametrize("recording, code", [("codex-failed", 1), ("codex-usage-limit", 1)])
def test_what_fails_in_its_session_is_not_begun_anew(tmp_path, recording, code):
    seen = Resumed(tmp_path, "codex", recording, code)

    assert seen.ended.returncode in (1, running.EX_TEMPFAIL)
    assert len(seen.calls) == 1


def test_an_agent_that_is_ended_while_it_goes_on_is_not_begun_anew(tmp_path):
    text = f"#!/bin/sh\necho called >> '{tmp_path}/calls'\nkill $PPID\nsleep 60\n"
    (tmp_path / "codex").write_text(text)
    (tmp_path / "codex").chmod(0o755)
    command = (sys.executable, "-P", "-m", "inbox_orch.shared.adapters", "codex", "coding")
    ended = subprocess.run(
        (*command, tmp_path / "codex"),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env={**os.environ, "INBOX_SESSION": "s-1"},
    )

    assert ended.returncode == 1
    assert (tmp_path / "calls").read_text() == "called\n"


LOST_ONE = json.dumps(
    {
        "schema": "inbox.usage/1",
        "agent": "claude",
        "session_id": "s-2",
        "lost_session_id": "s-1",
    }
)


@pytest.mark.parametrize(
    "payload, found",
    [
        (None, None),
        ("{}", None),
        ('{"session_id": "s-1"}', Session("s-1")),
        ('{"session_id": "s-1", "agent": "claude"}', Session("s-1")),
        ('{"session_id": "--yolo"}', None),
        ('{"session_id": ["s-1"]}', None),
        (LOST_ONE, Session("s-2", "claude", lost="s-1")),
    ],
)
def test_the_session_of_a_result_is_one_that_a_command_can_be_given(payload, found):
    assert session_in(payload) == found


@pytest.mark.parametrize(
    "line, named",
    [
        ("claude -p", "claude"),
        ("/opt/bin/claude -p 'Do it'", "claude"),
        ("claude --print --output-format=json", "claude"),
        ("codex exec -", "codex"),
        ("gemini -p 'Do it'", "gemini"),
        ("claude -p --permission-mode acceptEdits", None),
        ("claude -p --permission-mode=acceptEdits", None),
        ("claude -p --dangerously-skip-permissions", None),
        ("claude", None),
        ("codex exec -s workspace-write -", None),
        ("codex exec --full-auto -", None),
        ("./claude.sh -p", None),
        ("sh -c 'claude -p'", None),
        ("claude 'unfinished", None),
        ("", None),
    ],
)
def test_a_bare_command_that_cannot_edit_is_told_apart(line, named):
    warning = commands.warning_of_line(line)
    assert (warning is None) == (named is None)
    assert named is None or f"--with {named}" in warning


def test_an_agent_that_is_unknown_or_missing_is_one_error(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InboxOrchError) as unknown:
        commands.command("claud")
    assert unknown.value.code == "usage"
    assert all(name in unknown.value.hint for name in agents())
    with pytest.raises(InboxOrchError) as missing:
        commands.command("claude")
    assert "claude" in missing.value.message and "-- CMD" in missing.value.hint


def test_the_words_of_a_command_are_absolute_and_name_the_toolset(monkeypatch, tmp_path):
    program = tmp_path / "codex"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    found = commands.command("codex", "readonly")
    assert found.words[-3:] == ("codex", "readonly", str(program))
    assert found.words[0].startswith("/")
    assert found.line.endswith(f"codex readonly {program}")


def done(message: str = "All is done.") -> int:
    """The exit code for an agent that has said so."""
    return running._told(agents()["claude"], Reading("done", message), 0)


def test_a_result_for_which_there_is_no_room_is_for_a_later_try(tmp_path, monkeypatch, capfd):
    def fail(descriptor, content):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setenv("INBOX_RESULT", str(tmp_path / "result"))
    monkeypatch.setattr(running, "write_all", fail)

    assert done() == running.EX_TEMPFAIL
    assert list(tmp_path.iterdir()) == []
    assert "could not be handed in" in capfd.readouterr().err


def test_a_result_of_the_agents_own_stays_and_the_cost_of_an_earlier_run_goes(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("INBOX_RESULT", str(tmp_path / "result"))
    (tmp_path / "result").write_text("its own")
    (tmp_path / running.USAGE_FILE).write_text("of an earlier run")

    assert done() == 0
    assert (tmp_path / "result").read_text() == "its own"
    kept = json.loads((tmp_path / running.USAGE_FILE).read_text())
    assert kept == {"schema": "inbox.usage/1", "agent": "claude"}


def test_the_probe_tells_a_missing_program_a_release_and_a_missing_log_in(monkeypatch, tmp_path):
    stub = Stub(tmp_path / "agents")
    monkeypatch.setenv("PATH", f"{stub.folder}:/usr/bin:/bin")
    well, missing = probe(("claude", "codex", "claude"))
    assert (well.status, well.text) == ("ok", "9.9.9 (Claude Code); logged in")
    assert (missing.status, missing.name) == ("problem", "agent codex")
    assert "no codex on PATH" in missing.text
    stub.meets("logged-out")
    (out,) = probe(("claude",))
    assert (out.status, out.text[:35]) == ("problem", "9.9.9 (Claude Code); not logged in:")
    (stub.folder / "claude").write_text("#!/bin/sh\nexit 3\n")
    (broken,) = probe(("claude",))
    assert broken.status == "warning"
    with pytest.raises(InboxOrchError):
        probe(("claud",))


def ended(status: int | None, **facts: object) -> Happening:
    return Happening("finished", "t", {"exit_status": status, "by_command": False} | facts)


def test_a_worker_rests_longer_at_each_limit_in_a_row_and_ends_without_a_log_in():
    rest, pauses = Rest("claude"), []
    for status in (75, 75, 75, 0, 75):
        said = rest.note(ended(status), 1000)
        assert (said is None) == (status == 0)
        pauses.append(rest.until_ms - 1000)
    assert pauses == [5_000, 20_000, 80_000, 80_000, 5_000]
    for _ in range(100):
        rest.note(ended(75), 0)
    assert rest.until_ms == 3_600_000
    assert not rest.for_good
    rest.note(ended(77, by_command=True), 0)
    assert not rest.for_good
    rest.note(ended(77), 0)
    assert rest.for_good and rest.error().code == "not_logged_in"
    assert str(rest.error().hint).endswith("the thread that met it has failed and says so")
    rest.note(ended(77, outcome="handed_back"), 0)
    assert str(rest.error().hint).endswith("the thread that met it is offered again")


def test_a_worker_with_a_command_of_its_own_never_rests():
    rest = Rest(None)
    rest.note(ended(75), 0)
    rest.note(ended(77), 0)
    assert (rest.until_ms, rest.for_good) == (0, False)
