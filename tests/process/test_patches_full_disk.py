"""A disk without room where a patch is judged, decided about, taken back, or a secret purged: one
clear error, nothing half done, and the same call finishes it once there is room."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from inbox_orch.orch.attempts import fold
from inbox_orch.orch.leader import patches as deeds
from inbox_orch.shared.errors import InboxOrchError
from support.accepted import patch_of
from support.disks import filled, small_disk
from support.ledgers import dump
from support.patches import Plain, disagreements
from support.runs import Site, git

ASKING = {"ask_paths": ["ci.yml"]}
TWO = {"max_files": 1}
SECRET = "s3cr3t-k3y-0f-ours"


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with small_disk(tmp_path_factory.mktemp("small") / "disk") as made:
        yield made


class Short:
    """A project on a disk that runs full."""

    def __init__(self, disk: Any, name: str) -> None:
        self.disk, self.folder = disk, Path(disk.path) / name
        self.folder.mkdir()
        self.site = Site(self.folder)
        self.plain = Plain(self.site)

    def standing(self) -> tuple[object, ...]:
        refs = git(self.site.repository, "for-each-ref")
        return dump(self.site.office.path), refs, git(self.site.repository, "status", "--porcelain")

    def refused(self, deed: Callable[[], object], *, changes: bool = False) -> None:
        """It says what is wrong, and nothing was done."""
        before = self.standing()
        with (
            self.disk.full(),
            filled(self.folder / "filler"),
            pytest.raises(InboxOrchError) as caught,
        ):
            deed()
        assert caught.value.code == "disk_full"
        assert caught.value.hint
        assert changes or self.standing() == before
        assert disagreements(self.site) == []

    def say(self, deed: Callable[..., object], *words: str) -> object:
        desk = self.site.leader("boss").desk
        return deed(desk, self.plain.run, self.plain.patches()[0].patch, *words)


@pytest.fixture
def short(disk: Any, request: pytest.FixtureRequest) -> Iterator[Short]:
    made = Short(disk, request.node.name.replace("[", "-").rstrip("]"))
    yield made
    assert disagreements(made.site) == []
    assert made.site.scheduler.doctor(verify=True).problems == 0
    git(made.site.repository, "fsck", "--strict")
    made.site.close()


@pytest.mark.parametrize("policy, ends", [(None, "succeeded"), (TWO, "failed")])
def test_what_could_not_be_judged_is_judged_by_the_next_call(short: Short, policy, ends):
    short.plain.open(policy, max_attempts=1).handed_in(a_txt="one\n", b_txt="two\n")
    fold.fold(short.site.scheduler.desk, short.plain.run)
    short.refused(short.plain.lead)
    assert (short.plain.attempt.state, short.plain.patches()) == ("submitted", [])

    short.plain.lead()
    assert short.plain.state == ends
    assert len(short.plain.patches()) == 1


@pytest.mark.parametrize(
    "deed, ends", [(deeds.approve, "succeeded"), (deeds.refuse, "failed")], ids=["yes", "no"]
)
def test_what_could_not_be_answered_is_still_asked(short: Short, deed, ends):
    short.plain.open(ASKING, max_attempts=1).handed_in(ci_yml="on: push\n")
    short.plain.lead()
    short.refused(lambda: short.say(deed, "so"))
    assert short.plain.said() == ["policy asked"]

    short.say(deed, "so")
    short.plain.lead()
    assert short.plain.state == ends


def test_what_was_approved_comes_in_once_there_is_room(short: Short):
    short.plain.open(ASKING, max_attempts=1).handed_in(ci_yml="on: push\n")
    short.plain.lead()
    short.say(deeds.approve)
    short.refused(short.plain.lead)
    assert short.plain.said() == ["policy asked", "approval approved"]

    short.plain.lead()
    assert short.plain.state == "succeeded"
    assert short.plain.patches()[0].state == "committed"


def test_a_release_and_giving_up_are_written_down_or_not_done(short: Short):
    short.plain.open(TWO, max_attempts=1).handed_in(a_txt="one\n", b_txt="two\n")
    short.plain.lead()
    short.refused(lambda: short.say(deeds.release, "max_files", "both belong together"))
    short.refused(lambda: short.say(deeds.drop))
    assert short.plain.said() == ["policy denied"]

    short.say(deeds.release, "max_files", "both belong together")
    short.say(deeds.drop)
    assert short.plain.patches()[0].state == "dropped"


def test_a_rollback_is_done_by_the_next_call(short: Short):
    short.plain.open().handed_in(a_txt="one\n")
    short.plain.lead()
    patch_of(short.site, short.plain.run, "a")
    short.site.scheduler.integrate(short.plain.run)
    short.refused(lambda: short.site.scheduler.patch_rollback(short.plain.run, "a/1/1"))

    short.site.scheduler.patch_rollback(short.plain.run, "a/1/1")
    assert short.plain.patches()[0].state == "rolled_back"


def test_a_purge_is_done_by_the_next_call(short: Short):
    short.plain.open({"forbid_paths": ["*.key"]}, max_attempts=1).handed_in(a_key=SECRET)
    short.plain.lead()
    short.site.scheduler.cleanup(short.plain.run, force=True)
    bus = short.site.worker
    bus.send(to="w2", subject="s", body=f"it is {SECRET}")
    # What could be done before there was no room stays done.
    short.refused(lambda: short.site.scheduler.purge([SECRET], yes=True), changes=True)

    done = short.site.scheduler.purge([SECRET], yes=True)
    assert {place.kind for place in done.left} == {"unreachable_objects"}
    short.site.close()
    content = b"".join(
        path.read_bytes() for path in short.site.office.path.parent.rglob("*") if path.is_file()
    )
    assert SECRET.encode() not in content
    short.site.scheduler = short.site.leader()
