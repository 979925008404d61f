# SOCKET ID NAME: whether the container is called that.
main() {
    engine "$1"
    look "$2" '{{.Name}}'
    case $? in
        1) no "container removed" ;;
        2) unknown "$seen" ;;
    esac
    [ "${seen#/}" = "$3" ] || no "it is called ${seen#/}"
    say "$3"
}
main "$@" </dev/null
