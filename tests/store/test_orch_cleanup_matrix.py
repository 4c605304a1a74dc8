"""The clean-up matrix: every predicament of a worktree by {plain, --force, --dry-run}.

    script/test -n 0 -s tests/store/test_orch_cleanup_matrix.py

prints the table of what happened. After each cell the trash is emptied, git collects its garbage
at once, and what had existed only in the worktree is looked for among all that is left.
"""

import sys
from collections.abc import Iterator

import pytest

from inbox_orch.orch.git import salvage
from support.predicaments import KEPT, PREDICAMENTS, REMOVED, Row, Scene, contents, gc, picture
from support.runs import Site, branches, git, lock_files, worktree_paths

MODES = {"plain": {}, "--force": {"force": True}, "--dry-run": {"dry_run": True}}
_happened: dict[str, dict[str, str]] = {}


@pytest.fixture(scope="module", autouse=True)
def table() -> Iterator[None]:
    yield
    width = max(map(len, PREDICAMENTS))
    rows = [("", dict(zip(MODES, MODES, strict=True))), *_happened.items()]
    for name, cells in rows:
        row = "".join(f"{cells.get(mode, ''):30}" for mode in MODES)
        sys.stdout.write(f"\n{name:{width}}  {row}".rstrip())


@pytest.fixture
def scene(site: Site) -> Iterator[Scene]:
    made = Scene(site)
    yield made
    made.close()


def expected_action(row: Row, mode: str) -> str:
    if mode == "--dry-run":
        return KEPT if row.plain == KEPT else "would_remove"
    return row.forced if mode == "--force" else row.plain


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", PREDICAMENTS)
def test_what_becomes_of_a_worktree(scene: Scene, name: str, mode: str):
    row, site = PREDICAMENTS[name], scene.site
    row.arrange(scene)
    before = picture(site, scene.run)

    cleaned = site.scheduler.cleanup(scene.run, **MODES[mode])

    item = next(item for item in cleaned.items if item.key == "a")
    codes = [reason.code for reason in item.reasons]
    _happened.setdefault(name, {})[mode] = _told(item, codes)
    assert item.action == expected_action(row, mode), item
    assert codes[:1] == ([] if row.reason is None else [row.reason]), item
    if item.action == REMOVED:
        check_removed(scene, row, item)
    else:
        assert item.salvage is None
        assert picture(site, scene.run) == before
    gc(site)
    left = b"\0".join(contents(site))
    for content in scene.precious:
        assert content in left, f"{content!r} is nowhere any more"
    git(site.repository, "fsck", "--strict")


def _told(item, codes: list[str]) -> str:
    what = item.action + (", salvaged" if item.salvage else "")
    return what + (f" ({codes[0]})" if codes and item.action == KEPT else "")


def check_removed(scene: Scene, row: Row, item) -> None:
    site = scene.site
    assert str(scene.worktree) not in worktree_paths(site.repository)
    assert not scene.worktree.exists()
    assert (item.salvage is not None) == row.salvaged
    ref = git(
        site.repository, "for-each-ref", "--format=%(objectname)", salvage.ref_of(item.attempt.id)
    )
    assert ref == (item.salvage or "")
    assert (scene.item["branch"] not in branches(site.repository)) == row.branch_goes
    (attempt,) = site.attempts(scene.run, "a")
    assert attempt.removed_at is not None
    assert attempt.salvage_commit == item.salvage
    assert site.open_intents(scene.run) == []
    assert lock_files(site.repository / ".git", site.worktrees) == []
    assert site.scheduler.cleanup(scene.run, force=True).items == (), "a second run does nothing"
    assert site.scheduler.doctor(verify=True).problems == 0
