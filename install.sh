#!/bin/sh
# Installs reef for one user: no root, no question, nothing outside reef's own folders but one link in ~/.local/bin.
#
#   ./install.sh                      install, or repair what is broken
#   ./install.sh --with providers     the same with litellm, which reaches Bedrock, Vertex, Gemini and others
#   ./install.sh quickstart [--prove] install, then see reef work once on real input
#   ./install.sh test [--all]         run the project's own tests (from a checkout)
#   ./install.sh uninstall [--purge]  remove the programs; --purge removes records and versions as well
#
# REEF_HOME puts everything in one folder; without it the XDG folders are used. REEF_BIN_DIR is where commands are
# linked. REEF_PYTHON names the Python to use. REEF_TEST_VENV is where `test` keeps its environment.
set -eu

say() {
    printf '%s\n' "$*"
}

# fail MESSAGE COMMAND: the error and the one command that helps.
fail() {
    printf 'error: %s\n\nhint: %s\n' "$1" "$2" >&2
    exit 1
}

# A path as a person writes it.
short() {
    case "$1" in
        "$HOME"/*) printf '~%s' "${1#"$HOME"}" ;;
        *) printf '%s' "$1" ;;
    esac
}

# done_line WHAT SECONDS MEGABYTES
done_line() {
    printf '  ✓ %-20s %4s s %6s MB\n' "$1" "$2" "$3"
}

# tick WHAT: shows on a terminal how long WHAT takes, until `tock`.
tick() {
    TICKER=
    if [ ! -t 1 ] || [ "${TERM:-dumb}" = dumb ]; then return 0; fi
    began=$(now)
    # It looks for this script, so that it does not outlive one that was killed.
    while kill -0 "$$" 2>/dev/null; do
        printf '\r  … %-20s %4s s' "$1" "$(($(now) - began))"
        sleep 1
    done &
    TICKER=$!
}

tock() {
    [ -n "${TICKER:-}" ] || return 0
    kill "$TICKER" 2>/dev/null || true
    wait "$TICKER" 2>/dev/null || true
    TICKER=
    printf '\r\033[K'
}

now() {
    date +%s
}

megabytes() {
    du -sk "$1" | awk '{ print int(($1 + 512) / 1024) }'
}

# --- places ----------------------------------------------------------------------------------------------------

xdg() {
    # The XDG specification says that a relative path is to be ignored.
    case "$1" in
        /*) printf '%s/reef' "${1%/}" ;;
        *) printf '%s/reef' "$2" ;;
    esac
}

find_places() {
    [ -n "${HOME:-}" ] || fail "HOME is not set" "export HOME=…"
    HERE=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P)
    if [ -n "${REEF_HOME:-}" ]; then
        case "$REEF_HOME" in
            /*) home=${REEF_HOME%/} ;;
            '~'/*) home=$HOME/${REEF_HOME#'~/'} ;;
            *) home=$(pwd)/${REEF_HOME%/} ;;
        esac
        if [ -z "$home" ] || [ "$home" = "${HOME%/}" ]; then
            fail "REEF_HOME is $REEF_HOME, and reef needs a folder of its own" "export REEF_HOME=\$HOME/reef"
        fi
        CONFIG=$home/config DATA=$home/data STATE=$home/state CACHE=$home/cache
    else
        CONFIG=$(xdg "${XDG_CONFIG_HOME:-}" "$HOME/.config")
        DATA=$(xdg "${XDG_DATA_HOME:-}" "$HOME/.local/share")
        STATE=$(xdg "${XDG_STATE_HOME:-}" "$HOME/.local/state")
        CACHE=$(xdg "${XDG_CACHE_HOME:-}" "$HOME/.cache")
    fi
    BIN=${REEF_BIN_DIR:-$HOME/.local/bin}
    VENV=$DATA/venv
    MADE=$DATA/made-folders
    LOG=$STATE/install.log
}

# make_folder PATH: makes it, and remembers every level that was not there, so that a purge leaves none behind.
make_folder() {
    folder=$1 missing=
    while [ ! -d "$folder" ]; do
        missing="$folder
$missing"
        folder=$(dirname -- "$folder")
    done
    mkdir -p -- "$1"
    PENDING_MADE="$PENDING_MADE$missing"
}

make_folders() {
    PENDING_MADE=
    for folder_of_reef in "$CONFIG" "$DATA" "$STATE" "$CACHE"; do
        make_folder "$folder_of_reef"
        chmod 700 "$folder_of_reef"
    done
    make_folder "$BIN"
    printf '%s' "$PENDING_MADE" >>"$MADE"
}

# --- what is being installed -----------------------------------------------------------------------------------

# Sets KIND (checkout or wheel), PACKAGE (the folder `reef`) and VERSION.
find_source() {
    if [ -f "$HERE/pyproject.toml" ] && [ -f "$HERE/reef/__init__.py" ]; then
        KIND=checkout PACKAGE=$HERE/reef
    elif [ -f "$HERE/__init__.py" ] && [ -f "$HERE/constraints.txt" ]; then
        KIND=wheel PACKAGE=$HERE
    else
        fail "there is no reef beside $HERE/install.sh" "git clone the project, then run ./install.sh in it"
    fi
    VERSION=$(sed -n 's/^__version__ = "\(.*\)"$/\1/p' "$PACKAGE/__init__.py")
}

# One word that changes when any installed file does.
fingerprint() {
    if [ "$KIND" = checkout ]; then
        cd "$HERE" && set -- pyproject.toml install.sh reef recipes adapters
    else
        cd "$PACKAGE" && set -- .
    fi
    find "$@" -type f ! -path '*/__pycache__/*' -exec cksum {} + | LC_ALL=C sort | cksum | tr ' ' '-'
}

# pack_wheel DIR: makes the wheel again from an unpacked or installed one, and prints its path.
pack_wheel() {
    "$PYTHON" - "$(dirname -- "$PACKAGE")" "$1" <<'PYTHON'
import csv, io, pathlib, sys, zipfile

root, out = map(pathlib.Path, sys.argv[1:])
(facts,) = root.glob("reef_coding_agents-*.dist-info")
local = {"RECORD", "INSTALLER", "REQUESTED", "direct_url.json", "uv_cache.json"}
rows = []
with (facts / "RECORD").open(newline="") as file:
    for row in csv.reader(file):
        path = pathlib.PurePosixPath(row[0])
        is_local = path.parts[0] == facts.name and path.name in local
        if not (is_local or path.parts[0] in ("..", "/") or path.suffix == ".pyc"):
            rows.append(row)
record = io.StringIO()
csv.writer(record, lineterminator="\n").writerows([*rows, [f"{facts.name}/RECORD", "", ""]])
wheel = out / f"{facts.name.removesuffix('.dist-info')}-py3-none-any.whl"
with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as packed:
    for row in rows:
        packed.write(root / row[0], row[0])
    packed.writestr(f"{facts.name}/RECORD", record.getvalue())
print(wheel)
PYTHON
}

# --- what the machine must have --------------------------------------------------------------------------------

has() {
    command -v "$1" >/dev/null 2>&1
}

# package_command NAME: how this machine installs a system package.
package_command() {
    if has apt-get; then say "sudo apt-get install -y $1"
    elif has dnf; then say "sudo dnf install -y $1"
    elif has pacman; then say "sudo pacman -S $1"
    elif has zypper; then say "sudo zypper install -y $1"
    elif has apk; then say "sudo apk add $1"
    elif has brew; then say "brew install $1"
    else say "install $1 with your system's package manager"
    fi
}

is_new_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

# Sets PYTHON, the first Python of at least 3.11.
find_python() {
    if [ -n "${REEF_PYTHON:-}" ]; then
        PYTHON=$(command -v "$REEF_PYTHON" || true)
        is_new_enough "$PYTHON" || fail "REEF_PYTHON=$REEF_PYTHON is not a Python of at least 3.11" "unset REEF_PYTHON"
        return
    fi
    for candidate in python3 python3.13 python3.12 python3.11; do
        PYTHON=$(command -v "$candidate" || true)
        ! is_new_enough "$PYTHON" || return 0
    done
    if has uv && PYTHON=$(uv python find --no-project '>=3.11' 2>/dev/null) && is_new_enough "$PYTHON"; then
        return 0
    fi
    found=$(python3 --version 2>/dev/null || say "no python3")
    if has uv; then helps="uv python install 3.12"
    elif has apt-get; then helps=$(package_command "python3.11 python3.11-venv")
    elif has brew; then helps=$(package_command python@3.12)
    else helps=$(package_command python3.12)
    fi
    fail "reef needs Python 3.11 or newer; this machine has $found" "$helps"
}

check_machine() {
    has git || fail "git is not installed; reef keeps versions in it" "$(package_command git)"
    find_python
    if ! has uv && ! "$PYTHON" -c 'import ensurepip, venv' >/dev/null 2>&1; then
        series=$("$PYTHON" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
        fail "$PYTHON cannot make virtual environments (ensurepip is missing)" "$(package_command "python$series-venv")"
    fi
}

# --- environments ----------------------------------------------------------------------------------------------

# Settings of the person's own pip and Python that would send packages elsewhere.
clear_python_variables() {
    unset PYTHONHOME PYTHONPATH PIP_TARGET PIP_PREFIX VIRTUAL_ENV
    export PIP_USER=0 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_REQUIRE_VIRTUALENV=0
}

# pip asks rustc for its version, and where rustc is rustup's stand-in, that alone would make ~/.rustup.
keep_rustup_out() {
    if [ -z "${RUSTUP_HOME:-}" ] && [ ! -d "$HOME/.rustup" ]; then
        export RUSTUP_HOME="$CACHE/rustup"
    fi
}

# logged COMMAND…: its output goes to the log; a failure shows the end of it.
logged() {
    "$@" >>"$LOG" 2>&1 && return
    tock
    tail -n 15 "$LOG" >&2
    fail "$1 ${2:-} ${3:-} did not succeed (whole output: $(short "$LOG"))" "$0 again, once the cause above is gone"
}

# make_environment DIR: an empty virtual environment that has pip.
make_environment() {
    rm -rf -- "$1"
    if has uv; then
        logged uv venv --quiet --no-project --seed --python "$PYTHON" "$1"
    else
        logged "$PYTHON" -m venv "$1"
    fi
}

# add_packages DIR WHAT…: installs into the environment at DIR exactly the versions that were tested.
add_packages() {
    target=$1
    shift
    if has uv; then
        logged uv pip install --quiet --python "$target/bin/python" --compile-bytecode \
            --reinstall-package reef-coding-agents --constraint "$PACKAGE/constraints.txt" "$@"
    else
        # pip keeps a wheel whose version it has, though its content may differ.
        logged "$target/bin/python" -m pip uninstall --quiet --yes reef-coding-agents
        logged "$target/bin/python" -m pip install --quiet --constraint "$PACKAGE/constraints.txt" "$@"
    fi
}

# One install at a time: the holder's pid is in the lock, so that one left by a crash does not block.
take_lock() {
    if ! mkdir "$DATA/install.lock" 2>/dev/null; then
        holder=$(cat "$DATA/install.lock/pid" 2>/dev/null || say 0)
        if [ "$holder" != 0 ] && kill -0 "$holder" 2>/dev/null; then
            fail "another install of reef is running (pid $holder)" "wait for it, then run $0 again"
        fi
    fi
    mkdir -p "$DATA/install.lock"
    echo "$$" >"$DATA/install.lock/pid"
    trap leave EXIT
    trap 'leave; exit 130' INT TERM HUP
}

leave() {
    trap - EXIT INT TERM HUP
    tock
    rm -rf -- "$DATA/install.lock" "${SCRATCH:-$DATA/install.lock}"
}

# --- install ---------------------------------------------------------------------------------------------------

is_installed() {
    [ "$(cat "$VENV/source" 2>/dev/null)" = "$1" ] && "$VENV/bin/reef" --version >/dev/null 2>&1
}

check_link() {
    # A link whose target is gone belongs to nobody any more.
    [ -e "$BIN/reef" ] || return 0
    if [ "$(readlink "$BIN/reef" || true)" != "$VENV/bin/reef" ]; then
        fail "$(short "$BIN/reef") is there already and is not this reef" "REEF_BIN_DIR=\$HOME/reef-bin $0"
    fi
}

install_packages() {
    started=$(now)
    tick "python environment"
    rm -f -- "$VENV/source"
    # An environment whose Python is gone or changed cannot be mended, only made again.
    "$VENV/bin/python" -c 'import pip' >/dev/null 2>&1 || make_environment "$VENV"
    if [ "$KIND" = wheel ]; then
        SCRATCH=$(mktemp -d)
        add_packages "$VENV" "$(pack_wheel "$SCRATCH")${EXTRAS:+[$EXTRAS]}"
    else
        add_packages "$VENV" "$HERE${EXTRAS:+[$EXTRAS]}"
    fi
    [ -z "$EXTRAS" ] || echo "$EXTRAS" >"$VENV/extras"
    "$VENV/bin/reef" --version >/dev/null || fail "the installed reef does not start" "rm -r $(short "$VENV") && $0"
    echo "$1" >"$VENV/source"
    tock
    done_line "python environment" "$(($(now) - started))" "$(megabytes "$VENV")"
}

install_reef() {
    find_source
    check_link
    # What was once asked for stays, whatever installs the next version.
    EXTRAS=${EXTRAS:-$(cat "$VENV/extras" 2>/dev/null || true)}
    stamp=$(fingerprint)${EXTRAS:+-$EXTRAS}
    if is_installed "$stamp"; then
        say "reef $VERSION · installed in $(short "$DATA")"
    else
        check_machine
        make_folders
        take_lock
        clear_python_variables
        say "reef $VERSION · installing into $(short "$DATA") (first time: about 1 min)"
        install_packages "$stamp"
        leave
        [ ! -f "$STATE/daemon.json" ] || say "  - the daemon still runs what was there before: reef down && reef up"
    fi
    [ -d "$BIN" ] || make_folders
    ln -sf -- "$VENV/bin/reef" "$BIN/reef"
}

on_path() {
    case ":$PATH:" in *":$BIN:"*) return 0 ;; esac
    return 1
}

install_only() {
    case "${*:-}" in '') ;; '--with providers') EXTRAS=providers ;; *) usage ;; esac
    install_reef
    say "  ✓ command                 $(short "$BIN/reef")"
    if ! on_path; then
        say ""
        say "add    export PATH=\"$BIN:\$PATH\"        to your shell's profile: $(short "$BIN") is not on PATH"
    fi
    say ""
    say "next   reef quickstart          see it work once, about a minute"
    say "       reef up                  start the daemon"
    say "undo   $0 uninstall --purge"
}

quickstart() {
    case "${*:-}" in '' | --prove) ;; *) usage ;; esac
    install_reef
    REEF_INSTALLER=$0
    export REEF_INSTALLER
    exec "$VENV/bin/reef" quickstart "$@"
}

# --- test ------------------------------------------------------------------------------------------------------

prepare_tests() {
    TESTS=${REEF_TEST_VENV:-$CACHE/test-venv}
    stamp=$(cat "$HERE/pyproject.toml" "$PACKAGE/constraints.txt" | cksum | tr ' ' '-')-$HERE
    if [ "$(cat "$TESTS/source" 2>/dev/null)" = "$stamp" ] && "$TESTS/bin/python" -m pytest --version >/dev/null 2>&1; then
        return
    fi
    started=$(now)
    tick "test environment"
    make_environment "$TESTS"
    group=$("$PYTHON" - "$HERE/pyproject.toml" <<'PYTHON'
import sys, tomllib

with open(sys.argv[1], "rb") as file:
    print("\n".join(tomllib.load(file)["dependency-groups"]["test"]))
PYTHON
    )
    # The requirements hold no blanks, so the list splits into them.
    # shellcheck disable=SC2086
    add_packages "$TESTS" --editable "$HERE" $group
    echo "$stamp" >"$TESTS/source"
    tock
    done_line "test environment" "$(($(now) - started))" "$(megabytes "$TESTS")"
}

# check NAME COMMAND…: runs it and remembers the name when it fails.
check() {
    name=$1
    shift
    started=$(now)
    if "$@"; then
        printf '  ✓ %-22s %4s s\n' "$name" "$(($(now) - started))"
    else
        printf '  ✗ %-22s %4s s\n' "$name" "$(($(now) - started))"
        BROKEN="$BROKEN $name,"
    fi
}

check_tools() {
    absent=
    for tool in bwrap tmux git-lfs; do
        has "$tool" || absent="$absent $tool"
    done
    [ -n "$absent" ] || return 0
    helps=$(package_command "bubblewrap tmux git-lfs")
    if [ "${CI:-}" = true ]; then
        fail "the tests need$absent, and CI=true skips nothing" "$helps"
    fi
    say "  - missing:$absent (tests that need them are skipped): $helps"
}

run_tests() {
    case "${*:-}" in '') chosen="not slow" ;; --all) chosen="" ;; *) usage ;; esac
    find_source
    [ "$KIND" = checkout ] || fail "the tests are only in a checkout" "git clone the project, then ./install.sh test"
    check_machine
    make_folders
    take_lock
    clear_python_variables
    check_tools
    prepare_tests
    leave
    cd "$HERE"
    PATH=$TESTS/bin:$PATH
    # The tests start many hundred interpreters: without bytecode each of them would compile the sources again.
    unset PYTHONDONTWRITEBYTECODE
    BROKEN=
    check "ruff check" ruff check --quiet .
    check "ruff format" ruff format --quiet --check .
    check "mypy" mypy --no-error-summary
    check "import contracts" lint-imports --no-logo
    # pytest's own last line is the last of a run that passes.
    pytest -n 3 -q -m "$chosen" || BROKEN="$BROKEN pytest,"
    [ -z "$BROKEN" ] || fail "failed:${BROKEN%,}" "PATH=$(short "$TESTS")/bin:\$PATH pytest --lf"
}

# --- uninstall -------------------------------------------------------------------------------------------------

stop_daemon() {
    [ -f "$STATE/daemon.json" ] || return 0
    if "$VENV/bin/reef" --version >/dev/null 2>&1; then
        "$VENV/bin/reef" down || fail "the daemon did not stop, so nothing was removed" "reef down, then $0 uninstall"
        return
    fi
    pid=$(sed -n 's/.*"pid": *\([0-9][0-9]*\).*/\1/p' "$STATE/daemon.json")
    if [ -n "$pid" ] && kill -0 "$pid" 2>/dev/null; then
        fail "the daemon (pid $pid) is running and its own command is gone" "kill $pid, then $0 uninstall"
    fi
}

