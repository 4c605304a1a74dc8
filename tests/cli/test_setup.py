"""`inbox setup`: each agent's files get what its documentation says, and --undo gives back what was
there before, to the byte."""

import json
import os
import re
from pathlib import Path

import pytest

from inbox_orch.inbox.setup.facts import Agent, agents
from inbox_orch.inbox.setup.run import install, place_of
from support.commands import run
from support.setups import (
    CASES,
    FORMS,
    STYLES,
    Desk,
    fill,
    make_desk,
    misfits,
    parsed,
    paths_of,
    states,
)

cases = pytest.mark.parametrize("agent, scope", CASES)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return make_desk(tmp_path)


# -- what is written -------------------------------------------------------------------------


@cases
def test_an_empty_place_is_set_up_and_given_back(desk: Desk, agent: str, scope: str):
    before = desk.snapshot()

    first = desk.setup(agent, scope).data
    written = desk.snapshot()
    again = desk.setup(agent, scope).data
    checked = desk.setup(agent, scope, "--check").data

    assert states(first) == states(again) == states(checked) == {"in_place"}
    assert all(item["written"] for item in first["items"])
    assert not any(item["written"] for item in again["items"])
    assert desk.snapshot() == written
    undone = desk.setup(agent, scope, "--undo").data
    assert states(undone) == {"missing"}
    assert desk.snapshot() == before
    assert desk.setup(agent, scope, "--undo").data["items"]
    assert desk.snapshot() == before


@pytest.mark.parametrize("style", STYLES)
@cases
def test_a_filled_place_is_set_up_and_given_back(desk: Desk, agent: str, scope: str, style: str):
    fill(desk, agent, scope, style)
    before = desk.snapshot()

    desk.setup(agent, scope).data  # noqa: B018 - a success
    written = desk.snapshot()
    assert states(desk.setup(agent, scope, "--check").data) == {"in_place"}
    desk.setup(agent, scope).data  # noqa: B018

    assert desk.snapshot() == written
    for path, seen in before.items():
        if seen[0] == "file":
            assert written[path][1] == seen[1], f"the mode of {path}"
            assert kept_in(seen[2], written[path][2]), f"every byte of {path}, in its order"
    desk.setup(agent, scope, "--undo").data  # noqa: B018
    assert desk.snapshot() == before


def kept_in(old: bytes, new: bytes) -> bool:
    """Whether the old bytes are all there, in their order."""
    rest = iter(new)
    return all(byte in rest for byte in old)


@pytest.mark.parametrize("style", ["two_spaces", "one_line", "nothing_in_it", None])
@cases
def test_what_is_written_has_the_documented_form(
    desk: Desk, agent: str, scope: str, style: str | None
):
    if style is not None:
        fill(desk, agent, scope, style)
    desk.setup(agent, scope).data  # noqa: B018

    for name, parts in paths_of(agent, scope).items():
        path = desk.root(scope) / name
        if name in FORMS[agent]:
            value = parsed(path, comments=parts[0].comments)
            assert misfits(value, FORMS[agent][name], name) == []
            if style == "two_spaces" and parts[0].form != "file":
                assert "other" in json.dumps(value), "what was there before"
        elif name.endswith("SKILL.md"):
            assert path.read_text() == run("skill", "print").text
        else:
            assert name.endswith(".md")
            assert run("guide").text.strip() in path.read_text().replace("\r\n", "\n")


def test_every_file_that_is_no_text_for_a_reader_has_a_documented_form():
    for agent, scope in CASES:
        for name in paths_of(agent, scope):
            assert name.endswith(".md") or name in FORMS[agent], (agent, name)


def test_every_agent_names_its_documents_and_when_they_were_read():
    for agent in agents().values():
        of = {source["of"] for source in agent.sources}
        assert {part.part for part in agent.parts} <= of, agent.name
        for source in agent.sources:
            assert source["address"].startswith("https://")
            assert re.fullmatch(r"20\d\d-\d\d-\d\d", source["read"])


