# PATTERN ALSO FOLDER COMMAND...: starts the watchdog, in a session of its own, unless one runs.
main() {
    found=$(those "$1" "$2" | tr '\n' ' ')
    [ -z "$found" ] || { say "runs already as pid ${found% }" && exit 0; }
    cd "$(home "$3")" || cannot "$3 cannot be entered"
    shift 3
    count=$#
    while [ "$count" -gt 0 ]; do
        word=$(home "$1")
        shift
        set -- "$@" "$word"
        count=$((count - 1))
    done
    [ -x "$1" ] || command -v "$1" >/dev/null 2>&1 || cannot "$1 cannot be run"
    umask 022
    nohup setsid "$@" </dev/null >/dev/null 2>&1 &
    say "started"
}
main "$@" </dev/null
