"""Runs whose changes are judged: what tests say in a line about them."""

from inbox_orch.orch.leader import care_rows, event_folding
from inbox_orch.orch.runs.config import Config
from inbox_orch.orch.stages.decide import Answered
from inbox_orch.orch.views import patches as views
from support.runs import Site, commit


def disagreements(site: Site) -> list[str]:
    with site.scheduler.database.snapshot() as snapshot:
        folded = event_folding.fold(care_rows.facts(snapshot))
        return event_folding.differences(folded, care_rows.stored(snapshot))


class Plain:
    """A run, with one task `a` that is handed out as often as there are tries."""

    def __init__(self, site: Site) -> None:
        self.site = site

    def open(self, policy: dict | None = None, **options) -> "Plain":
        config = {} if policy is None else {"config": Config(policy=policy)}
        self.run = self.site.open_run(**config)
        self.site.add(self.run, "a", **options)
        return self

    def handed_in(self, **files: str) -> str:
        """A worker commits each of the files; the newest commit."""
        self.item = self.site.dispatch(self.run)["a"]
        head = ""
        for name, content in files.items():
            head = commit(self.item["worktree"], name.replace("_", "."), content)
        self.site.done(self.item)
        return head

    def lead(self) -> None:
        self.site.scheduler.reconcile(self.run)

    def decide(self, answer: str, hint: str = "", by: str | None = None) -> None:
        leader = self.site.leader(by)
        leader.answer(self.run, "a", body=hint, decided=Answered(answer, hint))
        self.lead()

    @property
    def attempt(self):
        return self.site.attempts(self.run, "a")[-1]

    @property
    def state(self) -> str:
        return self.site.task(self.run, "a").state

    def patches(self) -> list[views.Listed]:
        return views.listed(self.site.scheduler.desk, self.run)

    def said(self, number: int = 0) -> list[str]:
        return [f"{e.kind} {e.outcome}" for e in self.patches()[number].entries]
