"""`inbox setup`: each agent's files get what its documentation says, and --undo gives back what was
there before, to the byte."""

import errno
import json
import os
import re
from pathlib import Path

import pytest

from inbox_orch.inbox.setup import files
from inbox_orch.inbox.setup import run as run_module
from inbox_orch.inbox.setup.facts import agents
from inbox_orch.shared.errors import InboxOrchError
from support.commands import run
from support.setups import (
    CASES,
    FORMS,
    STYLES,
    Desk,
    fill,
    installing,
    make_desk,
    misfits,
    parsed,
    paths_of,
    undoing,
)

cases = pytest.mark.parametrize("agent, scope", CASES)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return make_desk(tmp_path)


def states(data: dict) -> set[str]:
    return {item["state"] for item in data["items"]}


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


def test_older_pieces_are_told_and_replaced(desk: Desk):
    """As an older release has written them: other lines, and other words in the record."""
    fill(desk, "codex", "project", "two_spaces")
    before = desk.snapshot()
    older = (
        "import sys; from inbox_orch.inbox.setup import facts;"
        "known = facts.agents();"
        "facts.agents = lambda: known;"
        "new = known['codex'];"
        "parts = tuple(p._replace(text='prime.txt') if p.text else"
        " p._replace(value={'command': 'inbox', 'args': ['old']}) if p.form == 'table' else p"
        " for p in new.parts);"
        "from inbox_orch.inbox.setup import run;"
        "print(run.install(new._replace(parts=parts), run.place_of('project')).complete)"
    )
    import subprocess
    import sys

    environment = {**os.environ, "HOME": str(desk.home)}
    line = [sys.executable, "-P", "-c", older]
    ended = subprocess.run(line, cwd=desk.project, env=environment, capture_output=True)
    assert ended.stdout == b"True\n", ended

    checked = desk.setup("codex", "project", "--check").value
    told = {each["part"]: each["state"] for each in checked["data"]["items"]}
    assert told == {"skill": "older", "hooks": "in_place", "lines": "older", "mcp": "older"}
    assert states(desk.setup("codex", "project").data) == {"in_place"}
    assert (desk.project / "AGENTS.md").read_text().count("inbox setup: begin") == 1

    desk.setup("codex", "project", "--undo").data  # noqa: B018
    assert desk.snapshot() == before


def test_lines_of_an_older_release_are_told_where_nothing_is_remembered(desk: Desk):
    desk.setup("codex", "project").data  # noqa: B018
    rules = desk.project / "AGENTS.md"
    text = rules.read_text()
    for record in (desk.home / ".local/state/inbox/setup").iterdir():
        record.unlink()
    body = text.split("\n", 1)[1].rsplit("\n", 2)[0]
    assert states(desk.setup("codex", "project", "--check").data) == {"in_place"}
    import hashlib

    shown = hashlib.sha256(b"older lines").hexdigest()[:12]
    changed = text.replace(body, "older lines")
    rules.write_text(re.sub("begin [0-9a-f]+", f"begin {shown}", changed))

    told = desk.setup("codex", "project", "--check").value["data"]
    assert [e["state"] for e in told["items"] if e["part"] == "lines"] == ["older"]
    assert states(desk.setup("codex", "project").data) == {"in_place"}
    assert rules.read_text() == text


# -- changed by hand --------------------------------------------------------------------------


def change_skill(desk: Desk) -> Path:
    path = desk.project / ".claude/skills/inbox/SKILL.md"
    path.write_text(path.read_text() + "\nMy own rule.\n")
    return path


def change_hook(desk: Desk) -> Path:
    path = desk.project / ".claude/settings.json"
    path.write_text(path.read_text().replace("inbox hook stop", "inbox hook stop --mailbox w"))
    return path


def change_lines(desk: Desk) -> Path:
    path = desk.project / "CLAUDE.md"
    path.write_text(path.read_text().replace("Exit 8", "Exit eight"))
    return path


def change_mark(desk: Desk) -> Path:
    path = desk.project / "CLAUDE.md"
    path.write_text(path.read_text().replace("inbox setup: end", "inbox setup: the end"))
    return path


def change_server(desk: Desk) -> Path:
    path = desk.project / ".mcp.json"
    path.write_text(path.read_text().replace('"mcp"\n', '"mcp", "--agent", "me"\n'))
    return path


