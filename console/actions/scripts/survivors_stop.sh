# SOCKET CONTAINER FORMER GRACE: stops what a failed launch left here; the container from before it (FORMER) stays as it is.
main() {
    engine "$1"
    look "$2" '{{.Id}} {{.State.Status}}'
    case $? in
        1) say "no container is there" && exit 0 ;;
        2) cannot "$seen" ;;
    esac
    case ${seen%% *} in "$3"*) say "it is the one from before: left alone" && exit 0 ;; esac
    case ${seen#* } in exited | dead) say "it has ended" && exit 0 ;; esac
    ask $(($4 + 60)) stop -t "$4" "${seen%% *}" >/dev/null || no "docker stop failed"
    say "stopped"
}
main "$@" </dev/null