# The entry that `reef up --at-login` writes, where it starts this installation.
remove_login() {
    units=${XDG_CONFIG_HOME:-$HOME/.config}/systemd
    for unit in "$units/user/reef.service" "$HOME/Library/LaunchAgents/reef.daemon.plist"; do
        if [ -f "$unit" ] && grep -qF "$VENV/" "$unit"; then
            "$VENV/bin/reef" up --no-at-login >/dev/null 2>&1 || rm -f -- "$unit"
            say "removed $(short "$unit")"
        fi
    done
    rmdir -- "$units/user/default.target.wants" "$units/user" "$units" 2>/dev/null || true
}

# Removes what was put outside reef's folders: the link and the agents' wrappers.
remove_commands() {
    for wrapper in "$BIN"/reef-*; do
        if [ -f "$wrapper" ] && grep -qF "$VENV/" "$wrapper" && grep -qF reef.harness.wrapper "$wrapper"; then
            rm -f -- "$wrapper"
            say "removed $(short "$wrapper")"
        fi
    done
    if [ "$(readlink "$BIN/reef" 2>/dev/null || true)" = "$VENV/bin/reef" ]; then
        rm -f -- "$BIN/reef"
        say "removed $(short "$BIN/reef")"
    fi
}

# remove FOLDER: it holds many files, so it says first what takes its time.
remove() {
    [ -d "$1" ] || return 0
    [ -t 1 ] || say "removing $(short "$1")"
    tick "removing"
    rm -rf -- "$1"
    tock
    say "removed $(short "$1")"
}