@pytest.mark.parametrize(
    "change", [change_skill, change_hook, change_lines, change_mark, change_server]
)
def test_what_somebody_has_changed_is_kept_and_nothing_else_is_touched(desk: Desk, change):
    desk.setup("claude", "project").data  # noqa: B018
    path = change(desk)
    (desk.project / ".mcp.json").touch()
    changed = desk.snapshot()

    checked = desk.setup("claude", "project", "--check").value
    assert "by hand" in checked["error"]["hint"]
    told = [each for each in checked["data"]["items"] if each["state"] == "changed"]
    assert [each["path"] for each in told] == [str(path)]
    for options in ((), ("--undo",)):
        refused = desk.setup("claude", "project", *options)
        assert refused.error["code"] == "file_exists"
        assert str(path) in refused.error["message"]
        assert desk.snapshot() == changed


BY_HAND = {
    "codex": (".codex/config.toml", '[mcp_servers.inbox]\ncommand = "inbox"\nargs = ["mcp"]\n'),
    "gemini": (
        ".gemini/settings.json",
        '{"mcpServers": {"inbox": {"args": ["mcp"], "command": "inbox"}}}',
    ),
}


@pytest.mark.parametrize("agent", BY_HAND)
def test_what_somebody_has_done_already_is_in_place_and_stays(desk: Desk, agent: str):
    name, text = BY_HAND[agent]
    (desk.project / name).parent.mkdir()
    (desk.project / name).write_text(text)
    before = desk.snapshot()

    assert states(desk.setup(agent, "project").data) == {"in_place"}
    desk.setup(agent, "project", "--undo").data  # noqa: B018

    assert desk.snapshot() == before


ADDED = {
    "claude": (
        ".mcp.json",
        '"mcp"\n      ]\n',
        '"mcp"\n      ],\n      "env": {"INBOX_AGENT": "w1"}\n',
    ),
    "codex": (".codex/config.toml", 'args = ["mcp"]\n', 'args = ["mcp"]\nenv.INBOX_AGENT = "w1"\n'),
}


@pytest.mark.parametrize("agent", ADDED)
def test_what_somebody_adds_to_the_tool_server_is_theirs(desk: Desk, agent: str):
    name, before, after = ADDED[agent]
    desk.setup(agent, "project").data  # noqa: B018
    path = desk.project / name
    assert before in path.read_text()
    path.write_text(path.read_text().replace(before, after))
    changed = desk.snapshot()

    for options in ((), ("--check",)):
        assert states(desk.setup(agent, "project", *options).data) == {"in_place"}
        assert desk.snapshot() == changed
    assert desk.setup(agent, "project", "--undo").error["code"] == "file_exists"
    assert desk.snapshot() == changed


def test_hooks_that_were_put_there_by_hand_are_not_doubled(desk: Desk):
    path = desk.project / ".claude/settings.json"
    path.parent.mkdir()
    hook = {"type": "command", "command": "inbox hook stop --mailbox workers"}
    path.write_text(json.dumps({"hooks": {"Stop": [{"hooks": [hook]}]}}))
    before = desk.snapshot()

    assert desk.setup("claude", "project").error["code"] == "file_exists"
    assert desk.snapshot() == before


def test_a_tool_server_of_the_same_name_is_not_replaced(desk: Desk):
    path = desk.project / ".codex/config.toml"
    path.parent.mkdir()
    path.write_text('[mcp_servers.inbox]\ncommand = "my-mail"\n')
    before = desk.snapshot()

    assert desk.setup("codex", "project").error["code"] == "file_exists"
    assert desk.snapshot() == before


# -- files that cannot be used ------------------------------------------------------------------

