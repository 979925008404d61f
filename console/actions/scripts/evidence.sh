# EVIDENCE SECONDS LINES SOCKET CONTAINER...: keeps memory, inspect and the log of each container, each within SECONDS.
# LINES: the newest lines of a log, `all` for all of it. A container that is not there has nothing to keep.
main() {
    folder=$1 seconds=$2 lines=$3
    # a stop may be on its way beside it, and goes first
    renice -n 10 -p $$ >/dev/null 2>&1
    engine "$4"
    shift 4
    mkdir -p "$folder" 2>/dev/null || cannot "$folder cannot be made"
    room=$(df -Pk "$folder" 2>/dev/null | { read -r _ && read -r _ _ _ room _ && say "$room"; })
    case $room in '' | *[!0-9]*) room=1 ;; esac
    [ "$room" -gt 102400 ] || cannot "less than 100 MiB are free in $folder"
    cat /proc/meminfo >"$folder/meminfo" 2>/dev/null
    kept=0
    for id in "$@"; do one "$id"; done
    say "logs of $kept of $# containers kept in $folder"
    [ "$kept" -eq $# ] || exit 1
}

one() {
    look "$1" '{{.Name}}'
    case $? in
        1) kept=$((kept + 1)) && say "$(short "$1"): not there, nothing to keep" && return ;;
        2) say "$(short "$1"): $seen" && return ;;
    esac
    file="$folder/$(printf '%s' "${seen#/}" | tr -c 'A-Za-z0-9._-' '_')"
    ask "$seconds" inspect "$1" >"$file.inspect.json" 2>/dev/null || { say "$(short "$1"): inspect not kept" && return; }
    ask "$seconds" logs --timestamps --tail "$lines" "$1" >"$file.log" 2>&1
    code=$?
    case $code in
        0) kept=$((kept + 1)) ;;
        124 | 137) say "$(short "$1"): its log is cut, it took longer than $seconds s" ;;
        *) say "$(short "$1"): its log was not kept" ;;
    esac
    sync "$file.log" 2>/dev/null || :
}
main "$@" </dev/null
