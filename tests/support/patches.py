"""Runs whose changes are judged: what tests say in a line about them."""

from inbox_orch.orch.leader import care_rows, event_folding
from inbox_orch.orch.runs.config import Config
from inbox_orch.orch.stages.decide import Answered
from inbox_orch.orch.views import patches as views
from support.runs import Site, commit, git
from support.stages import Course, add

POLICY = {"max_lines": 4, "ask_paths": ["ci.yml"], "forbid_paths": ["no.txt"]}


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


class Staged(Course):
    """A run with a policy, and one attempt on its way."""

    def open(self, *stages, policy: dict | None = POLICY, **options) -> "Staged":
        self.run = self.site.open_run(config=Config(policy=policy, gates=options.pop("gates", ())))
        add(self.site, self.run, "a", *stages, **options)
        self.site.dispatch(self.run)
        self.lead()
        return self

    def decide(self, answer: str, hint: str = "", by: str = "boss", rule: str | None = None):
        leader = self.site.leader(by)
        given = Answered(answer, hint, None, rule)
        data = leader.answer(self.run, "a", body=hint, decided=given)
        self.lead()
        return data

    @property
    def state(self) -> str:
        return self.site.task(self.run, "a").state

    def patches(self) -> list[tuple[str, str]]:
        found = views.listed(self.site.scheduler.desk, self.run)
        return [(each.patch.way, each.state) for each in found]

    def changed(self, revision: str | None = None) -> list[str]:
        base = str(self.attempt.base_commit)
        head = revision or str(self.attempt.head_commit)
        return git(self.site.repository, "diff", "--name-only", base, head).split()
