# SOCKET ID: whether the container has ended (or is gone).
main() {
    engine "$1"
    look "$2" '{{.State.Status}} {{.State.ExitCode}}'
    case $? in
        1) say "it is no longer there" && exit 0 ;;
        2) unknown "$seen" ;;
    esac
    case $seen in
        exited* | created* | dead*) say "$seen" && exit 0 ;;
        running* | paused* | restarting* | removing*) no "${seen%% *}" ;;
    esac
    unknown "$seen"
}
main "$@" </dev/null
