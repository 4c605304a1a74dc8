#!/bin/sh
# What stands in for the agents in `orch demo --blueprint`, the reviewer among them. Each reads its
# task on standard input, and does what is asked for in the step that it names. What it leaves
# uncommitted is committed in its name.
set -eu

task=$(cat)
stage=$(printf '%s\n' "$task" | sed -n 's/^This step: //p')

verdict() {
    printf '{"verdict": "%s", "summary": "%s", "findings": [%s]}\n' "$1" "$2" "${3-}" >"$INBOX_RESULT"
}

case $stage in
implement)
    case $task in
    *"Names stay as they are written."*) # what somebody has decided
        sed -i.old 's/^# Greets.*/&, written as they are given./' greet.sh
        rm greet.sh.old
        ;;
    *"no test gives a name"*) # what the review has asked for
        printf 'check name "hello, Ada" "$(sh greet.sh Ada)"\n' >>test.sh
        ;;
    *) # a first try, with blanks that lint finds, and a fault that the tests find
        printf '#!/bin/sh\n# Greets whoever is named\necho "hello, ${1-}"  \n' >greet.sh
        ;;
    esac
    ;;
fix_lint)
    sed -i.old 's/ *$//' greet.sh
    rm greet.sh.old
    ;;
fix_tests)
    if [ "$INBOX_AGENT" = ada ]; then
        echo "half a" >>greet.sh
        echo $$ >"$DEMO/fix.pid"
        inbox update --progress 50 --body "found it, and half mended" >/dev/null
        exec sleep 600 # until kill -9
    fi
    printf '#!/bin/sh\n# Greets whoever is named\necho "hello${1:+, $1}"\n' >greet.sh
    ;;
review)
    case $(cat test.sh greet.sh) in
    *"written as they are given."*) verdict approve "It greets by name, and is tested." ;;
    *"check name "*)
        verdict reject "Nobody has said whether names are to be put in capitals."
        ;;
    *)
        verdict request_changes "It works, and what is new is not tested." \
            '{"path": "test.sh", "severity": "medium", "text": "no test gives a name"}'
        ;;
    esac
    ;;
*)
    echo "no such step: $stage" >&2
    exit 1
    ;;
esac
