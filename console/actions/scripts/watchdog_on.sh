# MANAGER UNIT FLAG...: removes the flags that hold a watchdog back, and starts its unit (`-`: none) where it is not active.
main() {
    manager=$1 unit=$2
    shift 2
    for flag in "$@"; do
        path=$(home "$flag")
        [ -e "$path" ] || [ -L "$path" ] || continue
        rm -f -- "$path" 2>/dev/null || sudo -n rm -f -- "$path" 2>/dev/null || cannot "$flag cannot be removed"
        say "$flag removed"
    done
    [ "$unit" = - ] && exit 0
    control 20 "$manager" is-active -- "$unit" >/dev/null 2>&1 && exit 0
    job 20 "$manager" start "$unit"
}
main "$@" </dev/null
