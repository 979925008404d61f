# SOCKET ID POLICY INSTEAD EVIDENCE STATES [BASE HEALTH NAME SECONDS]: starts one container by id.
# POLICY: its restart policy from now on; `-`: the one that STATES (folders, with `:` between) kept of it, if any. One that
# was kept of INSTEAD, the container that served before (`-`: none), goes before POLICY. With BASE it waits until the lane
# serves NAME there, at most SECONDS, and ends at once when the container does, or its policy restarts it.
main() {
    engine "$1"
    id=$2 policy=$3 instead=$4 evidence=$5 states=$6 base=${7:-} health=${8:-} name=${9:-} most=${10:-0}
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
    files=''
    if [ "$instead" != - ]; then
        kept_of "$instead"
        policy=${kept:-$policy}
    fi
    kept_of "$id"
    [ "$policy" != - ] || policy=$kept
    case $policy in
        no | always | unless-stopped | on-failure | on-failure:[0-9]*) ;;
        *) policy=$former ;;
    esac
    if [ "$policy" != "$former" ]; then
        ask 20 update --restart "$policy" "$id" >/dev/null || { say "restart policy stays $former" && return; }
        say "restart policy was $former, is $policy"
    fi
    printf '%s' "$files" | while IFS= read -r file; do rm -f -- "$file" 2>/dev/null; done
}

# kept_of ID: sets `kept`, the policy that a stop set aside of it, the newest of all places; '' where there is none, or
# where it was given another one since. Adds the files to `files`.
kept_of() {
    kept='' put='' newest=''
    spare "$states" || spare=''
    IFS=:
    set -f
    # shellcheck disable=SC2086
    set -- "$1" $states $spare
    set +f
    unset IFS
    whose=$1
    shift
    for one in "$@"; do
        file="$one/restart-policy.$(short "$whose")"
        [ -f "$file" ] && [ ! -L "$file" ] && [ -r "$file" ] || continue
        files="$files$file
"
        if [ -z "$newest" ] || [ "$file" -nt "$newest" ]; then newest=$file; fi
    done
    [ -n "$newest" ] || return 0
    { read -r kept put _ <"$newest"; } 2>/dev/null
    [ -n "$put" ] || return 0
    look "$whose" '{{.HostConfig.RestartPolicy.Name}}:{{.HostConfig.RestartPolicy.MaximumRetryCount}}' || return 0
    case ${seen%:0} in "$put" | "$kept" | :) return 0 ;; esac
    [ "$whose" = "$id" ] && [ "$policy" != - ] || say "$(short "$whose") was given restart policy ${seen%:0} since its $kept was set aside: that one counts"
    kept=''
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
