# LOCK PATTERN ALSO: whether the watchdog runs here, named by its lock.
main() {
    found=$(those "$2" "$3" | tr '\n' ' ')
    [ -n "$found" ] || { [ -r /proc/1/cmdline ] || unknown "others' processes are hidden from this account"; no "none runs"; }
    if [ "$1" != - ]; then
        locked "$1"
        case " $found" in *" $owner "*) ;; *) no "pid ${found% } runs, its lock names ${owner:-none}" ;; esac
        found=$owner
    fi
    say "runs as pid ${found% }"
}
main "$@" </dev/null
