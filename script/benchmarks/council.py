"""Councils: how well recommendations are grouped on labelled sets, beside merging nothing and other
versions, and how long it takes."""

import argparse
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

from common import machine, parser, report, say, table
from council_sets import LOOKED_AT, SETS, every_set, outcome, outcomes

from inbox_orch.orch.council.model import Council
from inbox_orch.orch.council.report import markdown
from inbox_orch.orch.council.tally import canonical, tally
from support.councils import council_of, labelled, opposed_topics

LIMITS = {
    "pair_precision": 0.95,
    "b_cubed_f1": 0.93,
    "opposed_merged": 0,
    "false_agreements": 2,
    "missed_agreements": 0.1,
    "seconds_of_66": 0.5,
    "seconds_of_150": 3.0,
}
PROSE_LIMITS = {"pair_precision": 0.9, "missed_agreements": 1 / 6, "false_oppositions": 0}
"""Of all sets for the verdict together."""

HASH_SEEDS = ("0", "1", "4242")

Groups = Sequence[Sequence[str]]


def main() -> None:
    """Measure, and report; or print the bytes of one shuffle."""
    options_parser = parser(__doc__.splitlines()[0])
    options_parser.add_argument("--shuffles", type=int, default=100)
    options_parser.add_argument("--digest", metavar="SEED", help=argparse.SUPPRESS)
    options_parser.add_argument(
        "--also",
        action="append",
        default=[],
        metavar="PYTHON",
        help="measure the version that this interpreter has installed as well; repeatable",
    )
    options = options_parser.parse_args()
    if options.digest is not None:
        sys.stdout.buffer.write(bytes_of(int(options.digest)))
        return
    if options.quick:
        options.shuffles = 3
    figures = measure(options.shuffles, options.also)
    report(options, figures, as_text(figures))
    sys.exit(0 if figures["holds"] else 1)


def measure(shuffles: int, also: Sequence[str] = ()) -> dict[str, Any]:
    """Quality by set and in all, the same bytes, the time."""
    rows = every_quality(also)
    ours = {row["set"]: row for row in rows if row["method"] == "tally"}
    pooled = pool([ours[name] for name in SETS])
    prose = [row for name, row in ours.items() if name not in SETS]
    unseen = [row for name, row in ours.items() if name not in LOOKED_AT]
    say(f"the bytes of {shuffles} shuffles and {len(HASH_SEEDS)} hash seeds")
    different = len(outputs(shuffles))
    speed = {str(number): seconds_of(number) for number in (66, 150)}
    holds = (
        pooled["pair_precision"] >= LIMITS["pair_precision"]
        and pooled["b_cubed_f1"] >= LIMITS["b_cubed_f1"]
        and pooled["opposed_merged"] == 0
        and pooled["false_agreements"] <= LIMITS["false_agreements"]
        and pooled["missed_share"] <= LIMITS["missed_agreements"]
        and different == 1
        and not any(row["false_oppositions"] for row in ours.values())
        and keeps_prose_limits(unseen)
    )
    return {
        "benchmark": "council",
        "machine": machine(),
        "limits": LIMITS,
        "prose_limits": PROSE_LIMITS,
        "sets": rows,
        "all": pooled,
        "prose": pool(prose) if prose else None,
        "unseen": pool(unseen) if unseen else None,
        "shuffles": shuffles,
        "hash_seeds": len(HASH_SEEDS),
        "different_outputs": different,
        "seconds": speed,
        "holds": holds,
    }


# -- quality -------------------------------------------------------------------------------


def every_quality(also: Sequence[str]) -> list[dict[str, Any]]:
    """Of every set, by ours, by other versions and without merging."""
    names = every_set()
    made = {"tally": outcomes(None, names)}
    made |= {f"tally of {python}": outcomes(python, names) for python in also}
    rows = []
    for name in names:
        rows += [judged_outcome(name, found[name], method) for method, found in made.items()]
        rows.append(quality(name, False))
    return rows


def keeps_prose_limits(rows: Sequence[dict[str, Any]]) -> bool:
    """Whether what is promised of prose that the method was not made with holds for these."""
    if not rows:
        return True
    pooled = pool(rows)
    return (
        pooled["pair_precision"] >= PROSE_LIMITS["pair_precision"]
        and pooled["missed_share"] <= PROSE_LIMITS["missed_agreements"]
        and pooled["false_oppositions"] == 0
    )


