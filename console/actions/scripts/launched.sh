# SOCKET CONTAINER EVIDENCE: whether the head's container runs and is not the process from before the launch.
main() {
    engine "$1"
    before=unknown
    { read -r before <"$3/before.launch"; } 2>/dev/null
    look "$2" '{{.Id}} {{.State.StartedAt}} {{.State.Status}} {{.State.ExitCode}} {{.RestartCount}}'
    case $? in
        1) no "no container $2 yet" ;;
        2) unknown "$seen" ;;
    esac
    # shellcheck disable=SC2086
    set -- $seen
    # a process that the policy of the one from before has begun is no launch
    if restarted "$5" 0 "$3" "$4"; then no "$words"; fi
    [ "$3" = running ] || no "it is $3 with $4"
    case $before in
        "$1 $2 "*) no "it is still the one from before" ;;
        absent | *' '*) ;;
        *) unknown "it runs; whether it is a new one is not known: nothing says what ran before the launch" ;;
    esac
    say "a new one runs"
}
main "$@" </dev/null
