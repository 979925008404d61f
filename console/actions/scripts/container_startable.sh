# SOCKET ID IMAGE: whether the container is there and docker start can bring it back; IMAGE is its image id, `-` for any.
main() {
    engine "$1"
    look "$2" '{{.State.Status}} {{.HostConfig.AutoRemove}} {{.Image}}'
    case $? in
        1) no "container removed" ;;
        2) unknown "$seen" ;;
    esac
    # shellcheck disable=SC2086
    set -- $seen "$3"
    case $1 in
        exited | created | running | paused | restarting) ;;
        dead | removing) no "container is $1, it cannot be started again" ;;
        *) unknown "container is $1" ;;
    esac
    [ "$2" != true ] || no "container removes itself when it stops (--rm)"
    [ "$4" = - ] || [ "$3" = "$4" ] || no "its image is another one"
    say "$1"
}
main "$@" </dev/null
