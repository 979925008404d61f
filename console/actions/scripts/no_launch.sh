# PATTERN...: whether no launch is under way on this host: no process of a launcher, none that makes a container.
main() {
    [ -r /proc/1/cmdline ] || unknown "others' processes are hidden from this account"
    for entry in /proc/[0-9]*; do
        pid=${entry#/proc/}
        command_of "$pid" || continue
        for part in "$@"; do
            if runs_it "$part" || makes_it "$part"; then
                birth "$pid" || continue
                case $mood in Z | X) continue ;; esac
                no "a launch is under way: pid $pid, $(printf '%.120s' "$line")"
            fi
        done
    done
    say "none"
}

makes_it() {
    # shellcheck disable=SC2254
    case $line in *$1*) ;; *) return 1 ;; esac
    first=${line%% *}
    case ${first##*/} in docker | ssh | podman) return 0 ;; esac
    return 1
}
main "$@" </dev/null