def quality(name: str, merging: bool) -> dict[str, Any]:
    """Of one set; without merging every item stays by itself."""
    if merging:
        return judged_outcome(name, outcome(name), "tally")
    items, _ = labelled(name)
    return judged(name, [[item.id] for item in items], "nothing merged")


def judged_outcome(name: str, found: Mapping[str, Any], method: str) -> dict[str, Any]:
    """How well a tally has done on a set, in groups and in what it calls opposed."""
    return judged(name, found["groups"], method, found["contested"])


def judged(
    name: str, groups: Groups, method: str, contested: Sequence[Sequence[str]] = ()
) -> dict[str, Any]:
    """How well a labelled set is grouped, whoever did it."""
    items, truth = labelled(name)
    precision, recall = b_cubed(groups, truth)
    together = set(pairs(groups))
    true = {pair for pair in combinations(sorted(truth), 2) if len({truth[i] for i in pair}) == 1}
    agreements = true_agreements(truth)
    return {
        "set": name,
        "method": method,
        "items": len(items),
        "pairs": len(together),
        "right_pairs": len(together & true),
        "b_cubed_f1": 2 * precision * recall / (precision + recall),
        "agreements": len(agreements),
        "missed_agreements": sum(not found(group, together, truth) for group in agreements),
        "false_agreements": sum(len({truth[i] for i in group}) > 1 for group in groups),
        "opposed_merged": opposed_merged(name, groups, truth),
        "contested": len(contested),
        "false_oppositions": false_oppositions(name, contested, truth),
    }


