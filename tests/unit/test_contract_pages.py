"""The pages of the contract leave nothing out: every error code, every variable."""

import ast
import re
import runpy
from pathlib import Path

from inbox_orch.shared.errors import EXIT_CODES, EXIT_MEANINGS, error_codes

ROOT = Path(__file__).resolve().parents[2]
PAGES = runpy.run_path(str(ROOT / "script" / "_contract_pages.py"))
SOURCES = [
    path.read_text()
    for folder in ("inbox", "orch", "shared", "migrations")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if path != ROOT / "shared" / "contract.py"
]


def test_every_error_code_has_its_meaning():
    assert all(each.meaning for each in error_codes().values())
    assert list(error_codes()) == list(EXIT_CODES)


def test_every_exit_code_of_an_error_is_in_the_table():
    assert set(EXIT_CODES.values()) <= set(EXIT_MEANINGS)


def test_every_code_that_is_raised_is_in_the_table():
    raised = re.findall(r"InboxOrchError\(\s*\"(\w+)\"", "\n".join(SOURCES))
    assert raised
    assert set(raised) <= set(EXIT_CODES)


def test_every_refusal_says_what_to_do_next():
    """A wrong call without a hint gets one from the command that was called."""
    silent = []
    for source in SOURCES:
        for call in ast.walk(ast.parse(source)):
            name = getattr(getattr(call, "func", None), "id", None)
            if name in ("InboxOrchError", "not_found") and "hint" not in {
                keyword.arg for keyword in call.keywords
            }:
                silent.append(ast.get_source_segment(source, call))
    assert silent == []


def test_every_variable_that_is_read_or_given_is_on_the_page():
    named = set(re.findall(r"\"((?:INBOX|ORCH)_[A-Z_]+)\"", "\n".join(SOURCES)))
    assert {"INBOX_DB", "INBOX_RESULT"} <= named
    assert named <= set(PAGES["VARIABLES"]) | set(PAGES["FOR_COMMANDS"]) | set(PAGES["FOR_CHECKS"])


def test_the_page_names_no_variable_that_nobody_reads():
    text = "\n".join(SOURCES)
    listed = set(PAGES["VARIABLES"]) | set(PAGES["FOR_COMMANDS"]) | set(PAGES["FOR_CHECKS"])
    # COLUMNS is read by the standard library.
    assert [name for name in sorted(listed - {"COLUMNS"}) if name not in text] == []


def test_the_first_five_variables_are_those_that_claim_exports():
    assert list(PAGES["VARIABLES"])[:5] == [
        "INBOX_DB",
        "INBOX_DB_ID",
        "INBOX_AGENT",
        "INBOX_THREAD",
        "INBOX_TOKEN",
    ]