purge() {
    made=$(cat "$MADE" 2>/dev/null || true)
    for folder in "$CONFIG" "$DATA" "$STATE" "$CACHE"; do
        remove "$folder"
    done
    # Deepest first; a folder that holds something else stays.
    printf '%s\n' "$made" | LC_ALL=C sort -ru | while IFS= read -r folder; do
        [ -z "$folder" ] || rmdir -- "$folder" 2>/dev/null || true
    done
}

uninstall() {
    case "${*:-}" in '' | --purge) ;; *) usage ;; esac
    if [ ! -f "$MADE" ] && [ ! -f "$DATA/reef.db" ]; then
        say "reef is not installed in $(short "$DATA")"
        return
    fi
    trap tock EXIT
    trap 'tock; exit 130' INT TERM HUP
    remove_login
    stop_daemon
    remove_commands
    if [ "${1:-}" = --purge ]; then
        purge
    else
        [ -d "$VENV" ] || say "reef's programs are not installed in $(short "$DATA")"
        remove "$VENV"
        remove "$CACHE"
        say "kept    $(short "$DATA") ($(megabytes "$DATA") MB: records, versions, agents) and $(short "$CONFIG")"
        say "all of  $0 uninstall --purge"
    fi
}

explain() {
    sed -n '2,/^set -eu/{/^#/s/^# \{0,1\}//p;}' "$0"
}

usage() {
    printf 'error: %s is not understood\n\n' "${0##*/} $ASKED" >&2
    explain >&2
    exit 2
}

main() {
    ASKED=$*
    EXTRAS=
    find_places
    keep_rustup_out
    command=${1:-install}
    [ $# -eq 0 ] || shift
    case "$command" in
        install) install_only "$@" ;;
        --with) install_only --with "$@" ;;
        quickstart) quickstart "$@" ;;
        test) run_tests "$@" ;;
        uninstall) uninstall "$@" ;;
        help | -h | --help) explain ;;
        *) usage ;;
    esac
}

main "$@"
