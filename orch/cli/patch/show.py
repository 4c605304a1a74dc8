"""`orch patch show`."""

from collections.abc import Iterator, Mapping

import click

from inbox_orch.shared.clock import rfc3339
from inbox_orch.shared.shell.blocks import Facts, harmless
from inbox_orch.shared.shell.commandline import Verb, shell_of

from ...patches.policy import naming_rule
from ...views import patches as views
from ...views.patches import Listed
from ..parts.base import open_scheduler, run_option, tell_of_last


@click.command(
    "show",
    cls=Verb,
    agent=True,
    examples=("orch patch show parser/1/2", "orch patch show parser/1/2 --diff"),
)
@run_option
@click.option("--diff", is_flag=True, help="Print what it changes, as git does, and nothing else.")
@click.argument("patch", metavar="PATCH")
@click.pass_context
def command(context: click.Context, run_name: str | None, diff: bool, patch: str) -> None:
    """Show one patch: what it changes, what the policy has against it, and how to be allowed.

    PATCH is KEY/ATTEMPT/NUMBER, or an id, or the beginning of one. A diff has known secrets masked,
    and at most 1 MiB of it is shown.
    """
    scheduler = open_scheduler(context, looks=True)
    run, found = views.named(scheduler.desk, patch, run_name, shows=True)
    if run_name is None and "/" in patch:
        tell_of_last(context, run)
    output = shell_of(context).output
    data = {"patch": found.as_json(), "entries": [each.as_json() for each in found.entries]}
    if not diff:
        names = views.names_of(scheduler.desk, (found.patch.replaces, found.patch.rollback_of))
        output.result(data, Facts(tuple(_rows(found, names))))
        return
    text, cut = views.diff_of(scheduler.desk, run, found)
    if output.as_json:
        output.result({**data, "diff": text, "diff_truncated": cut})
        return
    output.text(harmless(text, lines=True) if output.terminal else text)
    if cut:
        output.notice(f"it is longer: git diff {found.patch.base} {found.patch.head} has all of it")


def _rows(found: Listed, names: Mapping[str, str]) -> Iterator[tuple[str, object]]:
    patch = found.patch
    rows: tuple[tuple[str, object], ...] = (
        ("patch", found.name),
        ("id", patch.id),
        ("state", found.state),
        ("changes", found.size),
        ("author", patch.author),
        ("came as", patch.way),
        ("base", patch.base),
        ("head", patch.head),
        ("tree", patch.tree),
        ("replaces", names.get(patch.replaces or "")),
        ("undoes", names.get(patch.rollback_of or "")),
        ("handed in", rfc3339(patch.created_at)),
    )
    yield from (row for row in rows if row[1] is not None)
    for path in patch.summary.paths:
        yield "file", path
    for note in patch.summary.notes:
        yield "note", note
    for each in found.objections:
        yield each["outcome"], naming_rule(each["rule"], each["layer"], each["text"])
        yield "to be allowed", each["remedy"]
    for line in found.lines:
        yield "said", line
