# SOCKET ID EVIDENCE: whether the container runs, or was not started by this operation yet. For watching.
main() {
    engine "$1"
    [ -e "$3/started.$(short "$2")" ] || { say "not started yet" && exit 0; }
    look "$2" '{{.State.Status}} {{.State.ExitCode}}'
    case $? in
        1) no "container removed" ;;
        2) unknown "$seen" ;;
    esac
    case $seen in running* | restarting* | paused*) say "${seen%% *}" && exit 0 ;; esac
    no "it is ${seen%% *} with ${seen#* }"
}
main "$@" </dev/null