BROKEN = {
    "not_json": (".mcp.json", b'{"mcpServers": {}', "is not JSON: line 1"),
    "comments_where_none_are_read": (".mcp.json", b"{\n// mine\n}", "is not JSON: line 2"),
    "a_comma_too_many": (".mcp.json", b'{"a": 1,\n}', "is not JSON: line 2"),
    "a_name_twice": (".mcp.json", b'{"mcpServers": {}, "mcpServers": {}}', "stands twice"),
    "no_object": (".mcp.json", b"[1]", "holds no JSON object"),
    "no_object_inside": (".mcp.json", b'{"mcpServers": []}', "something else than objects"),
    "no_array_inside": (".claude/settings.json", b'{"hooks": {"Stop": {}}}', "no array at"),
    "not_utf8": ("CLAUDE.md", b"caf\xe9", "is not UTF-8: byte 3"),
    "too_deep": (".mcp.json", b"[" * 5_000, "too many levels"),
    "too_large": ("CLAUDE.md", b"x" * (4 * 1024 * 1024 + 1), "has more than"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_file_that_the_agent_could_not_read_is_one_error(desk: Desk, case: str):
    name, content, told = BROKEN[case]
    path = desk.project / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    before = desk.snapshot()

    for options in ((), ("--check",)):
        refused = desk.setup("claude", "project", *options)
        assert refused.error["code"] == "usage"
        assert str(path) in refused.error["message"]
        assert told in refused.error["message"]
        assert desk.snapshot() == before


@pytest.mark.parametrize(
    "text",
    [
        "[mcp_servers\n",
        'mcp_servers = { other = { command = "o" } }\n',
        "mcp_servers = 1\n",
    ],
)
def test_toml_that_cannot_take_a_table_is_one_error(desk: Desk, text: str):
    path = desk.project / ".codex/config.toml"
    path.parent.mkdir()
    path.write_text(text)
    before = desk.snapshot()

    refused = desk.setup("codex", "project")

    assert refused.error["code"] == "usage"
    assert str(path) in refused.error["message"]
    assert desk.snapshot() == before


def test_keys_below_the_table_of_ours_are_not_given_to_another(desk: Desk):
    path = desk.project / ".codex/config.toml"
    path.parent.mkdir()
    path.write_text('[mcp_servers.other]\ncommand = "o"\n')
    desk.setup("codex", "project").data  # noqa: B018
    path.write_text(path.read_text() + "startup_timeout_sec = 20\n")
    before = desk.snapshot()

    assert desk.setup("codex", "project", "--undo").error["code"] == "file_exists"
    assert desk.snapshot() == before


@pytest.mark.parametrize("what", ["file", "folder"])
@pytest.mark.parametrize("act", [installing, undoing])
def test_what_is_read_only_is_one_error(desk: Desk, what: str, act, monkeypatch):
    fill(desk, "claude", "project", "two_spaces")
    path = desk.project / ".claude" / "settings.json"
    if act is undoing:
        desk.setup("claude", "project").data  # noqa: B018
    locked = path if what == "file" else path.parent
    before = desk.snapshot()
    # Nothing is read-only for root, as which the tests may run.
    monkeypatch.setattr(os, "access", lambda each, mode: str(each) != str(locked))

    with desk.entered(), pytest.raises(InboxOrchError) as refused:
        act("claude", "project")

    assert refused.value.code == "read_only"
    assert str(locked) in refused.value.message
    assert desk.snapshot() == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_a_file_of_another_stays_theirs(desk: Desk):
    fill(desk, "claude", "user", "two_spaces")
    settings = desk.home / ".claude" / "settings.json"
    os.chown(settings, 65534, 65534)

    for options in ((), ("--undo",)):
        desk.setup("claude", "user", *options).data  # noqa: B018
        status = settings.stat()
        assert (status.st_uid, status.st_gid) == (65534, 65534)


def test_a_read_only_file_that_is_as_it_should_be_is_no_trouble(desk: Desk, monkeypatch):
    desk.setup("claude", "project").data  # noqa: B018
    monkeypatch.setattr(os, "access", lambda each, mode: False)

    with desk.entered():
        assert installing("claude", "project").complete


def failing(call: str, at: int, monkeypatch) -> None:
    """From here on the call of this number finds no space left."""
    real, numbers = getattr(os, call), iter(range(1, 1000))

    def full(*arguments, **options):
        if next(numbers) == at:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(arguments[0]))
        return real(*arguments, **options)

    monkeypatch.setattr(os, call, full)


@pytest.mark.parametrize("call", ["open", "write", "fsync", "mkdir", "rename"])
@pytest.mark.parametrize("act", [installing, undoing])
def test_a_failing_disk_leaves_everything_as_it_was(desk: Desk, call: str, act, monkeypatch):
    fill(desk, "claude", "project", "two_spaces")
    empty = desk.snapshot()
    if act is undoing:
        desk.setup("claude", "project").data  # noqa: B018
    before = desk.snapshot()
    outcomes = []
    for number in range(1, 60):
        with desk.entered(), monkeypatch.context() as patch:
            failing(call, number, patch)
            try:
                act("claude", "project")
                outcomes.append("")
            except InboxOrchError as error:
                outcomes.append(error.code)
        if desk.snapshot() != before:
            # What was to be taken back is, and only the record could not be removed.
            assert outcomes[-1] == "" or act is undoing
            break

    assert set(outcomes) <= {"disk_full", ""}
    with desk.entered():
        undoing("claude", "project")
    assert desk.snapshot() == empty


@pytest.mark.parametrize("act", [installing, undoing])
def test_what_another_writes_meanwhile_is_not_lost(desk: Desk, act, monkeypatch):
    fill(desk, "claude", "project", "two_spaces")
    if act is undoing:
        desk.setup("claude", "project").data  # noqa: B018
    before, rules, put = desk.snapshot(), desk.project / "CLAUDE.md", files.put

    def interrupted(path, content, mode):
        put(path, content, mode)
        if path.endswith("settings.json"):  # which is written before the rules are
            rules.write_text("Mine.\n")

    monkeypatch.setattr(run_module, "put", interrupted)
    with desk.entered(), pytest.raises(InboxOrchError) as refused:
        act("claude", "project")

    assert refused.value.code == "busy"
    assert rules.read_text() == "Mine.\n"
    rules.write_bytes(before[str(rules)][2])
    assert desk.snapshot() == before


@pytest.mark.parametrize("kind", ["folder", "pipe"])
def test_what_is_no_file_is_one_error(desk: Desk, kind: str):
    path = desk.project / "CLAUDE.md"
    path.mkdir() if kind == "folder" else os.mkfifo(path)

    refused = desk.setup("claude", "project")

    assert refused.error["code"] == "usage"
    assert "is not a file" in refused.error["message"]
    assert not (desk.project / ".claude").exists()


def test_a_file_where_a_folder_is_needed_is_one_error(desk: Desk):
    (desk.project / ".claude").write_text("x")

    refused = desk.setup("claude", "project")

    assert refused.error["code"] == "usage"
    assert not (desk.project / ".mcp.json").exists()


# -- links ----------------------------------------------------------------------------------


def test_a_link_to_nowhere_is_one_error(desk: Desk):
    (desk.project / "CLAUDE.md").symlink_to("nowhere.md")
    before = desk.snapshot()

    refused = desk.setup("claude", "project")

    assert refused.error["code"] == "unsafe_link"
    assert str(desk.project / "CLAUDE.md") in refused.error["message"]
    assert desk.snapshot() == before


@pytest.mark.parametrize("link", ["file", "folder"])
def test_no_link_leads_out_of_a_project(desk: Desk, tmp_path: Path, link: str):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "settings.json").write_text("{}")
    claude = desk.project / ".claude"
    if link == "folder":
        claude.symlink_to(elsewhere)
    else:
        claude.mkdir()
        (claude / "settings.json").symlink_to(elsewhere / "settings.json")

    refused = desk.setup("claude", "project")

    assert refused.error["code"] == "unsafe_link"
    assert (elsewhere / "settings.json").read_text() == "{}"
    assert [path.name for path in elsewhere.iterdir()] == ["settings.json"]


