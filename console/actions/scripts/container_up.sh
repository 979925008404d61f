# SOCKET ID: whether the container runs.
main() {
    engine "$1"
    look "$2" '{{.State.Status}} {{.State.ExitCode}}'
    case $? in
        1) no "container removed" ;;
        2) unknown "$seen" ;;
    esac
    [ "${seen%% *}" = running ] || no "it is ${seen%% *} with ${seen#* }"
    say running
}
main "$@" </dev/null
