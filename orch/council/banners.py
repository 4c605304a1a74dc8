"""How independent the seats of a council were: of one model, or answered by one agent."""

from collections.abc import Collection, Sequence

from .model import Seat


def hands(seats: Sequence[Seat]) -> dict[str, tuple[str, ...]]:
    """The seats of each agent that spoke for more than one, in a round or in both."""
    found: dict[str, list[str]] = {}
    for seat in seats:
        spoke = {seat.agent if seat.valid else None, seat.voter} - {None}
        for agent in spoke:
            found.setdefault(str(agent), []).append(seat.reviewer)
    return {agent: tuple(found[agent]) for agent in sorted(found) if len(found[agent]) > 1}


def independent(reviewers: Collection[str], seats: Sequence[Seat]) -> int:
    """How many of these reviewers can have come to it by themselves: seats that one agent spoke
    for count as one."""
    group_of = {reviewer: reviewer for reviewer in reviewers}
    for shared in hands(seats).values():
        merged = {group_of[reviewer] for reviewer in shared if reviewer in group_of}
        for reviewer, name in group_of.items():
            if name in merged:
                group_of[reviewer] = min(merged)
    return len(set(group_of.values()))


def banners_of(seats: Sequence[Seat]) -> tuple[str, ...]:
    """What is said above everything else."""
    return (*_of_one_model(seats), *_of_one_agent(seats))


def _of_one_agent(seats: Sequence[Seat]) -> tuple[str, ...]:
    return tuple(
        f"{' and '.join((', '.join(names[:-1]), names[-1]))} were answered by one agent ({agent}): "
        "not independent. What they agree on is the word of one."
        for agent, names in hands(seats).items()
    )


def _of_one_model(seats: Sequence[Seat]) -> tuple[str, ...]:
    models = [seat.reply.model for seat in seats if seat.valid and seat.reply is not None]
    if len(models) > 1 and models[0] is not None and len(set(models)) == 1:
        return (f"All {len(models)} replies come from one model ({models[0]}): not independent.",)
    return ()
