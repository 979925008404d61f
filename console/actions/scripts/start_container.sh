# SOCKET ID POLICY INSTEAD EVIDENCE STATE [BASE HEALTH NAME SECONDS]: starts one container by id.
# POLICY: its restart policy from now on; `-`: the one that STATE kept of it, if any. A policy that STATE kept of INSTEAD,
# the container that served before (`-`: none), goes before POLICY. With BASE it waits until the lane
# serves NAME there, at most SECONDS, and ends at once when the container does, or its policy restarts it.
main() {
    engine "$1"
    id=$2 policy=$3 instead=$4 evidence=$5 state=$6 base=${7:-} health=${8:-} name=${9:-} most=${10:-0}
    look "$id" '{{.State.Status}} {{.State.StartedAt}} {{.HostConfig.RestartPolicy.Name}}:{{.HostConfig.RestartPolicy.MaximumRetryCount}} {{.RestartCount}}'
    case $? in
        1) no "container removed" ;;
        2) cannot "$seen" ;;
    esac
    # shellcheck disable=SC2086
    set -- $seen
    status=$1 before=$2 former=${3%:0} restarts=$4
    began=$(now)
    case $status in
        running) say "it runs already" ;;
        paused) ask 60 unpause "$id" >/dev/null || no "it is paused, and cannot be unpaused" ;;
        *) start ;;
    esac
    since
    returns
    [ -n "$base" ] || { say "started" && exit 0; }
    until_serves
}

start() {
    port=${base##*:}
    case ${port%/} in
        '' | *[!0-9]*) ;;
        *) if hears "${port%/}"; then no "somebody else listens on ${port%/}: it could not serve there"; fi ;;
    esac
    said=$(ask 120 start "$id" 2>&1 >/dev/null) || no "docker start: $(printf '%.300s' "$said" | tr '\n\t' '  ')"
}

# since: sets `floor`, how often its policy had restarted it when this operation began with it, and notes it: for
# container_runs.sh, and for a second try of this step.
since() {
    started="$evidence/started.$(short "$id")"
    floor=''
    case $status in running | paused) { read -r _ floor _ <"$started"; } 2>/dev/null ;; esac
    if [ -z "$floor" ] && floor=$restarts && [ "$floor" != 0 ] && [ "$status" != running ] && [ "$status" != paused ]; then
        # docker start counts from 0 again, unless it found it in the pause between two restarts
        look "$id" '{{.RestartCount}}' && [ "$seen" -ge "$floor" ] 2>/dev/null || floor=0
    fi
    mkdir -p "$evidence" 2>/dev/null
    say "$before $floor" 2>/dev/null >"$started"
}

returns() {
    kept="$state/restart-policy.$(short "$id")"
    others="$state/restart-policy.$(short "$instead")"
    if [ "$instead" != - ] && [ -r "$others" ]; then
        read -r policy <"$others"
    elif [ "$policy" = - ]; then
        [ -r "$kept" ] || return
        read -r policy <"$kept"
    fi
    case $policy in no | always | unless-stopped | on-failure | on-failure:[0-9]*) ;; *) return ;; esac
    if [ "$policy" != "$former" ]; then
        ask 20 update --restart "$policy" "$id" >/dev/null || { say "restart policy stays $former" && return; }
        say "restart policy was $former, is $policy"
    fi
    rm -f "$kept" 2>/dev/null
    [ "$instead" = - ] || rm -f "$others" 2>/dev/null
}

until_serves() {
    tries=0 looked=$began
    while :; do
        if serves "$base" "$health" "$name"; then
            say "$words after $(($(now) - began)) s"
            exit 0
        fi
        tries=$((tries + 1))
        # by the clock: another program that takes the port and never answers holds each question for long
        if [ $(($(now) - looked)) -ge 2 ]; then
            looked=$(now)
            still_runs
        fi
        [ $(($(now) - began)) -lt "$most" ] || no "does not serve after $most s: $words"
        if [ "$code" = 000 ] && [ "$tries" -lt 150 ]; then sleep 0.2; else sleep 1; fi
    done
}

still_runs() {
    look "$id" '{{.State.Status}} {{.State.ExitCode}} {{.State.OOMKilled}} {{.RestartCount}}'
    case $? in
        1) no "container removed while it started" ;;
        2) return ;;
    esac
    # shellcheck disable=SC2086
    set -- $seen
    if restarted "$4" "$floor" "$1" "$2"; then no "$words, after $(($(now) - began)) s"; fi
    [ "$1" != running ] || return
    oom=''
    [ "$3" != true ] || oom=', out of memory'
    no "it is $1 with $2$oom after $(($(now) - began)) s"
}
main "$@" </dev/null
