# SOCKET ID GRACE POLICY STUCK EVIDENCE STATE: ends one container, waits at most STUCK seconds until its processes are gone.
# POLICY: its restart policy from now on, `-` leaves it; the former one is kept in STATE for its next start.
main() {
    engine "$1"
    id=$2 grace=$3 policy=$4 stuck=$5 evidence=$6 state=$7
    look "$id" '{{.State.Status}} {{.State.Pid}} {{.HostConfig.RestartPolicy.Name}}:{{.HostConfig.RestartPolicy.MaximumRetryCount}} {{.State.StartedAt}}'
    case $? in
        1) say "$(short "$id") is no longer there" && exit 0 ;;
        2) cannot "$seen" ;;
    esac
    # shellcheck disable=SC2086
    set -- $seen
    status=$1 pid=$2 former=${3%:0} begun=$4
    [ "$policy" = - ] || aside
    case $status in exited | created | dead) say "it is $status" && exit 0 ;; esac
    mkdir -p "$evidence" 2>/dev/null
    pids="$evidence/pids.$(short "$id")"
    alive=$(processes)
    printf '%s\n' "$alive" 2>/dev/null >"$pids.new" && mv "$pids.new" "$pids" 2>/dev/null
    say "$begun" 2>/dev/null >"$evidence/before.$(short "$id")"
    if [ "$status" = paused ]; then
        ask 60 unpause "$id" >/dev/null || no "it is paused, and cannot be unpaused"
    fi
    began=$(now)
    if ! ask $((grace + 60)) stop -t "$grace" "$id" >/dev/null; then
        look "$id" '{{.State.Status}}'
        [ $? -ne 1 ] || { say "it removed itself when it ended (--rm)" && exit 0; }
        [ "$seen" = exited ] || no "docker stop failed, it is ${seen}"
    fi
    until_gone
    say "stopped in $(($(now) - began)) s"
}

aside() {
    case $former in "$policy" | :) return ;; esac
    lost=''
    if ! keep "$state"; then
        mkdir -m 700 "/dev/shm/laneswap-$(id -u)" 2>/dev/null
        # what was stopped stays down by this one: better not set aside than lost
        if spare "$state" && mkdir -p "$spare" 2>/dev/null && keep "$spare"; then :; elif [ "$former" = unless-stopped ]; then
            say "restart policy stays $former: it could not be kept anywhere, and what was stopped stays down by it"
            return
        else
            # by any other it would come back beside what serves then: that counts for more
            lost="; it could not be kept anywhere, give it back by hand: docker update --restart $former $(short "$id")"
        fi
    fi
    ask 20 update --restart "$policy" "$id" >/dev/null || no "its restart policy $former cannot be set aside"
    say "restart policy was $former, is $policy$lost"
}

# keep FOLDER: writes down there what its policy is, and what it becomes: one that has another then was given it by hand.
keep() {
    kept="$1/restart-policy.$(short "$id")"
    { say "$former $policy" >"$kept.new" && mv "$kept.new" "$kept"; } 2>/dev/null
}

# its control groups say so without a question to docker, which would begin a ps of its own for the answer
by_group() {
    group=
    while IFS=: read -r _ kinds path; do
        case $kinds in
            '') group=/sys/fs/cgroup$path ;;
            pids) group=/sys/fs/cgroup/pids$path ;;
            *) continue ;;
        esac
        # no group but one that docker made for this container
        case $path in *"$id"*) break ;; esac
        group=
    done <"/proc/$pid/cgroup" || return 1
    [ -n "$group" ] || return 1
    # one below which more lie than are looked at here is left to docker
    for one in "$group"/*/*/*/; do [ ! -d "$one" ] || return 1; done
    found=$(cat "$group/cgroup.procs" "$group"/*/cgroup.procs "$group"/*/*/cgroup.procs)
    case "
$found
" in *"
$pid
"*) say "$found" ;; *) return 1 ;; esac
} 2>/dev/null

of_it() {
    if by_group; then
        return
    elif told "top	$id"; then
        [ "${answer%% *}" = 0 ] && printf '%s\n' "${answer#??}" | tr ' ' '\n'
    else
        ask 20 top "$id" -eo pid 2>/dev/null
    fi
}

processes() {
    { of_it || say "$pid"; } | while read -r one _; do
        case $one in '' | *[!0-9]* | 0) continue ;; esac
        birth "$one" && say "$one $born"
    done
}

until_gone() {
    tries=0
    while :; do
        left=$(printf '%s\n' "$alive" | while read -r one start; do
            [ -n "$one" ] && lives "$one" "$start" && say "$one in state $mood"
        done | head -n 3 | tr '\n' ',')
        [ -n "$left" ] || return 0
        tries=$((tries + 1))
        [ "$tries" -lt $((stuck * 10)) ] || no "STUCK: the container ended, its process ${left%,} does not die"
        sleep 0.1
    done
}

main "$@" </dev/null
