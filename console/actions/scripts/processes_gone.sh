# EVIDENCE ID: whether the processes that the container had when it was stopped are gone.
main() {
    pids="$1/pids.$(short "$2")"
    [ -r "$pids" ] || { say "none was noted" && exit 0; }
    while read -r one start; do
        [ -n "$one" ] || continue
        if lives "$one" "$start"; then
            name=''
            { read -r name <"/proc/$one/comm"; } 2>/dev/null
            no "STUCK: pid $one ($name) in state $mood does not die"
        fi
    done <"$pids"
    say "all gone"
}
main "$@" </dev/null
