"""`inbox setup` beside what others have written: what it does not know for its own it never
touches, and what it cannot do whole it does not begin."""

import errno
import json
import os
from pathlib import Path

import pytest

from inbox_orch.inbox.setup import files
from inbox_orch.inbox.setup import run as run_module
from inbox_orch.shared.errors import InboxOrchError
from support.setups import Desk, fill, installing, make_desk, states, undoing


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return make_desk(tmp_path)


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