def test_what_is_not_set_up_is_named():
    for agent in agents().values():
        for scope in ("project", "user"):
            there = {part.part for part in agent.parts if scope in part.paths}
            for missing in {"skill", "hooks", "lines", "mcp"} - there:
                named = {"mcp": "tool server"}.get(missing, missing.rstrip("s"))
                assert any(named in each for each in agent.left_out), (agent.name, missing)


def test_agents_that_share_a_file_put_the_same_pieces_into_it():
    pieces: dict[tuple[str, str], set] = {}
    for agent, scope in CASES:
        for name, parts in paths_of(agent, scope).items():
            told = tuple((part.id, part.form, json.dumps(part.value)) for part in parts)
            pieces.setdefault((scope, name), set()).add(told)
    assert all(len(each) == 1 for each in pieces.values())


def test_the_help_names_every_agent(tmp_path: Path):
    text = run("setup", "--help", folder=tmp_path).text
    assert f"AGENT: {', '.join(agents())}." in " ".join(text.split())


# -- several agents, several times -----------------------------------------------------------


def test_all_agents_in_one_project_are_taken_back_in_any_order(desk: Desk):
    before = desk.snapshot()
    names = list(agents())
    for agent in names:
        assert desk.setup(agent, "project").code == 0
    for agent in names[::2] + names[1::2]:
        for other in names:
            assert desk.setup(other, "project", "--check").code in (0, 11)
        desk.setup(agent, "project", "--undo").data  # noqa: B018
        ended = desk.setup(agent, "project", "--check")
        assert ended.error["code"] == "degraded"
    assert desk.snapshot() == before


@pytest.mark.parametrize("order", [("user", "project"), ("project", "user")])
def test_two_places_are_taken_back_in_any_order(desk: Desk, order: tuple[str, str]):
    before = desk.snapshot()
    for scope in ("user", "project"):
        desk.setup("claude", scope).data  # noqa: B018

    for scope in order:
        desk.setup("claude", scope, "--undo").data  # noqa: B018

    assert desk.snapshot() == before


def test_a_file_that_was_made_goes_also_when_it_was_written_anew(desk: Desk):
    before = desk.snapshot()
    desk.setup("opencode", "project").data  # noqa: B018
    config = desk.project / "opencode.json"
    assert list(parsed(config)) == ["$schema", "mcp"]
    config.write_text(json.dumps(parsed(config)))

    desk.setup("opencode", "project", "--undo").data  # noqa: B018

    assert desk.snapshot() == before


def test_what_another_agent_needs_stays(desk: Desk):
    desk.setup("codex", "project").data  # noqa: B018
    desk.setup("cursor", "project").data  # noqa: B018

    undone = desk.setup("codex", "project", "--undo").data

    assert "another agent needs it" in undone["notes"][0]
    assert states(desk.setup("cursor", "project", "--check").data) == {"in_place"}
    assert not (desk.project / ".codex").exists()


def test_a_skill_that_was_there_before_stays(desk: Desk):
    assert run("skill", "install", "--dir", ".agents/skills", folder=desk.project).code == 0
    before = desk.snapshot()

    desk.setup("codex", "project").data  # noqa: B018
    desk.setup("codex", "project", "--undo").data  # noqa: B018

    assert desk.snapshot() == before


def test_what_was_written_since_stays_when_it_is_taken_back(desk: Desk):
    fill(desk, "claude", "project", "two_spaces")
    settings = desk.project / ".claude" / "settings.json"
    rules = desk.project / "CLAUDE.md"
    before, told = parsed(settings), rules.read_text()
    desk.setup("claude", "project").data  # noqa: B018

    value = {**parsed(settings), "mine": True}
    settings.write_text(json.dumps(value, indent=8))  # all of it in another form
    rules.write_text(rules.read_text() + "\nMore of mine.\n")
    assert states(desk.setup("claude", "project", "--check").data) == {"in_place"}
    desk.setup("claude", "project", "--undo").data  # noqa: B018

    assert parsed(settings) == {**before, "mine": True}
    assert rules.read_text() == told + "\nMore of mine.\n"


