# shellcheck shell=bash
# Sourced by the scripts beside it. Owns the way from any machine with Python, pip and git to a
# virtual environment that has the package in it; does no work of theirs.

root=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P)

fail() {
    printf 'script/%s: %s\n' "${0##*/}" "$1" >&2
    exit 1
}

# prepare_environment runtime|dev|docs|proof: sets `venv`, and leaves a shared lock on it open as
# descriptor 9. Whoever inherits that keeps the environment from being changed under its feet.
prepare_environment() {
    local python=${PYTHON:-python3} version
    version=$("$python" -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])' 2>/dev/null) ||
        fail "needs Python 3.11 or newer, but '$python' does not run: install it, or set PYTHON to one"
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
        fail "needs Python 3.11 or newer, but '$python' is $version: set PYTHON to a newer one"

    venv=$root/.venv
    case ${INBOX_ORCH_LOWEST:-} in
        '') ;;
        mcp) venv=$root/.venv-lowest-mcp ;;
        *) venv=$root/.venv-lowest ;;
    esac
    # What makes the site, and what proves the tests, is no part of what the tests run with.
    [ "$1" != docs ] || venv=$root/.venv-docs
    [ "$1" != proof ] || venv=$root/.venv-proof
    unset PYTHONPATH PYTHONHOME
    exec 9>"$venv.lock"
    "$python" "$root/script/_environment.py" "$1" "$venv"
}