def pool(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """All sets together: pairs and agreements added up, B-cubed averaged."""
    total = {
        key: sum(row[key] for row in rows)
        for key in (
            *("pairs", "right_pairs", "agreements", "missed_agreements"),
            *("false_agreements", "opposed_merged", "contested", "false_oppositions"),
        )
    }
    return {
        **total,
        "pair_precision": total["right_pairs"] / max(1, total["pairs"]),
        "missed_share": total["missed_agreements"] / max(1, total["agreements"]),
        "b_cubed_f1": sum(row["b_cubed_f1"] for row in rows) / len(rows),
    }


def b_cubed(groups: Groups, truth: dict[str, str]) -> tuple[float, float]:
    """Mean precision and recall over the items (Bagga and Baldwin, 1998)."""
    precision = recall = 0.0
    for group in groups:
        for item in group:
            right = sum(truth[other] == truth[item] for other in group)
            precision += right / len(group)
            recall += right / sum(label == truth[item] for label in truth.values())
    return precision / len(truth), recall / len(truth)


def pairs(groups: Groups) -> Iterable[tuple[str, str]]:
    for group in groups:
        yield from combinations(sorted(group), 2)


def true_agreements(truth: dict[str, str]) -> list[str]:
    """Groups that more than one reviewer raised."""
    reviewers: dict[str, set[str]] = {}
    for item, group in truth.items():
        reviewers.setdefault(group, set()).add(item.split("/")[0])
    return sorted(group for group, names in reviewers.items() if len(names) > 1)


def found(group: str, together: set[tuple[str, str]], truth: dict[str, str]) -> bool:
    return any(truth[one] == truth[other] == group for one, other in together)


def opposed_merged(name: str, groups: Groups, truth: dict[str, str]) -> int:
    opposed = opposed_topics(name)
    return sum(frozenset((truth[a], truth[b])) in opposed for a, b in pairs(groups))


def false_oppositions(
    name: str, contested: Sequence[Sequence[str]], truth: Mapping[str, str]
) -> int:
    """Pairs that are called opposed, and are labelled otherwise."""
    opposed = opposed_topics(name)
    return sum(frozenset(truth[item] for item in pair) not in opposed for pair in contested)


# -- the same bytes ------------------------------------------------------------------------


def outputs(shuffles: int) -> set[bytes]:
    """Every different output: of shuffles in this process, and of other hash seeds."""
    found_bytes = {bytes_of(seed) for seed in range(shuffles)}
    for hash_seed in HASH_SEEDS:
        done = subprocess.run(
            [sys.executable, __file__, "--digest", "7"],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            check=True,
        )
        found_bytes.add(done.stdout)
    return found_bytes


def bytes_of(seed: int) -> bytes:
    """Tally and report of the first set, its items and their keywords in an order by chance."""
    chance = random.Random(seed)
    items, _ = labelled(SETS[0])
    shuffled = [item._replace(keywords=tuple(shuffle(item.keywords, chance))) for item in items]
    counted = tally(in_one_order(council_of(shuffle(shuffled, chance))))
    return canonical(counted.as_json()) + markdown(counted, {}).encode()


def in_one_order(council: Council) -> Council:
    """The seats as they were declared: that order is no matter of chance."""
    return council._replace(seats=tuple(sorted(council.seats, key=lambda seat: seat.reviewer)))


def shuffle(things: Sequence[Any], chance: random.Random) -> list[Any]:
    mixed = list(things)
    chance.shuffle(mixed)
    return mixed


# -- time ----------------------------------------------------------------------------------


def seconds_of(number: int) -> float:
    """The best of three tallies of so many items, from all sets."""
    return min(times_of(number))


def times_of(number: int) -> list[float]:
    """Seconds of three such tallies."""
    items = [item for name in SETS for item in labelled(name)[0]]
    while len(items) < number:
        items += [i._replace(id=f"{i.id}x", title=f"{i.title} {len(items)}") for i in items]
    council = council_of(items[:number])
    times = []
    for _ in range(3):
        began = time.perf_counter()
        tally(council)
        times.append(time.perf_counter() - began)
    return times


HEADINGS = (
    *("set", "method", "items", "B-cubed F1", "pair precision", "right pairs"),
    *("missed", "false", "opposites merged", "opposed pairs", "false oppositions"),
)


def as_text(figures: dict[str, Any]) -> str:
    pooled = figures["all"]
    in_all = (
        f"A and B: pair precision {pooled['pair_precision']:.3f} (at least 0.95), mean B-cubed F1 "
        f"{pooled['b_cubed_f1']:.3f} (at least 0.93), missed {pooled['missed_share']:.1%} (at "
        f"most 10 %), false {pooled['false_agreements']} (at most 2), opposed merged "
        f"{pooled['opposed_merged']} (none)."
    )
    same = (
        f"{figures['shuffles']} shuffles and {figures['hash_seeds']} hash seeds: "
        f"{figures['different_outputs']} different output(s)."
    )
    speed = (
        f"66 items in {figures['seconds']['66'] * 1000:.0f} ms (at most 500), 150 in "
        f"{figures['seconds']['150'] * 1000:.0f} ms (at most 3,000)."
    )
    looked_at = [row for row in figures["sets"] if row["set"] in LOOKED_AT]
    others = [row for row in figures["sets"] if row["set"] not in LOOKED_AT]
    lines = ["Recommendations of several reviewers, labelled by hand", ""]
    lines += ["Sets that the method was made with:", "", table(HEADINGS, _rows(looked_at)), ""]
    lines += ["Sets for the verdict:", ""]
    lines += [table(HEADINGS, _rows(others)) if others else "none", ""]
    return "\n".join([*lines, in_all, *_of_prose(figures), same, speed])


def _rows(judgements: Iterable[Mapping[str, Any]]) -> list[tuple[object, ...]]:
    return [
        (
            row["set"],
            row["method"],
            row["items"],
            f"{row['b_cubed_f1']:.3f}",
            f"{row['right_pairs'] / row['pairs']:.3f}" if row["pairs"] else "",
            f"{row['right_pairs']}/{row['pairs']}",
            f"{row['missed_agreements']}/{row['agreements']}",
            row["false_agreements"],
            row["opposed_merged"],
            row["contested"],
            row["false_oppositions"],
        )
        for row in judgements
    ]


def _of_prose(figures: Mapping[str, Any]) -> list[str]:
    """All sets of real prose together, and those for the verdict."""
    told = []
    for name, words in (("prose", "Real prose"), ("unseen", "For the verdict")):
        pooled = figures[name]
        if pooled is not None:
            told.append(
                f"{words}: pair precision {pooled['pair_precision']:.3f} (at least 0.9), mean "
                f"B-cubed F1 {pooled['b_cubed_f1']:.3f}, missed {pooled['missed_share']:.1%} (at "
                f"most one in six), false oppositions {pooled['false_oppositions']} (none)."
            )
    return told


if __name__ == "__main__":
    main()
