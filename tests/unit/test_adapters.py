"""What is read from what coding agents print, and what they are called with."""

import errno
import json
import os
from pathlib import Path

import pytest

from inbox_orch.inbox.worker.happenings import Happening
from inbox_orch.inbox.worker.rest import Rest
from inbox_orch.shared.adapters import commands, running
from inbox_orch.shared.adapters.facts import TOOLSETS, agents
from inbox_orch.shared.adapters.probing import probe
from inbox_orch.shared.adapters.reading import MOST_BYTES, Reader, Reading, read
from inbox_orch.shared.adapters.usage import is_usage, usage_of
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
            coding = agent.arguments["coding"]
            assert set(coding) & set(bare.edits)
            assert commands.warning_of((agent.program, *coding)) is None


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


def test_a_worker_with_a_command_of_its_own_never_rests():
    rest = Rest(None)
    rest.note(ended(75), 0)
    rest.note(ended(77), 0)
    assert (rest.until_ms, rest.for_good) == (0, False)
