# PID LOCK PATTERN ALSO EVIDENCE: asks the watchdog to end, removes its lock, waits until it is gone.
# PID: as it was read, `-` for none. Only a process that its lock or that reading names is signalled, and only while its
# command line is the watchdog's: by PATTERN, or by ALSO for one that was started by hand.
main() {
    given=$1 lock=$2 kind=$3 also=$4 evidence=$5
    locked "$lock"
    asked=''
    for pid in "$given" "$owner"; do
        number "$pid" || continue
        case " $asked " in *" $pid:"*) continue ;; esac
        signal "$pid"
    done
    if [ -z "$asked" ]; then
        others=$(those "$kind" "$also" | tr '\n' ' ')
        [ -z "$others" ] || no "pid ${others% } looks like it, but neither its log nor its lock names it: not signalled"
    fi
    if [ "$lock" != - ]; then
        locked "$lock"
        case " $asked " in
            *" $owner:"*) ours=yes ;;
            *) if [ -z "$owner" ] || ! watches "$owner"; then ours=yes; else ours=no; fi ;;
        esac
        [ "$ours" = yes ] || no "its lock names pid $owner by now: look again"
        rm -f -- "$(home "$lock")" || cannot "its lock cannot be removed"
    fi
    mkdir -p "$evidence" 2>/dev/null && say "$asked" 2>/dev/null >"$evidence/watchdog"
    tries=0
    for one in $asked; do
        while lives "${one%:*}" "${one#*:}"; do
            tries=$((tries + 1))
            [ "$tries" -lt 550 ] || no "STUCK: pid ${one%:*} was asked to end and goes on"
            sleep 0.2
        done
    done
    say "${asked:+ended pid}${asked:-none runs}"
}

# watches PID: whether it is the watchdog now.
watches() {
    command_of "$1" && { runs_it "$kind" || runs_it "$also"; }
}

signal() {
    birth "$1" || return
    case $mood in Z | X) return ;; esac
    start=$born
    if ! watches "$1"; then
        say "pid $1 is another program: not signalled"
        return
    fi
    birth "$1" && [ "$born" = "$start" ] || return
    kill -TERM "$1" 2>/dev/null || cannot "pid $1 belongs to another account: it cannot be signalled"
    asked="$asked $1:$start"
}
main "$@" </dev/null
