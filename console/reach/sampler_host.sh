# Runs on the host under a plain /bin/sh (POSIX, busybox too) where python3 cannot run the other script; see sampler.py.
# Arguments: LABEL MARK NODE_EVERY GPU_EVERY BEAT_LIMIT SLOW_AFTER SLOW_LIMIT GPU_FIELDS LOADER_GUARD. Writes no file.
# Three processes: this loop, a reader of heartbeats, and a guard that counts seconds since the last one and ends the
# whole session. The guard works also when this loop hangs in a write that a dead connection never takes.
root=$LANESWAP_SAMPLER_ROOT
mark=$2 every=$3 gpu_every=${4%.*} beat_limit=${5%.*} slow_after=${6%.*} slow_limit=${7%.*} fields=$8 loader_guard=$9
main=$$ guard= reader= gpu= gpu_due=0 gpu_begun=0 gpu_said=0 number=0 errors=0 ticks=0 nodes= complained=-60 wall=
[ "$beat_limit" -ge 1 ] || beat_limit=1
[ "$slow_limit" -ge 1 ] || slow_limit=1
[ "$gpu_every" -ge 1 ] || gpu_every=1
exec 3<&0

# sshd starts each command in a session of its own; where something else did not, only what is known is ended
end_all() {
    read -r own _ </proc/self/stat
    for one in $main $gpu $guard $reader; do
        [ "$one" = "$own" ] || kill -KILL "$one"
    done
    for stat in /proc/[0-9]*/stat; do
        read -r line <"$stat" || continue
        one=${line%% *}
        # behind the name: state, parent, group, session
        set -- ${line##*) }
        [ "$4" = "$main" ] && [ "$one" != "$own" ] && kill -KILL "$one"
    done
    kill -KILL "$own"
}

watch_beats() {
    step=$((beat_limit / 6)) left=$beat_limit
    [ "$step" -ge 1 ] || step=1
    trap 'left=$beat_limit' USR1
    while [ "$left" -gt 0 ]; do
        sleep "$step" & wait $!
        left=$((left - step))
    done
    end_all
}

# every line counts as a heartbeat. A set of looks is refused when it comes, and about twice a minute after that
read_beats() {
    wanted= beats=0
    while read -r row; do
        kill -USR1 "$guard" || break
        case $row in
        'look 0') wanted= ;;
        'look '*) wanted=1 beats=0 ;;
        beat) beats=$((beats + 1)) ;;
        *) continue ;;
        esac
        if [ -n "$wanted" ] && [ $((beats % 6)) = 0 ]; then refuse_looks & fi
    done
    end_all
}

# a process of its own: a stuck connection must not hold up the heartbeats. Without a number, as it may come at any time
refuse_looks() {
    clock
    say "\"k\":\"error\",$dates,\"s\":\"look\",\"e\":\"folders, files, processes and units: needs python3 on the host\""
}

clock() {
    read -r up _ </proc/uptime || up=$(date +%s)
    now=${up%.*}
    # the date is asked once a minute only: it costs a process
    if [ -z "$wall" ] || [ $((now - wall_at)) -ge 60 ]; then wall=$(date +%s) wall_at=$now; fi
    dates="\"m\":$up,\"w\":$((wall + now - wall_at))"
}

