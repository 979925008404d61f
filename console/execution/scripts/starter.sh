# starter.sh start D OP STEP EPOCH MODE KEEPS LIMIT MEMORY [FILES BOOT KNOWN PATH] -- ARGV...   stdin is the step's; run it
#            with `sh -c`, never -s
#            state D OP STEP | follow D OP STEP OFFSET MOST | log D OP STEP OFFSET MOST | stop D OP STEP [SECONDS]
#            modes D [path]
# MODE: auto, user, system (systemd-run, with sudo unless root) or none (setsid). KEEPS: 1 if what the step leaves behind
# lives on, else 0. LIMIT: whole seconds. MEMORY: as systemd writes it, or - for no cap. A step begins once: whoever links
# S/begun first runs, whatever was sent twice. Its folder S belongs to the account that starts it and is written by no
# other; `stop` marks the step beside it. Nothing from S is believed before it is checked.
# FILES: `NAME:BYTES ...`, files of D that come first on stdin; all are on disk before anything is started, else exit 1.
# BOOT, KNOWN, PATH: what `modes D path` said before: boot, mode and login path. They spare the questions while they hold.

# ---- where it can run

groups_of_manager() {
    pid_of=$(timeout 10 systemctl show -p MainPID "user@$uid.service" </dev/null 2>/dev/null)
    pid_of=${pid_of#MainPID=}
    number "$pid_of" && [ "$pid_of" -gt 1 ] || return 0
    theirs=" $(sed -n 's/^Groups:[[:space:]]*//p' "/proc/$pid_of/status" | tr '\t' ' ') $(id -g) "
    for group in $(id -G); do
        case $theirs in
        *" $group "*) ;;
        *) return 1 ;;
        esac
    done
}

lingers() {
    [ -e "/var/lib/systemd/linger/$me" ] || [ "$(timeout 10 loginctl show-user "$me" -p Linger </dev/null 2>/dev/null)" = Linger=yes ]
}

# sets why_user, why_system: '' where steps can run there, else why not. $1: `auto` leaves out what does not matter then
places() {
    why_user= why_system=
    if [ ! -d /run/systemd/system ] || ! command -v systemd-run >/dev/null 2>&1; then
        why_user="no systemd here" why_system="no systemd here"
        return 0
    fi
    if [ "${1:-}" = auto ] && [ "$uid" = 0 ]; then return 0; fi
    if ! lingers; then
        why_user="$me does not linger, so its units end at logout (loginctl enable-linger $me)"
    else
        case $(timeout 10 systemctl --user is-system-running </dev/null 2>/dev/null) in
        running | degraded | starting)
            groups_of_manager || why_user="the user manager of $me began before $me joined a group; restart user@$uid.service"
            ;;
        *) why_user="the user manager of $me does not answer" ;;
        esac
    fi
    if [ "${1:-}" = auto ] && [ -z "$why_user" ]; then return 0; fi
    [ "$uid" = 0 ] || timeout 10 sudo -n systemd-run --version </dev/null >/dev/null 2>&1 || why_system="$me has no sudo without a password"
}

choose() {
    case $1 in
    auto)
        # root's steps belong to the machine
        if [ "$uid" = 0 ] && [ -z "$why_system" ]; then
            mode=system
        elif [ -z "$why_user" ]; then
            mode=user
        elif [ -z "$why_system" ]; then
            mode=system
        else
            mode=none
        fi
        ;;
    user) [ -z "$why_user" ] && mode=user || cannot "$why_user" ;;
    system) [ -z "$why_system" ] && mode=system || cannot "$why_system" ;;
    none) mode=none ;;
    *) cannot "not a mode: $1" ;;
    esac
}

# ---- start

# $1 as one word of a shell script, as $quoted
quote() {
    case $1 in
    *\'*) ;;
    *)
        quoted="'$1'"
        return
        ;;
    esac
    quoted=$(printf '%sx\n' "$1" | sed "s/'/'\\\\''/g")
    quoted="'${quoted%x}'"
}

