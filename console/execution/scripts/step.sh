# What became of a step, read from its folder and its service manager: the part of starter.sh that starts and ends nothing.
verb=${1:-}
me=$(id -un) uid=$(id -u)
[ -n "${XDG_RUNTIME_DIR-}" ] || XDG_RUNTIME_DIR=/run/user/$uid
export XDG_RUNTIME_DIR

step_name() {
    word "$1" || cannot "not an operation: $1"
    case $2 in
    '' | [!a-z0-9]* | *[!a-z0-9.-]*) cannot "not a step: $2" ;;
    esac
    [ "${#2}" -le 100 ] || cannot "not a step: $2"
    op=$1 step=$2 S=$D/ops/$1/$2 mark=$D/ops/$1/$2@stop unit=laneswap-$1-$2.service
    for one in "$D/ops" "$D/ops/$1" "$S"; do
        [ ! -L "$one" ] || cannot "$one is a symbolic link, which is refused"
    done
}

# the state and start time of process $1; fails if it is gone
process() {
    row=
    # builtins alone, as this is asked of every process; a name may hold a line end, the numbers stand in the last line
    { while read -r part; do row=$part; done <"/proc/$1/stat"; } 2>/dev/null
    # behind the name: state, parent, group, session and so on
    set -- ${row##*) }
    [ "$#" -ge 20 ] || return 1
    p_state=$1 p_session=$4 p_start=${20}
}

# whether process $1 still is the one that started at $2
alive() {
    number "$1" && number "$2" && [ "$1" -gt 1 ] && process "$1" && [ "$p_start" = "$2" ] && [ "$p_state" != Z ] && [ "$p_state" != X ]
}

# what S says: begun (pid start time), mode, owner, supervisor, boot
read_step() {
    pid= start= began= mode= owner= boot=unknown supervisor= supervisor_start=
    if fields "$S/mode"; then
        case $f1 in
        user | system | none) ! number "$f2" || mode=$f1 owner=$f2 ;;
        esac
    fi
    if first_line "$S/boot" && read -r now_boot </proc/sys/kernel/random/boot_id; then
        if [ "$text" = "$now_boot" ]; then boot=same; else boot=changed; fi
    fi
    if fields "$S/begun" && number "$f1" && number "$f2" && number "$f3"; then
        pid=$f1 start=$f2 began=$f3
    fi
    if [ "$mode" = none ] && fields "$S/unit" && [ "$f1" = pid ] && number "$f2" && number "$f3"; then
        supervisor=$f2 supervisor_start=$f3
    fi
}

# the service manager that holds the unit, asked. Stdin is the script's or the step's: nothing here may read of it
manager() {
    case $mode:$owner in
    system:*) timeout 10 systemctl "$@" </dev/null ;;
    user:"$uid") timeout 10 systemctl --user "$@" </dev/null ;;
    *) [ "$uid" = 0 ] && timeout 10 systemctl --user -M "$owner@.host" "$@" </dev/null ;;
    esac
}

# acting on it may take sudo
acting_manager() {
    case $uid:$mode:$owner in
    0:*) manager "$@" ;;
    *:system:*) timeout 10 sudo -n systemctl "$@" </dev/null ;;
    *:user:"$uid") manager "$@" ;;
    *) timeout 10 sudo -n systemctl --user -M "$owner@.host" "$@" </dev/null ;;
    esac
}

# load, active, result, code and status of the unit; fails if its manager cannot be asked
ask_unit() {
    load= active= u_result= u_code= u_status= loaded=
    said=$(manager show -p LoadState,ActiveState,Result,ExecMainCode,ExecMainStatus "$unit" 2>/dev/null) || return 1
    while IFS= read -r row; do
        case $row in
        LoadState=*) load=${row#*=} ;;
        ActiveState=*) active=${row#*=} ;;
        Result=*) u_result=${row#*=} ;;
        ExecMainCode=*) u_code=${row#*=} ;;
        ExecMainStatus=*) u_status=${row#*=} ;;
        esac
    done <<LANESWAP_UNIT
$said
LANESWAP_UNIT
    [ -n "$load" ]
}

# a systemd result in our words: sets state, code, signal, words. $4: whether an operator had asked it to stop
judge() {
    state=failed code= signal= words=
    case $2 in
    exited) number "$3" && code=$3 ;;
    killed | dumped) signal=$3 ;;
    esac
    case $1 in
    success)
        if [ "$code" = 0 ]; then
            state=done
        elif [ -n "$signal" ]; then
            state=stopped words="ended by signal $signal"
        fi
        ;;
    exit-code) words="exit status $code" ;;
    signal | core-dump) words="ended by signal ${signal:-unknown}" ;;
    timeout) words="ended at its time limit" ;;
    oom-kill) words="ended for its memory: the cap was reached, or the host ran out" ;;
    *) words="the service manager says $1" ;;
    esac
    if [ "$4" = yes ]; then
        state=stopped words="stopped by an operator${code:+, exit status $code}${signal:+, by signal $signal}"
    fi
}

