#!/bin/sh
# A leader: leader.sh PLAN BRANCH. It opens a run from a plan, drives it, answers what workers ask,
# and brings the accepted work to BRANCH. Started again after any failure it goes on where it was.
set -eu
plan=$1 branch=$2
tab=$(printf '\t')

# What to answer. Here: the first option. Put a person, a table or an agent in its place.
decide() { # QUESTION OPTIONS
    answer=${2%%,*}
    printf '%s\n' "${answer:-As you think best.}"
}

# The same plan is the same run.
key=leader-$(cksum <"$plan" | tr ' ' -)
ORCH_RUN=$(orch plan import "$plan" --new-run --key "$key" | cut -f 1)
export ORCH_RUN

until orch wait --until run --wait 0 >/dev/null 2>&1; do
    orch drive --until blocked || exit # 11: something has failed, or needs more than an answer
    orch blocked | while IFS=$tab read -r task worker question options; do
        echo "$worker asks on $task: $question" >&2
        # It is refused when somebody else was quicker, or the question's time is over.
        orch answer "$task" --body "$(decide "$question" "$options")" >/dev/null || continue
    done
done

orch integrate --onto "$branch"
