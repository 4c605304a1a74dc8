"""The output contract of `orch` as models: what `orch schema` prints and the tests hold.

What both commands have in common comes from the models of the bus. Like those, these are never
loaded by the other commands, and know nothing of the database.
"""

from inbox_orch.inbox.schemas import (
    AllSchemas,
    CommandSchema,
    Completion,
    Examined,
    Help,
    OneSchema,
    Primed,
    Shown,
    SkillInstalled,
    SkillPrinted,
    Toolset,
    Version,
)

from . import steering
from .blueprints import BlueprintExplained, BlueprintGraph, BlueprintList, BlueprintShown
from .charts import CriticalPath, Graph, Report, Timeline
from .checkpoints import (
    CheckpointList,
    CheckpointMade,
    CheckpointRestored,
    CheckpointShown,
)
from .cleanup import AttemptList, AttemptRestored, AttemptShown, Cleaned
from .council import (
    Advised,
    BallotOpened,
    CouncilDemonstrated,
    CouncilList,
    CouncilShown,
    CouncilStarted,
    Reported,
    Settled,
    Suggested,
    Tallied,
    Template,
)
from .driving import (
    ChangeLine,
    ConflictLine,
    DispatchedLine,
    Done,
    Driven,
    NoticeLine,
    QuestionLine,
    Served,
    ServingLine,
)
from .envelope import Contract
from .gates import GateList, GatesRun
from .integration import Conflicts, Integrated
from .patches import (
    PatchChecked,
    PatchExported,
    PatchList,
    PatchLog,
    PatchRolledBack,
    PatchSaid,
    PatchShown,
    PatchSubmitted,
    RollbackHeld,
)
from .plans import PlanExported, PlanImported
from .policies import PolicyChecked, PolicyExplained, PolicyLinted, PolicyShown
from .purge import Purged
from .reading import (
    Changed,
    EventsTold,
    Logged,
    LogLine,
    RunEvent,
    TaskEdited,
    TaskList,
    TaskRemoved,
    Traced,
)
from .results import (
    Answered,
    Blocked,
    BriefStatus,
    Decided,
    Demonstrated,
    DependencyAdded,
    Dispatched,
    NotYet,
    Overview,
    Ready,
    Reconciled,
    RunList,
    RunOpened,
    RunShown,
    Status,
    TaskAdded,
    Waited,
)
from .verification import Adopted, WorkRejected