# the result file: sets state and ended; fails where there is none
read_result() {
    fields "$S/result" || return 1
    case $f5 in
    yes | no) ;;
    *) f1= ;;
    esac
    case $f1:$f2:$f3 in
    :* | *::* | *: | *[!0-9A-Za-z:+-]*) ;;
    *)
        if number "$f4" && [ -z "$f6" ]; then
            judge "$f1" "$f2" "$f3" "$f5"
            ended=$f4
            return 0
        fi
        ;;
    esac
    state=lost words="its result file is damaged"
}

# a unit that failed and could not write its result (a full disk) is still held by its manager
read_failed_unit() {
    case $u_code in
    1) u_code=exited ;;
    2) u_code=killed ;;
    3) u_code=dumped ;;
    *) u_code=none ;;
    esac
    if [ "$u_code" != exited ] && number "$u_status" && [ "$u_status" -gt 0 ]; then
        u_status=$(kill -l "$u_status" 2>/dev/null)
    fi
    stop_asked
    judge "$u_result" "$u_code" "$u_status" "$asked"
    words="$words; it could not write its result file"
}

stop_asked() {
    asked=no
    [ ! -e "$mark" ] || asked=yes
}

gone() {
    stop_asked
    if [ "$boot" = changed ]; then
        state=lost words="the host was restarted while it ran"
    elif [ "$asked" = yes ]; then
        state=stopped words="stopped by an operator; it left no result"
    else
        state=lost words="it is gone and left no result: it was killed, or its result could not be written"
    fi
}

# a unit that failed stays with its manager, and the machine counts as degraded, until somebody has looked at it
tidy() {
    case $mode:$f1 in
    *:success | none:* | :*) return 0 ;;
    esac
    [ ! -e "$S/tidied" ] && [ -O "$S" ] && ask_unit || return 0
    case $active in
    failed) acting_manager reset-failed "$unit" >/dev/null 2>&1 || return 0 ;;
    inactive) ;;
    # its result is written a moment before it has failed
    *) return 0 ;;
    esac
    : >"$S/tidied"
}

# whether anything of a step without result runs: sets state to running, or fails
is_running() {
    state=running words=
    [ "$boot" != changed ] || return 1
    ! alive "$pid" "$start" || return 0
    case $mode in
    none)
        ! alive "$supervisor" "$supervisor_start" || return 0
        [ "$owner" = "$uid" ] || [ "$uid" = 0 ] || [ -e /proc/1/stat ] ||
            cannot "/proc hides processes of other accounts from $me (hidepid): whether $op/$step runs is unknown"
        return 1
        ;;
    user | system)
        if ask_unit; then
            loaded=$load
            case $active in
            active | activating | deactivating | reloading) return 0 ;;
            esac
            return 1
        fi
        # no unit outlives its manager
        [ "$mode" != user ] || timeout 10 systemctl is-active --quiet "user@$owner.service" </dev/null 2>/dev/null || return 1
        cannot "$me cannot ask the service manager of account $owner whether $unit runs: it is unknown"
        ;;
    *) return 1 ;;
    esac
}

# sets everything that an answer has. $1: `locked` if D/lock is ours, so that no starter is at work
look() {
    state=absent code= signal= began= ended= pid= boot=unknown load= loaded= words= size=0 mode=
    if [ ! -d "$S" ]; then
        stop_asked
        [ "$asked" = no ] || state=stopped words="stopped by an operator before it began"
        return 0
    fi
    read_step
    [ -L "$S/log" ] || [ ! -f "$S/log" ] || size=$(wc -c <"$S/log" | tr -d ' ')
    if read_result; then
        tidy
        return 0
    fi
    ! is_running || return 0
    # between the two questions it may have ended
    ! read_result || return 0
    if [ "$load" = loaded ] && [ "$active" = failed ] && [ ! -e "$S/withdrawn" ]; then
        read_failed_unit
    elif [ -n "$pid" ]; then
        gone
    elif [ "${1:-}" = locked ]; then
        stop_asked
        state=absent words="its start was cut off before it began"
        [ "$asked" = no ] || state=stopped words="stopped by an operator before it began"
    elif [ -f "$D/lock" ] && [ ! -L "$D/lock" ] && command exec 9>>"$D/lock" && flock -w 10 9; then
        look locked
        unlock
    else
        state=waiting words="another command starts it"
    fi
}

answer() {
    printf '%s\n' "state=$state" "code=$code" "signal=$signal" "began=$began" "ended=$ended" "unit=$unit" "mode=$mode" \
        "pid=$pid" "boot=$boot" "loadstate=$loaded" "size=$size" "log=$S/log" "words=$words" "$@"
}

# ---- what only reads

bytes_from() {
    number "$1" && number "$2" || cannot "not an offset and a number of bytes: $1 $2"
    plain "$S/log"
    [ -f "$S/log" ] || return 0
    tail -c "+$(($1 + 1))" "$S/log" | head -c "$2"
}

read_verb() {
    case $verb in
    state)
        look
        answer
        ;;
    follow)
        look
        answer "data=$(bytes_from "$1" "$2" | base64 | tr -d '\n')"
        ;;
    log) bytes_from "$1" "$2" ;;
    *) cannot "no such verb: $verb" ;;
    esac
}

