#!/bin/sh
# What stands in for an agent in the demonstration: it reads its task on standard input and does
# what the title says. `inbox work` starts it in the attempt's worktree.
set -eu

task=$(cat)
title=$(printf '%s\n' "$task" | head -n 1)

commit() {
    git add --all
    git commit --quiet --message "$1"
    inbox update --progress 100 --body "committed: $1" >/dev/null
}

case $title in
"Write the lexer")
    case $task in
    *"Since then"*) ;; # started again, because the question has been answered
    *)
        inbox ask --body "Which separator?" --option comma --option semicolon >/dev/null
        exit 0
        ;;
    esac
    answer=$(inbox wait-reply --wait 0 | cut -f 2)
    printf 'separator = "%s"\n' "$answer" >lexer.txt
    commit "Write the lexer for the $answer"
    ;;
"Write the parser")
    case $INBOX_WORKTREE in
    *parser-1)
        echo "the grammar is ambiguous" >&2
        exit 1
        ;;
    esac
    echo "parser" >parser.txt
    commit "Write the parser"
    ;;
"Write the manual")
    if [ ! -e draft.txt ]; then
        echo "first half" >draft.txt
        echo $$ >"$DEMO/manual.pid"
        inbox update --progress 50 --body "half of it is written" >/dev/null
        exec sleep 600 # until kill -9
    fi
    echo "second half" >>draft.txt
    mv draft.txt manual.txt
    commit "Write the manual"
    ;;
"Put it together")
    cat lexer.txt parser.txt >program.txt # both must be in this attempt's base
    commit "Put lexer and parser together"
    ;;
"Report")
    echo "lexer, parser and manual are written"
    ;;
*)
    echo "no such task: $title" >&2
    exit 1
    ;;
esac
