# SOCKET ID EVIDENCE: whether the container runs, or was not started by this operation yet. For watching.
main() {
    engine "$1"
    started="$3/started.$(short "$2")" floor=''
    [ -e "$started" ] || { say "not started yet" && exit 0; }
    { read -r _ floor _ <"$started"; } 2>/dev/null
    look "$2" '{{.State.Status}} {{.State.ExitCode}} {{.RestartCount}}'
    case $? in
        1) no "container removed" ;;
        2) unknown "$seen" ;;
    esac
    # shellcheck disable=SC2086
    set -- $seen
    # an engine that ended once while it came up has not come up: its policy would go on with it for ever
    if restarted "$3" "${floor:-0}" "$1" "$2"; then no "$words"; fi
    case $1 in running | paused) say "$1" && exit 0 ;; esac
    no "it is $1 with $2"
}
main "$@" </dev/null
