# SOCKET ID POLICY INSTEAD EVIDENCE STATE [BASE HEALTH NAME SECONDS]: starts one container by id.
# POLICY: its restart policy from now on; `-`: the one that STATE kept of it, if any. A policy that STATE kept of INSTEAD,
# the container that served before (`-`: none), goes before POLICY. With BASE it waits until the lane
# serves NAME there, at most SECONDS, and ends at once when the container does.
main() {
    engine "$1"
    id=$2 policy=$3 instead=$4 evidence=$5 state=$6 base=${7:-} health=${8:-} name=${9:-} most=${10:-0}
    look "$id" '{{.State.Status}} {{.State.StartedAt}} {{.HostConfig.RestartPolicy.Name}}:{{.HostConfig.RestartPolicy.MaximumRetryCount}}'
    case $? in
        1) no "container removed" ;;
        2) cannot "$seen" ;;
    esac
    # shellcheck disable=SC2086
    set -- $seen
    status=$1 before=$2 former=${3%:0}
    began=$(now)
    case $status in
        running) say "it runs already" ;;
        paused) ask 60 unpause "$id" >/dev/null || no "it is paused, and cannot be unpaused" ;;
        *) start ;;
    esac
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
    mkdir -p "$evidence" 2>/dev/null
    said=$(ask 120 start "$id" 2>&1 >/dev/null) || no "docker start: $(printf '%.300s' "$said" | tr '\n\t' '  ')"
    say "$before" 2>/dev/null >"$evidence/started.$(short "$id")"
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
    look "$id" '{{.State.Status}} {{.State.ExitCode}} {{.State.OOMKilled}}'
    case $? in
        1) no "container removed while it started" ;;
        2) return ;;
    esac
    case $seen in running* | restarting*) return ;; esac
    # shellcheck disable=SC2086
    set -- $seen
    oom=''
    [ "$3" != true ] || oom=', out of memory'
    no "it is $1 with $2$oom after $(($(now) - began)) s"
}
main "$@" </dev/null