def test_nothing_is_taken_out_behind_a_link_that_was_put_there_since(desk: Desk, tmp_path: Path):
    desk.setup("claude", "project").data  # noqa: B018
    rules = desk.project / "CLAUDE.md"
    elsewhere = tmp_path / "elsewhere.md"
    elsewhere.write_text(rules.read_text())
    rules.unlink()
    rules.symlink_to(elsewhere)
    before = desk.snapshot()

    refused = desk.setup("claude", "project", "--undo")

    assert refused.error["code"] == "unsafe_link"
    assert "inbox setup: begin" in elsewhere.read_text()
    assert desk.snapshot() == before


def test_a_link_in_the_home_folder_stays_one(desk: Desk, tmp_path: Path):
    dotfiles = tmp_path / "dotfiles"
    dotfiles.mkdir()
    (dotfiles / "settings.json").write_text('{"a": 1}\n')
    (desk.home / ".claude").mkdir()
    (desk.home / ".claude/settings.json").symlink_to(dotfiles / "settings.json")
    before = desk.snapshot()

    desk.setup("claude", "user").data  # noqa: B018
    assert "inbox hook stop" in (dotfiles / "settings.json").read_text()
    assert (desk.home / ".claude/settings.json").is_symlink()

    desk.setup("claude", "user", "--undo").data  # noqa: B018
    assert (dotfiles / "settings.json").read_text() == '{"a": 1}\n'
    assert desk.snapshot() == before


def test_instructions_that_are_a_link_to_those_of_others_get_the_lines_once(desk: Desk):
    (desk.project / "AGENTS.md").write_text("# Rules\n")
    (desk.project / "CLAUDE.md").symlink_to("AGENTS.md")
    before = desk.snapshot()

    desk.setup("claude", "project").data  # noqa: B018
    desk.setup("codex", "project").data  # noqa: B018

    assert (desk.project / "AGENTS.md").read_text().count("inbox setup: begin") == 1
    for agent in ("claude", "codex"):
        desk.setup(agent, "project", "--undo").data  # noqa: B018
    assert desk.snapshot() == before


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