def test_a_file_that_was_made_stays_when_somebody_else_has_used_it(desk: Desk):
    desk.setup("claude", "project").data  # noqa: B018
    mcp = desk.project / ".mcp.json"
    value = parsed(mcp)
    value["mcpServers"]["other"] = {"command": "other"}
    mcp.write_text(json.dumps(value))

    desk.setup("claude", "project", "--undo").data  # noqa: B018

    assert parsed(mcp) == {"mcpServers": {"other": {"command": "other"}}}
    assert not (desk.project / ".claude").exists()


def test_what_was_removed_by_hand_is_put_back(desk: Desk):
    fill(desk, "gemini", "project", "tabs")
    before = desk.snapshot()
    desk.setup("gemini", "project").data  # noqa: B018
    settings = desk.project / ".gemini" / "settings.json"
    value = parsed(settings)
    del value["mcpServers"]["inbox"]
    settings.write_text(json.dumps(value, indent="\t"))
    (desk.project / ".agents/skills/inbox/SKILL.md").unlink()

    checked = desk.setup("gemini", "project", "--check").value
    assert checked["error"]["code"] == "degraded"
    missing = [each["part"] for each in checked["data"]["items"] if each["state"] == "missing"]
    assert sorted(missing) == ["mcp", "skill"]
    desk.setup("gemini", "project").data  # noqa: B018
    assert states(desk.setup("gemini", "project", "--check").data) == {"in_place"}

    desk.setup("gemini", "project", "--undo").data  # noqa: B018
    assert desk.snapshot() == before


def older_release(agent: str) -> Agent:
    """The agent as an older release may have known it: other texts, and other arguments."""
    known = agents()[agent]
    texts = [part._replace(text="prime.txt") if part.text else part for part in known.parts]
    server = {"command": "inbox", "args": ["old"]}
    parts = [part._replace(value=server) if part.part == "mcp" else part for part in texts]
    return known._replace(parts=tuple(parts))


def test_older_pieces_are_told_and_replaced(desk: Desk):
    fill(desk, "codex", "project", "two_spaces")
    before = desk.snapshot()
    with desk.entered():
        assert install(older_release("codex"), place_of("project")).complete

    checked = desk.setup("codex", "project", "--check").value
    told = {each["part"]: each["state"] for each in checked["data"]["items"]}
    assert told == {"skill": "older", "hooks": "in_place", "lines": "older", "mcp": "older"}
    assert states(desk.setup("codex", "project").data) == {"in_place"}
    assert (desk.project / "AGENTS.md").read_text().count("inbox setup: begin") == 1

    desk.setup("codex", "project", "--undo").data  # noqa: B018
    assert desk.snapshot() == before


def test_what_an_older_release_has_written_is_taken_back(desk: Desk):
    fill(desk, "gemini", "project", "tabs")
    before = desk.snapshot()
    older = older_release("gemini")
    # Also a part that is known no more.
    gone = older.parts[1]._replace(at=("hooks", "Gone"))
    with desk.entered():
        install(older._replace(parts=(*older.parts, gone)), place_of("project"))

    desk.setup("gemini", "project", "--undo").data  # noqa: B018

    assert desk.snapshot() == before


def test_lines_of_an_older_release_are_told_where_nothing_is_remembered(desk: Desk):
    with desk.entered():
        install(older_release("codex"), place_of("project"))
    for record in (desk.home / ".local/state/inbox/setup").iterdir():
        record.unlink()
    (desk.project / ".agents/skills/inbox/SKILL.md").unlink()
    (desk.project / ".codex/config.toml").unlink()

    told = desk.setup("codex", "project", "--check").value["data"]
    assert [e["state"] for e in told["items"] if e["part"] == "lines"] == ["older"]
    assert states(desk.setup("codex", "project").data) == {"in_place"}
    lines = (desk.project / "AGENTS.md").read_text()
    assert lines.count("inbox setup: begin") == 1
    assert run("guide").text.strip() in lines


# -- places ---------------------------------------------------------------------------------