# what a login would find its programs by: that alone is taken from it, no other variable of a start-up file or of ours
login_path() {
    shell=$(getent passwd "$me" 2>/dev/null | cut -d: -f7)
    [ -x "$shell" ] || shell=/bin/sh
    path=$(timeout 3 env -i HOME="$HOME" USER="$me" LOGNAME="$me" SHELL="$shell" PATH="$PATH" TERM=dumb \
        "$shell" -l -c 'printf "\nLANESWAP-PATH %s\n" "$PATH"' </dev/null 2>/dev/null | sed -n 's/^LANESWAP-PATH //p' | tail -n 1)
    case $path in
    /*) ;;
    *) path=$PATH ;;
    esac
    for one in /usr/local/sbin /usr/local/bin /usr/sbin /usr/bin /sbin /bin; do
        case ":$path:" in
        *":$one:"*) ;;
        *) path=$path:$one ;;
        esac
    done
    case ":$path:" in
    *":$HOME/.local/bin:"*) ;;
    *) [ ! -d "$HOME/.local/bin" ] || path=$HOME/.local/bin:$path ;;
    esac
}

# path, why_user and why_system out of lines
told() {
    path= why_user= why_system=
    while IFS= read -r row; do
        case $row in
        path=*) path=${row#*=} ;;
        user=*) why_user=${row#*=} ;;
        system=*) why_system=${row#*=} ;;
        esac
    done <<LANESWAP_TOLD
$1
LANESWAP_TOLD
    [ -n "$path" ] || cannot "this account's login path could not be read"
}

# S/run: claims the step, then becomes its command, which keeps its process id
write_run() {
    {
        cat <<LANESWAP_RUN
exec >>./log 2>&1 <./stdin
row=\$(cat "/proc/\$\$/stat")
set -- \${row##*) }
# a second copy of this has nothing to write on, and one of another manager cannot link: both end here
mv ./ready.$mode ./ready.\$\$ 2>/dev/null || exit 97
printf '%-63s\n' "\$\$ \${20} \$(date +%s)" 1<>./ready.\$\$ || exit 98
ln ./ready.\$\$ ./begun 2>/dev/null || { : >./second.$mode; exit 97; }
rm -f ./ready.\$\$
LANESWAP_RUN
        printf 'umask %s\n' "$laneswap_umask"
        quote "$HOME"
        printf 'cd %s || cd /\nexec env -i' "$quoted"
        for one in "PATH=$path" "HOME=$HOME" "USER=$me" "LOGNAME=$me" "SHELL=$shell" LANG=C.UTF-8 ${runtime:+"XDG_RUNTIME_DIR=$runtime"}; do
            quote "$one"
            printf ' %s' "$quoted"
        done
        # by which an end finds what has left its session, where there are no control groups
        [ "$mode" != none ] || printf ' LANESWAP_STEP=%s/%s' "$op" "$step"
        for one in "$@"; do
            quote "$one"
            printf ' %s' "$quoted"
        done
        echo
    } >"$S/run"
}

# S/parts: what S/ended and S/supervise share
write_parts() {
    cat >"$S/parts" <<'LANESWAP_PARTS'
# every process of session $2, and if $3 is given of that LANESWAP_STEP, gets signal $1; fails if there is none
end_session() {
    found=
    for stat in /proc/[0-9]*/stat; do
        row=
        # no process for each process: builtins alone. A name may hold a line end, the numbers stand in the last line
        { while read -r part; do row=$part; done <"$stat"; } 2>/dev/null
        one=${stat#/proc/} one=${one%/stat}
        set -- "$1" "$2" "${3:-}" ${row##*) }
        [ "$#" -ge 7 ] && [ "$7" = "$2" ] && [ "$4" != Z ] || continue
        spared "$one" || { kill -s "$1" "$one" 2>/dev/null; found=yes; }
    done
    if [ -n "${3:-}" ]; then
        for stat in $(grep -lszFx "LANESWAP_STEP=$3" /proc/[0-9]*/environ 2>/dev/null); do
            one=${stat#/proc/} one=${one%/environ}
            spared "$one" || { kill -s "$1" "$one" 2>/dev/null; found=yes; }
        done
    fi
    [ -n "$found" ]
}
spared() { [ "$1" = "$$" ] || [ "$1" = "${guard:-}" ]; }
# TERM, and KILL to what is left $1 seconds later
end_all() {
    end_session TERM "$2" "${3:-}" || return 0
    left=$1
    while [ "$left" -gt 0 ]; do
        sleep 1
        end_session 0 "$2" "${3:-}" || return 0
        left=$((left - 1))
    done
    end_session KILL "$2" "${3:-}"
}
# the space for it was taken at the start, so that a full disk does not swallow the result
result() {
    # what was second, or came once its start was taken back, has none to tell; and one that stands is the truth
    [ ! -e "./second.$mode" ] && [ ! -e ./withdrawn ] && [ ! -e ./result ] || exit 0
    asked=no
    [ ! -e "$mark" ] || asked=yes
    printf '%-127s\n' "$1 $2 $3 $(date +%s) $asked" 1<>./ending && sync ./ending && mv -f ./ending ./result && sync .
}
LANESWAP_PARTS
}

# S/ended: run by systemd once the command has ended
write_ended() {
    cat >"$S/ended" <<LANESWAP_ENDED
mark=$mark mode=$mode
. ./parts
if [ $keeps = 1 ] && { [ "\${EXIT_CODE:-}" != exited ] || [ -e "\$mark" ]; } && read -r main rest <./begun; then
    # what it had under way goes with it; what had made itself a session of its own stays
    end_all 5 "\$main"
fi
result "\${SERVICE_RESULT:-none}" "\${EXIT_CODE:-none}" "\${EXIT_STATUS:-none}"
LANESWAP_ENDED
}

# S/supervise: leader of the session in which the command runs where there is no systemd
write_supervise() {
    marked=
    [ "$keeps" = 1 ] || marked=$op/$step
    cat >"$S/supervise" <<LANESWAP_SUPERVISE
mark=$mark mode=none marked=$marked limit=$limit
umask 022
. ./parts
row=\$(cat "/proc/\$\$/stat")
set -- \${row##*) }
printf 'pid %s %s\n' "\$\$" "\${20}" >"./unit.\$\$" || exit 98
# whoever is second ends here
ln "./unit.\$\$" ./unit 2>/dev/null || exit 97
rm -f "./unit.\$\$"
echo 900 2>/dev/null >/proc/\$\$/oom_score_adj
# a TERM to the whole session must not keep this shell from writing the result
trap : TERM HUP INT
(
    trap 'kill \$waiting; exit' TERM
    read -r guard rest </proc/self/stat
    sleep "\$limit" & waiting=\$!
    wait "\$waiting"
    trap : TERM
    : >./timed
    end_all 10 "\$\$" "\$marked"
) </dev/null >/dev/null 2>&1 &
guard=\$!
/bin/sh ./run
code=\$?
kill "\$guard" 2>/dev/null
[ -n "\$marked" ] && end_all 5 "\$\$" "\$marked"
if [ -e ./timed ]; then kind=timeout; elif [ \$code = 0 ]; then kind=success; elif [ \$code -le 128 ]; then kind=exit-code; else kind=signal; fi
# a command that ends by itself with such a status cannot be told from one that a signal ended
if [ \$code -gt 128 ] && name=\$(kill -l \$((code - 128)) 2>/dev/null); then
    case \$name in TERM | HUP | INT | PIPE) [ \$kind != signal ] || kind=success ;; esac
    result \$kind killed "\$name"
else
    [ \$kind != signal ] || kind=exit-code
    result \$kind exited "\$code"
fi
LANESWAP_SUPERVISE
}

# what a step is made of; its folder is nobody else's and nothing in it counts before S/begun, so plain writes do
write_step() {
    # what the shell itself writes fails without a reason: a full disk is named by the first `cat`
    cat >"$S/stdin" && printf '%s\0' "$@" | cat >"$S/cmd" && printf '%s %s %s\n' "$mode" "$uid" "$me" >"$S/mode" &&
        cat /proc/sys/kernel/random/boot_id >"$S/boot" && printf '%s\n' "$epoch" >"$S/epoch" &&
        printf '%-63s\n' ready >"$S/ready.$mode" && printf '%-127s\n' ending >"$S/ending" && : >>"$S/log" || return 1
    case $mode in
    none) write_supervise || return 1 ;;
    *) printf '%s\n' "$unit" >"$S/unit" && write_ended || return 1 ;;
    esac
    write_parts && write_run "$@" && sync "$S"/* "$S"
}

prepare() {
    real_folder "$D/ops"
    real_folder "$D/ops/$op"
    if [ ! -d "$S" ]; then
        said=$(mkdir -m 755 "$S" 2>&1) || cannot "$S cannot be made: $(complaint "$said")"
    fi
    [ -O "$S" ] || cannot "$S was left behind by $(stat -c %U "$S"), who has to start it"
    # of a start that was cut off
    if [ -e "$S/withdrawn" ] && [ "$mode" != none ]; then
        # a unit that came once its start was taken back has failed, and its name is taken until that is forgotten
        acting_manager reset-failed "$unit" >/dev/null 2>&1
    fi
    rm -f "$S/unit" "$S/withdrawn"
    umask 022
    said=$(write_step "$@" 2>&1 9>&-) || cannot "$S cannot be written: $(complaint "$said")"
    umask 000
}

# the shell that goes into S before it believes a file there: a folder of that name may have been put in its place
entering() {
    entering="cd -P $S && test -O . && test -O ./$1 && test ! -L ./$1 && exec /bin/sh ./$1"
}

# no word of it has a dollar or percent sign, which systemd would expand
launch_unit() {
    entering ended
    stop_post="/bin/sh -c '$entering'"
    entering run
    set -- --quiet --unit="$unit" --description="laneswap $op $step" -p Type=exec -p RuntimeMaxSec="$limit" \
        -p TimeoutStopSec=10 -p OOMScoreAdjust=900 -p IgnoreSIGPIPE=no -p "ExecStopPost=$stop_post"
    if [ "$keeps" = 1 ]; then
        set -- "$@" -p KillMode=process
    else
        set -- "$@" -p KillMode=control-group
    fi
    [ "$memory" = - ] || set -- "$@" -p MemoryMax="$memory" -p MemorySwapMax=0
    if [ "$mode" = user ]; then
        timeout 20 systemd-run --user "$@" /bin/sh -c "$entering"
        return
    fi
    # a unit of the machine has the machine's limits: an engine needs those of a login
    locked=$(ulimit -H -l) files=$(ulimit -H -n)
    [ "$locked" = unlimited ] && locked=infinity || locked=$((locked * 1024))
    [ "$files" != unlimited ] || files=infinity
    set -- "$@" -p "User=$me" -p LimitMEMLOCK="$locked" -p LimitNOFILE="$(ulimit -S -n | sed s/unlimited/infinity/):$files"
    if [ "$uid" = 0 ]; then
        timeout 20 systemd-run "$@" /bin/sh -c "$entering"
    else
        timeout 20 sudo -n systemd-run "$@" /bin/sh -c "$entering"
    fi
}

launch_session() {
    entering supervise
    # a program that was started in the background by a shell ignores INT, and so would everything below it
    reset=
    ! env --default-signal=INT true 2>/dev/null || reset="env --default-signal=INT,QUIT,PIPE,HUP"
    setsid -f $reset /bin/sh -c "$entering" </dev/null >/dev/null 2>&1 9>&-
}

# whether the manager counts the unit's memory; without that a cap is accepted and means nothing
is_capped() {
    [ "$mode" != none ] || return 1
    case $(manager show -p MemoryCurrent "$unit" 2>/dev/null) in
    *=18446744073709551615) return 1 ;;
    MemoryCurrent=[0-9]*) return 0 ;;
    *) return 1 ;;
    esac
}

wait_until_begun() {
    tries=0
    while [ "$tries" -lt 250 ]; do
        look locked
        [ "$state" = absent ] || return 0
        sleep 0.02
        tries=$((tries + 1))
    done
}

# under the lock: what has not begun never will, should a slow manager still come to it; fails where it has just begun.
# S/run begins with nothing else than with this file
withdraw() {
    mv -f "$S/ready.$mode" "$S/withdrawn" 2>/dev/null
}

# whether what `modes` found earlier still holds: mode and path come from there then
remembered() {
    case $3 in
    /*) ;;
    *) return 1 ;;
    esac
    [ "$wanted" = auto ] && read -r now_boot </proc/sys/kernel/random/boot_id && [ "$now_boot" = "$1" ] || return 1
    case $2 in
    user) [ -e "/var/lib/systemd/linger/$me" ] && [ -S "$XDG_RUNTIME_DIR/systemd/private" ] || return 1 ;;
    system) [ -d /run/systemd/system ] || return 1 ;;
    none) ;;
    *) return 1 ;;
    esac
    mode=$2 path=$3
}

# sets mode and path by asking. A login shell takes its time: what it says comes beside the answers on where steps can run
found_out() {
    said=$(
        { login_path; printf 'path=%s\n' "$path"; } &
        places "$1"
        printf '%s\n' "user=$why_user" "system=$why_system"
        wait
    )
    told "$said"
    choose "$1"
}

refused() {
    rm -f $news
    printf '%s\n' "$*" >&2
    exit 1
}

# files that come first on stdin: all or none, on disk before this returns
take_files() {
    news=
    trap 'rm -f $news; exit 143' TERM HUP
    for one in $1; do
        inside "${one%:*}"
        bytes=${one##*:}
        number "$bytes" && [ "$bytes" -gt 0 ] || cannot "not a number of bytes: $bytes"
        way_to "${one%:*}"
        plain "$file"
        new=$(mktemp "${file%/*}/.new.XXXXXXXX" 2>&1 9>&-) || refused "$file cannot be written: $(complaint "$new")"
        news="$news $new"
        # one block of that size: whoever reads ahead would take of the next file
        said=$(dd bs="$bytes" count=1 iflag=fullblock status=none of="$new" 2>&1 9>&- && chmod 666 "$new" 2>&1) ||
            refused "$file cannot be written: $(complaint "$said")"
        [ "$(wc -c <"$new")" -eq "$bytes" ] || refused "$file was not written: what came was cut off"
    done
    said=$(sync $news 2>&1 9>&-) || refused "the files cannot be written: $(complaint "$said")"
    for one in $1; do
        news=${news# }
        new=${news%% *}
        said=$(mv -f "$new" "$D/${one%:*}" 2>&1) || refused "$D/${one%:*} cannot be written: $(complaint "$said")"
        news=${news#"$new"}
    done
    said=$(sync "$D" "$D/ops" "$D/ops/$op" 2>&1 9>&-) || refused "the files may not be on disk yet: $(complaint "$said")"
    trap - TERM HUP
}

launch() {
    prepare "$@"
    case $mode in
    none) said=$(launch_session 2>&1) ;;
    *) said=$(launch_unit </dev/null 2>&1 9>&-) ;;
    esac
    status=$?
    if [ "$mode" = none ] || [ "$status" != 0 ]; then wait_until_begun; else look locked; fi
}

# whether it was said that nothing is started: a service manager that kept silent may still come to it
turned_down() {
    case $status in
    0 | 124 | 12[89] | 1[3-9]? | 2??) return 1 ;;
    esac
}

start() {
    epoch=$1 wanted=$2 keeps=$3 limit=$4 memory=$5 files= known=
    case $keeps in
    0 | 1) ;;
    *) cannot "KEEPS is 0 or 1: $keeps" ;;
    esac
    number "$limit" && [ "$limit" -ge 1 ] || cannot "not a time limit in whole seconds: $limit"
    case $memory in
    -) ;;
    '') memory=- ;;
    *[!0-9KMGT]* | [!0-9]* | *[KMGT]?*) cannot "not a memory cap: $memory" ;;
    esac
    shift 5
    if [ "${1:-}" != -- ] && [ "$#" -ge 5 ]; then
        files=$1
        ! remembered "$2" "$3" "$4" || known=yes
        shift 4
    fi
    [ "${1:-}" = -- ] && [ "$#" -ge 2 ] || cannot "usage: start D OP STEP EPOCH MODE KEEPS LIMIT MEMORY [FILES BOOT KNOWN PATH] -- COMMAND"
    shift
    case $1 in
    '' | *=*) cannot "not a command: $1" ;;
    esac
    HOME=${HOME:-$(getent passwd "$me" | cut -d: -f6)}
    runtime=
    [ ! -O "$XDG_RUNTIME_DIR" ] || runtime=$XDG_RUNTIME_DIR
    [ -n "$known" ] || found_out "$wanted"
    chosen=$mode
    lock
    fence "$epoch"
    look locked
    if [ "$state" != absent ]; then
        answer
        echo "$op/$step was started already" >&2
        exit 3
    fi
    mode=$chosen
    [ -z "$files" ] || take_files "$files"
    launch "$@"
    # where what was known holds no longer, and nothing of the first try can come later, it is tried as is found now
    if [ -n "$known" ] && [ "$state" = absent ] && turned_down && withdraw; then
        found_out "$wanted"
        said=$({ cat "$S/stdin" >"$S/again"; } 2>&1 9>&-) && launch "$@" <"$S/again"
    fi
    [ "$state" != absent ] || withdraw || wait_until_begun
    unlock
    [ "$memory" = - ] || [ "$state" != running ] || is_capped || words="the memory cap is not enforced on this host"
    case $state in
    absent | waiting) cannot "$op/$step could not be started: $(complaint "${said:-it did not begin}")" ;;
    esac
    answer
}

# ---- stop

act_on() {
    kill -s "$1" "$2" 2>/dev/null || { [ "$uid" != 0 ] && sudo -n kill -s "$1" "$2" </dev/null 2>/dev/null; }
}

# signal $1 to what runs of the step in the session of $2, but for $3; fails if nothing does
signal_session() {
    found=
    for stat in /proc/[0-9]*/stat; do
        one=${stat#/proc/} one=${one%/stat}
        process "$one" && [ "$p_session" = "$2" ] && [ "$p_state" != Z ] && [ "$one" != "$3" ] || continue
        found=yes
        [ "$1" = 0 ] || act_on "$1" "$one"
    done
    if [ "$mode" = none ] && grep -q " marked=$op/$step " "$S/supervise" 2>/dev/null; then
        for stat in $(grep -lszFx "LANESWAP_STEP=$op/$step" /proc/[0-9]*/environ 2>/dev/null); do
            one=${stat#/proc/} one=${one%/environ}
            [ "$one" != "$3" ] || continue
            found=yes
            [ "$1" = 0 ] || act_on "$1" "$one"
        done
    fi
    [ -n "$found" ]
}

end_step() {
    case $mode in
    none) signal_session "$1" "${supervisor:-$pid}" "${supervisor:-0}" ;;
    *)
        if [ "$1" = TERM ]; then
            acting_manager stop --no-block "$unit" 2>&1
        else
            acting_manager kill --signal=KILL "$unit" 2>&1
            [ -z "$pid" ] || signal_session KILL "$pid" 0
        fi
        ;;
    esac
}