COMMANDS: dict[str, Contract] = {
    "orch": Contract((Overview, Version)),
    "do": Contract((Done,), (Done,)),
    "run init": Contract((RunOpened,)),
    "run list": Contract((RunList,)),
    "run show": Contract((RunShown,)),
    "task add": Contract((TaskAdded,)),
    "dep add": Contract((DependencyAdded,)),
    "plan import": Contract((PlanImported,)),
    "plan export": Contract((PlanExported,)),
    "blueprint list": Contract((BlueprintList,)),
    "blueprint show": Contract((BlueprintShown,)),
    "blueprint validate": Contract((BlueprintShown,)),
    "blueprint graph": Contract((BlueprintGraph,)),
    "blueprint explain": Contract((BlueprintExplained,)),
    "ready": Contract((Ready,)),
    "drive": Contract(
        (Driven,),
        (Driven,),
        lines=(DispatchedLine, ChangeLine, QuestionLine, ConflictLine, NoticeLine),
    ),
    "worker": Contract((Served,), (Served,), lines=(ServingLine,)),
    "dispatch": Contract((Dispatched,), (Dispatched,)),
    "status": Contract((Status, BriefStatus)),
    "wait": Contract((Waited,), (Waited, NotYet)),
    "blocked": Contract((Blocked,)),
    "answer": Contract((Answered, Decided)),
    "integrate": Contract((Integrated,), (Integrated,)),
    "conflicts": Contract((Conflicts,)),
    "cleanup": Contract((Cleaned,), (Cleaned,)),
    "purge": Contract((Purged,), (Purged,)),
    "attempt list": Contract((AttemptList,)),
    "attempt show": Contract((AttemptShown,)),
    "attempt restore": Contract((AttemptRestored,)),
    "patch check": Contract((PatchChecked,), (PatchChecked,)),
    "patch submit": Contract((PatchSubmitted,), (PatchSubmitted,)),
    "patch list": Contract((PatchList,)),
    "patch show": Contract((PatchShown,)),
    "patch log": Contract((PatchLog,)),
    "patch approve": Contract((PatchSaid,)),
    "patch refuse": Contract((PatchSaid,)),
    "patch release": Contract((PatchSaid,)),
    "patch drop": Contract((PatchSaid,)),
    "patch export": Contract((PatchExported,)),
    "checkpoint list": Contract((CheckpointList,)),
    "checkpoint show": Contract((CheckpointShown,)),
    "checkpoint make": Contract((CheckpointMade,)),
    "checkpoint restore": Contract((CheckpointRestored,)),
    "patch rollback": Contract((PatchRolledBack,), (RollbackHeld,)),
    "gate list": Contract((GateList,)),
    "gate run": Contract((GatesRun,), (GatesRun,)),
    "policy show": Contract((PolicyShown,)),
    "policy explain": Contract((PolicyExplained,)),
    "policy check": Contract((PolicyChecked,), (PolicyChecked,)),
    "policy lint": Contract((PolicyLinted,)),
    "graph": Contract((Graph,)),
    "critical-path": Contract((CriticalPath,)),
    "show": Contract((RunShown, steering.TaskShown, AttemptShown, Shown)),
    "task edit": Contract((TaskEdited,)),
    "task remove": Contract((TaskRemoved,)),
    "task list": Contract((TaskList,)),
    "diff": Contract((Changed,)),
    "logs": Contract((Logged,), lines=(LogLine,)),
    "events": Contract((EventsTold,), lines=(RunEvent,)),
    "trace": Contract((Traced,)),
    "board": Contract(()),
    "timeline": Contract((Timeline,)),
    "report": Contract((Report,)),
    "prime": Contract((Primed,)),
    "skill print": Contract((SkillPrinted,)),
    "skill install": Contract((SkillInstalled,)),
    "mcp": Contract((Toolset,)),
    "completion": Contract((Completion,)),
    "council ask": Contract((Advised,), (Advised,)),
    "council start": Contract((CouncilStarted,)),
    "council wait": Contract((CouncilShown,), (CouncilShown,)),
    "council tally": Contract((Tallied,), (Tallied,)),
    "council report": Contract((Reported,), (Reported,)),
    "council ballot": Contract((BallotOpened,)),
    "council group merge": Contract((Settled,)),
    "council group split": Contract((Settled,)),
    "council group dismiss": Contract((Settled,)),
    "council group note": Contract((Settled,)),
    "council suggest": Contract((Suggested,)),
    "council apply": Contract((Settled,)),
    "council show": Contract((CouncilShown,)),
    "council list": Contract((CouncilList,)),
    "council template": Contract((Template,)),
    "council demo": Contract((CouncilDemonstrated,), (CouncilDemonstrated,)),
    "doctor": Contract((Examined,), (Examined,)),
    "adopt": Contract((Adopted,), (WorkRejected,)),
    "reconcile": Contract((Reconciled,)),
    "schema": Contract((OneSchema, AllSchemas)),
    "demo": Contract((Demonstrated,), (Demonstrated,)),
    **steering.COMMANDS,
    "help": Contract((Help,)),
}


def command_schema(name: str) -> CommandSchema:
    """The JSON Schema (draft 2020-12) of a command's output; KeyError for an unknown one."""
    contract = COMMANDS[name]
    document = contract.adapter().json_schema()
    return CommandSchema(
        id=name,
        stream=contract.stream,
        json_schema={
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": "orch" if name == "orch" else f"orch {name}",
            **document,
        },
    )
