# SOCKET CONTAINER FORMER: whether the rank's new container has not ended; FORMER is the id of the one before, `-`: none.
main() {
    engine "$1"
    look "$2" '{{.Id}} {{.State.Status}} {{.State.ExitCode}} {{.State.OOMKilled}} {{.RestartCount}}'
    case $? in
        1) say "not made yet" && exit 0 ;;
        2) unknown "$seen" ;;
    esac
    former=$3
    # shellcheck disable=SC2086
    set -- $seen
    case $1 in "$former"*) say "not replaced yet" && exit 0 ;; esac
    if restarted "$5" 0 "$2" "$3"; then no "$words"; fi
    case $2 in
        running | created | paused) say "$2" && exit 0 ;;
    esac
    oom=''
    [ "$4" != true ] || oom=', out of memory'
    no "it is $2 with $3$oom"
}
main "$@" </dev/null