may_end() {
    [ "$owner" = "$uid" ] || [ "$uid" = 0 ] || timeout 10 sudo -n true </dev/null >/dev/null 2>&1
}

until_ended() {
    left=$(($1 * 5))
    while [ "$left" -gt 0 ]; do
        look locked
        [ "$state" = running ] || return 0
        sleep 0.2
        left=$((left - 1))
    done
    return 1
}

stop() {
    seconds=${1:-10}
    number "$seconds" || cannot "not a number of seconds: $seconds"
    # no starter is at work while the lock is ours, and one that comes later finds the mark
    lock
    look locked
    case $state in
    absent | running | waiting)
        [ "$state" = absent ] || may_end || cannot "$op/$step belongs to another account ($owner), and $me has no sudo without a password"
        if [ "$state" = absent ]; then
            real_folder "$D/ops"
            real_folder "$D/ops/$op"
        fi
        date +%s | store "$mark" || exit $?
        ;;
    esac
    unlock
    if [ "$state" = running ]; then
        said=$(end_step TERM)
        if ! until_ended "$seconds"; then
            said=$(end_step KILL)
            until_ended 15 || cannot "$op/$step does not end${said:+: $(complaint "$said")}"
        fi
    fi
    look
    answer
}

case $verb in
start | stop) folder "${2:-}" ;;
*) reading "${2:-}" ;;
esac
if [ "$verb" = modes ]; then
    if [ "${3:-}" = path ]; then
        HOME=${HOME:-$(getent passwd "$me" | cut -d: -f6)}
        found_out auto
        read -r now_boot </proc/sys/kernel/random/boot_id && printf '%s\n' "boot=$now_boot" "path=$path"
    else
        places
        choose auto
    fi
    printf '%s\n' "mode=$mode" "user=$why_user" "system=$why_system" "account=$me"
    exit 0
fi
step_name "${3:-}" "${4:-}"
case $verb in
start)
    shift 4
    start "$@"
    ;;
stop) stop "${5:-}" ;;
*) read_verb "${5:-}" "${6:-}" ;;
esac
