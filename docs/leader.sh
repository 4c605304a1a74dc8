#!/bin/sh
# A leader: leader.sh PLAN BRANCH. It opens a run from a plan, drives it, answers what workers ask,
# and brings the accepted work to BRANCH. It stops at the first failure, with its exit code; started
# again after any, it goes on where it was.
set -eu
[ $# -eq 2 ] || { echo "usage: leader.sh PLAN BRANCH" >&2; exit 2; }
plan=$1 branch=$2
tab=$(printf '\t')

# What to answer. Here: the first option. Put a person, a table or an agent in its place.
decide() { # QUESTION CHOICES
    first=${2%%,*}
    printf '%s\n' "${first:-As you think best.}"
}

# The same plan is the same run.
sum=$(cksum <"$plan")
imported=$(orch plan import "$plan" --new-run --key "leader-${sum%% *}-${sum#* }")
ORCH_RUN=${imported%%"$tab"*}
export ORCH_RUN

while :; do
    code=0
    told=$(orch wait --until run --wait 0 2>&1) || code=$?
    case $code in
    0) break ;; # it is over, and has succeeded
    8 | 11) ;; # not yet; a question is open, or what `drive` then ends with
    *) printf '%s\n' "$told" >&2; exit "$code" ;;
    esac
    orch drive --until blocked # 11: something has failed, or needs more than an answer
    questions=$(orch blocked)
    while IFS=$tab read -r task worker question choices; do
        [ -n "$task" ] || continue
        echo "$worker asks on $task: $question" >&2
        answer=$(decide "$question" "$choices")
        code=0
        orch answer "$task" --body "$answer" >/dev/null || code=$?
        # 4: somebody else was quicker, or the question's time is over.
        [ "$code" -eq 0 ] || [ "$code" -eq 4 ] || exit "$code"
    done <<END
$questions
END
done

orch integrate --onto "$branch"