# text of a file as the inside of a JSON string, in $text; these files hold no control characters
slurp() {
    text=
    [ -r "$1" ] || return 1
    while IFS= read -r row || [ -n "$row" ]; do
        case $row in *[\"\\]*) continue ;; esac
        text="$text$row\\n"
    done <"$1"
}

encode() { sed -e 's/[\\"]/\\&/g' -e 's/$/\\n/' | tr -d '\n\r'; }

say() { printf '\n%s {%s}\n' "$mark" "$1" || end_all; }

error() {
    say "\"k\":\"error\",\"n\":$errors,$dates,\"e\":\"$2\",\"s\":\"$1\""
    errors=$((errors + 1))
}

value() {
    text=
    [ -r "$1" ] && IFS= read -r text <"$1"
    case $text in *[\"\\]*) text= ;; esac
}

facts() {
    clock
    value "$root/proc/sys/kernel/hostname" && hostname=$text
    value "$root/proc/sys/kernel/osrelease" && kernel=$text
    value "$root/proc/sys/kernel/random/boot_id" && boot=$text
    value "$root/sys/devices/system/cpu/online"
    cpus=0
    saved=$IFS IFS=,
    for part in $text; do cpus=$((cpus + ${part#*-} - ${part%-*} + 1)); done
    IFS=$saved
    page=$(getconf PAGESIZE 2>/dev/null)
    smi=$(command -v nvidia-smi) || smi='nvidia-smi is not on PATH'
    say "\"k\":\"facts\",\"n\":0,$dates,\"t\":{\"hostname\":\"$hostname\",\"kernel\":\"$kernel\",\"boot_id\":\"$boot\",\
\"cpus\":\"$cpus\",\"page_size\":\"$page\",\"python\":\"sh\",\"gpu\":\"$smi\"}"
}

scan_nodes() {
    nodes=
    for folder in "$root"/sys/devices/system/node/node[0-9]*; do
        [ -r "$folder/meminfo" ] || continue
        read -r _ _ _ total _ <"$folder/meminfo"
        [ "$total" = 0 ] || nodes="$nodes ${folder##*/node}"
    done
}

numa() {
    [ $((ticks % 60)) = 0 ] && scan_nodes
    parts=
    for one in $nodes; do
        folder=$root/sys/devices/system/node/node$one
        value "$folder/cpulist"
        list=$text
        slurp "$folder/meminfo" && parts="${parts}node $one cpulist $list\\n$text"
    done
}

node() {
    begun=$up
    if slurp "$root/proc/meminfo" && [ -n "$text" ]; then :; else
        if [ $((now - complained)) -ge 30 ]; then
            complained=$now
            error /proc/meminfo '/proc/meminfo: cannot be read'
        fi
        return
    fi
    texts="\"meminfo\":\"$text\""
    case $text in *MemAvailable:*) ;; *)
        [ -r "$root/proc/zoneinfo" ] && texts="$texts,\"zoneinfo\":\"$(encode <"$root/proc/zoneinfo")\"" ;;
    esac
    slurp "$root/proc/pressure/memory" && texts="$texts,\"psi_memory\":\"$text\""
    numa
    [ -n "$parts" ] && texts="$texts,\"numa\":\"$parts\""
    clock
    say "\"k\":\"node\",\"n\":$number,$dates,\"b\":$begun,\"t\":{$texts}"
    number=$((number + 1))
}

limited() { if command -v timeout >/dev/null; then timeout -s KILL "$slow_limit" "$@"; else "$@"; fi; }

# in the background: one frame when it has answered; it has no number, as it may come between any two others
ask_gpu() {
    csv=$(limited nvidia-smi "--query-gpu=$fields" --format=csv,noheader,nounits 2>&1)
    code=$?
    begun=$up
    clock
    body=$(printf '%s\n' "$csv" | encode)
    if [ "$code" = 0 ]; then
        say "\"k\":\"gpu\",$dates,\"b\":$begun,\"t\":{\"csv\":\"$body\"}"
    elif [ "$code" -ge 124 ] && [ $((now - ${begun%.*})) -ge "$slow_limit" ]; then
        say "\"k\":\"error\",$dates,\"b\":$begun,\"s\":\"nvidia-smi\",\"e\":\"nvidia-smi killed after $slow_limit s without an answer\""
    else
        say "\"k\":\"error\",$dates,\"b\":$begun,\"s\":\"nvidia-smi\",\"e\":\"nvidia-smi exited $code: ${body%%\\n*}\""
    fi
}

gpu_tick() {
    if [ -n "$gpu" ] && kill -0 "$gpu"; then
        age=$((now - gpu_begun))
        if [ "$age" -ge "$slow_after" ] && [ $((now - gpu_said)) -ge "$gpu_every" ]; then
            gpu_said=$now
            error nvidia-smi "nvidia-smi has not answered for $age s"
        fi
        return
    fi
    gpu=
    [ "$now" -ge "$gpu_due" ] || return
    gpu_due=$((now + 60))
    command -v nvidia-smi >/dev/null || return
    gpu_due=$((now + gpu_every)) gpu_begun=$now gpu_said=0
    ask_gpu &
    gpu=$!
}

sample() {
    exec 2>/dev/null
    # until the guard has set its trap, a signal would end it
    trap '' USR1
    watch_beats >/dev/null &
    guard=$!
    trap - USR1
    kill "$loader_guard"
    read_beats <&3 &
    reader=$!
    exec 3<&-
    trap end_all HUP INT TERM
    facts
    while :; do
        clock
        node
        gpu_tick
        ticks=$((ticks + 1))
        sleep "$every" || sleep 1
    done
}

sample
