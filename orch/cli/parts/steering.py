"""How runs and tasks look after they were steered."""

from collections.abc import Sequence

from inbox_orch.shared.shell.blocks import Block, Sentence

from ...attempts.govern import Governed
from ...attempts.steer import Steered


def governed(word: str, done: Governed) -> list[Block]:
    """What became of a run; `word` is how that is called, like `Closed`."""
    name = done.run.name
    text = f"Run {name} was {done.run.state} already" if done.already else f"{word} run {name}"
    if done.run.state == "closed":
        text += f": {done.outcome}"
    blocks: list[Block] = [Sentence(text, (name, done.run.state, done.outcome))]
    return blocks + _named("cancelled", done.cancelled) + _still_ending(done.ending)


def steered(word: str, done: Steered) -> list[Block]:
    """What became of tasks; `word` is how that is called, like `Skipped`."""
    blocks: list[Block] = []
    for task in done.tasks:
        already = task.key in done.already
        text = f"{task.key} was {word.lower()} already" if already else f"{word} {task.key}"
        blocks.append(Sentence(text, (task.key, task.state, task.mailbox)))
    blocks += _still_ending(done.ending)
    if done.left_behind:
        shown = ", ".join(done.left_behind)
        text = f"Not committed there, and so not taken along: {shown}"
        blocks.append(Sentence(text, ("left_behind", done.left_behind)))
    return blocks


def _still_ending(keys: Sequence[str]) -> list[Block]:
    if not keys:
        return []
    text = f"Its worker has still to learn of it: {', '.join(keys)}"
    return [Sentence(text, ("ending", tuple(keys)))]


def _named(word: str, keys: Sequence[str]) -> list[Block]:
    if not keys:
        return []
    return [Sentence(f"{word.capitalize()}: {', '.join(keys)}", (word, tuple(keys)))]
