"""Makes docs/reference/hand-in.md: what becomes of a change that is handed in as text. Its cases
are those that the tests hold orch to (tests/data/patches.toml).
"""

import tomllib
from pathlib import Path
from typing import Any

from inbox_orch.orch.git.unified import MAX_TEXT_BYTES
from inbox_orch.orch.patches.given import MOST_EDITS, SHAPES
from inbox_orch.orch.patches.vocabulary import ERRORS

ROOT = Path(__file__).resolve().parent.parent
CODES = ("patch_format", "patch_does_not_apply", "edit_not_found", "edit_ambiguous")
PAGE = """\
<!-- Made by script/reference. Change tests/data/patches.toml, not this page. -->

# Changes as text

A worker that has no files, or somebody who was not asked, hands in a diff or edits:

- in a result of a task with `hands_in: text` (`orch task add --hands-in text`), or of a stage with
  it: `{{"patch": DIFF}}` or `{{"edits": [EDIT, ...]}}` as its payload (`inbox done
  --payload-file`), or the name of an attached file, as `{{"patch": {{"artifact": NAME}}}}`;
- by `orch patch submit FILE --task KEY`; `orch patch check FILE` says before what would become of
  it.

A diff is what `git diff` prints, and nothing else. Names begin with `a/` and `b/` and count from
the top. An edit is one of `{shapes}`: `old` is in the
file exactly once, byte for byte but for the ends of its lines. At most {most} edits, and
{bytes:,} bytes. What is handed in becomes a tree; that is judged by the policy, and only then
brought into the worktree, in a commit of who wrote it. Nothing that lies there is written over,
ignored or not.

What can be mended without a doubt is, and noted with the patch: the end of the last line, wrong
counts in the heads of hunks, line ends that are not those of the file, a hunk that is found at
another line. A hunk without any context is taken at its line or not at all. The text stays as it
came, whatever becomes of it (`orch patch export`).

| error | exit | when |
|---|---|---|
{errors}
## Case by case

*taken*: it goes on; *asked* and *denied*, by which rule, is what the built-in policy says.
{groups}
## How long files stay

What is kept beside the database has references of its own, which `inbox prune` asks.

| file | stays |
|---|---|
| a diff, or edits, as handed in | as long as the database |
| outputs of gates and actions of a blueprint | until its run is closed, and then as `prune` says |
| outputs of checks, files that workers attach | with their thread |
"""


def pages() -> dict[Path, str]:
    """The page by its path."""
    table = tomllib.loads((ROOT / "tests" / "data" / "patches.toml").read_text("utf-8"))
    groups = [
        f"\n### {group['title']}\n\n| handed in | comes to | |\n|---|---|---|\n"
        + "".join(map(_row, group["cases"]))
        for group in table["group"]
    ]
    errors = [f"| `{c}` | {ERRORS[c].exit_code} | {ERRORS[c].meaning} |\n" for c in CODES]
    text = PAGE.format(
        shapes=SHAPES,
        most=MOST_EDITS,
        bytes=MAX_TEXT_BYTES,
        errors="".join(errors),
        groups="".join(groups),
    )
    return {ROOT / "docs" / "reference" / "hand-in.md": text}


def _row(case: dict[str, Any]) -> str:
    verdict, _, rule = case["verdict"].partition(" ")
    shown = f"{verdict} (`{rule}`)" if rule else f"`{verdict}`" if verdict in CODES else verdict
    about = f"noted: {case['noted']}" if "noted" in case else case.get("said", "")
    return f"| {case['name']} | {shown} | {about.replace('|', ' ')} |\n"