def test_a_project_begins_at_the_top_of_its_repository(desk: Desk):
    inner = desk.project / "src" / "deep"
    inner.mkdir(parents=True)

    ended = run("setup", "claude", "--json", folder=inner, HOME=str(desk.home))

    assert ended.data["root"] == str(desk.project)
    assert (desk.project / ".mcp.json").exists()


def test_the_home_folder_is_no_project(desk: Desk):
    refused = run("setup", "claude", "--json", folder=desk.home, HOME=str(desk.home))

    assert refused.error["code"] == "usage"
    assert "--user" in refused.error["hint"]


def test_outside_of_a_repository_a_project_is_the_folder(tmp_path: Path):
    (tmp_path / "home").mkdir()
    folder = tmp_path / "plain"
    folder.mkdir()

    ended = run("setup", "cursor", "--json", folder=folder, HOME=str(tmp_path / "home"))

    assert ended.data["root"] == str(folder)


def test_a_record_that_cannot_be_understood_is_told(desk: Desk):
    desk.setup("claude", "project").data  # noqa: B018
    (record,) = (desk.home / ".local/state/inbox/setup").iterdir()
    record.write_text("{}")
    before = desk.snapshot()

    for options in ((), ("--undo",), ("--check",)):
        refused = desk.setup("claude", "project", *options)
        assert refused.error["code"] == "corrupt"
        assert str(record) in refused.error["message"]
        assert desk.snapshot() == before


@pytest.mark.parametrize("home", ["", "relative", "/no/such/folder"])
def test_without_a_home_nothing_is_set_up(desk: Desk, home: str):
    refused = run("setup", "claude", "--user", "--json", folder=desk.project, HOME=home)

    assert refused.error["code"] == "usage"
    assert "HOME" in refused.error["message"]


@pytest.mark.parametrize(
    "agent, variable",
    [("claude", "CLAUDE_CONFIG_DIR"), ("codex", "CODEX_HOME"), ("copilot", "COPILOT_HOME")],
)
def test_a_folder_that_a_variable_has_moved_is_found_and_given_back(
    desk: Desk, tmp_path: Path, agent: str, variable: str
):
    moved = {variable: str(tmp_path / "moved")}
    before = desk.snapshot()

    desk.setup(agent, "user", **moved).data  # noqa: B018
    assert list((tmp_path / "moved").iterdir())
    # Also when the variable is gone.
    desk.setup(agent, "user", "--undo").data  # noqa: B018

    assert not (tmp_path / "moved").exists()
    assert desk.snapshot() == before


def test_the_file_that_is_there_is_taken(desk: Desk):
    (desk.project / ".claude").mkdir()
    (desk.project / ".claude/CLAUDE.md").write_text("# Rules\n")
    (desk.project / "opencode.jsonc").write_text('{\n  // mine\n  "model": "m", // it\n}\n')
    before = desk.snapshot()

    for agent in ("claude", "opencode"):
        desk.setup(agent, "project").data  # noqa: B018
    assert not (desk.project / "CLAUDE.md").exists()
    assert not (desk.project / "opencode.json").exists()
    value = parsed(desk.project / "opencode.jsonc", comments=True)
    assert value["mcp"]["inbox"]["command"] == ["inbox", "mcp"]
    assert value["model"] == "m"

    for agent in ("claude", "opencode"):
        desk.setup(agent, "project", "--undo").data  # noqa: B018
    assert desk.snapshot() == before


def test_options_that_speak_against_each_other_are_refused(desk: Desk):
    for options in (("--project", "--user"), ("--undo", "--check")):
        refused = run("setup", "claude", *options, "--json", folder=desk.project)
        assert refused.error["code"] == "usage"


def test_two_at_once_do_not_mix(desk: Desk):
    import fcntl

    descriptor = os.open(desk.project, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        refused = desk.setup("claude", "project")
        assert refused.error["code"] == "busy"
        assert desk.setup("claude", "project", "--check").error["code"] == "degraded"
    finally:
        os.close(descriptor)
