# LOCK PATTERN ALSO: whether no watchdog runs here, also from inside its folder, and its lock is gone.
main() {
    [ -r /proc/1/cmdline ] || unknown "others' processes are hidden from this account"
    found=$(those "$2" "$3" | tr '\n' ' ')
    [ -z "$found" ] || no "runs as pid ${found% }"
    if [ "$1" != - ] && [ -e "$(home "$1")" ]; then no "its lock is still there"; fi
    say "none runs"
}
main "$@" </dev/null
