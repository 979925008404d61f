# SOCKET CONTAINER: whether no container of that name is there.
main() {
    engine "$1"
    look "$2" '{{.State.Status}}'
    case $? in
        0) no "it is there, $seen" ;;
        2) unknown "$seen" ;;
    esac
    say "none is there"
}
main "$@" </dev/null
