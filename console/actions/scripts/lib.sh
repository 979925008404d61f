# What the scripts of the plans share; put in front of each by `probes.py`. There are no local variables in a plain shell:
# names here are their functions' own. Everything runs inside main, so that no command
# reads the script's own text from standard input. Probes: 0 yes, 1 no, 2 not known. Commands: 0 done, 1 no, 5 cannot.
set -u
LC_ALL=C
export LC_ALL
umask 000

say() { printf '%s\n' "$*"; }
no() { say "$*"; exit 1; }
unknown() { say "$*"; exit 2; }
cannot() { say "$*"; exit 5; }
now() { date +%s; }
short() { printf '%.12s' "$1"; }

# home PATH: `~/x` is below this account's home folder.
home() {
    case $1 in
        '~') say "$HOME" ;;
        '~/'*) say "$HOME/${1#??}" ;;
        *) say "$1" ;;
    esac
}

# engine SOCKET: how Docker is asked here; with sudo where the socket is there and not ours to write.
engine() {
    sock=$1
    as=''
    if [ -S "$sock" ] && [ ! -w "$sock" ]; then as='sudo -n'; fi
}

# ask SECONDS ARG...: one command to Docker within SECONDS.
ask() {
    ask_within=$1
    shift
    $as timeout -k 2 "$ask_within" docker -H "unix://$sock" "$@" </dev/null
}

# told WORDS: sets `answer`, what the runner that began us says of a container; false where there is none, or it cannot.
told() {
    [ "${LANESWAP_DOCKER-}" = 7 ] && [ -z "$as" ] || return 1
    trap '' PIPE
    { printf '%s\t%s\n' "$sock" "$1" >&7 && IFS= read -r answer <&7; } 2>/dev/null || return 1
    case $answer in [012]' '*) ;; *) return 1 ;; esac
}

# look ID FORMAT: sets `seen`. 0 there, 1 no such container, 2 not known (`seen` says why).
look() {
    if told "look	$1	$2"; then
        seen=${answer#??}
        return "${answer%% *}"
    fi
    seen=$(ask 20 inspect --type container --format "$2" "$1" 2>/dev/null) && return 0
    seen=$(ask 20 inspect --type container --format "$2" "$1" 2>&1 >/dev/null) && return 2
    seen=$(printf '%.200s' "$seen" | tr '\n\t' '  ')
    case $seen in *[Nn]'o such '*) return 1 ;; esac
    seen=${seen:-docker does not answer}
    return 2
}

# restarted COUNT FLOOR STATUS CODE: whether its restart policy has started it again, by what Docker counts, since FLOOR;
# sets `words`. A `docker start` counts from 0 again. Its last exit code is known only until it runs again.
restarted() {
    case $1:$2 in *[!0-9:]* | :* | *:) return 1 ;; esac
    [ "$1" -gt "$2" ] || [ "$3" = restarting ] || return 1
    words="restarted by its policy $(($1 - $2)) times"
    case $(($1 - $2)) in 0) words="its policy restarts it" ;; 1) words="restarted by its policy once" ;; esac
    [ "$3" != restarting ] || words="$words, last exit code $4"
}

# spare FOLDER: sets `spare`, what stands in memory for a lane's state folder that cannot be written; false where that is no
# folder of this account.
spare() {
    spare=/dev/shm/laneswap-$(id -u)
    [ -d "$spare" ] && [ ! -L "$spare" ] && [ -O "$spare" ] || return 1
    spare=$spare/${1##*/}
}

# birth PID: sets `born` (ticks since boot), `mood` (its state's letter) and `above` (its parent); false when it is gone.
birth() {
    row=''
    { read -r row <"/proc/$1/stat"; } 2>/dev/null || return 1
    set -f
    # shellcheck disable=SC2086
    set -- ${row##*') '}
    set +f
    [ $# -ge 20 ] || return 1
    mood=$1
    above=$2
    born=${20}
}

# lives PID START: the very process, and no zombie.
lives() {
    birth "$1" || return 1
    [ "$born" = "$2" ] || return 1
    case $mood in Z | X) return 1 ;; esac
}

# command PID: sets `line`, its command line with blanks; false when there is none.
command_of() {
    line=$(tr '\000\n' '  ' 2>/dev/null <"/proc/$1/cmdline") || return 1
    line=${line% }
    [ -n "$line" ]
}

# runs_it PATTERN: whether `line` is a command that runs what the pattern names; an editor or pager that shows it is not.
# Patterns are written as `[l]aunch/[w]atchdog.sh`, so that our own command line never holds what is looked for.
runs_it() {
    # what starts a step of ours names the command that is to run, and is a shell
    case $line in *' laneswap start '*) return 1 ;; esac
    # shellcheck disable=SC2254
    case $line in *$1*) ;; *) return 1 ;; esac
    line_word=${line%% *}
    # shellcheck disable=SC2254
    case $line_word in *$1*) return 0 ;; esac
    line_word=${line_word##*/}
    case ${line_word#-} in
        sh | bash | dash | ash | zsh | ksh | fish | python | python[0-9]* | perl | ruby | node) return 0 ;;
        env | nohup | setsid | timeout | flock | nice | ionice | chrt | sudo) return 0 ;;
    esac
    return 1
}

# ours PID: whether it is this script, what runs it, or what it runs: their command lines may hold what is looked for.
ours() {
    case " $line_above " in *" $1 "*) return 0 ;; esac
    walk=$1
    while birth "$walk" && [ "$above" -gt 1 ]; do
        [ "$above" != $$ ] || return 0
        walk=$above
    done
    return 1
}

# inside PID PATTERN ALSO: whether `line` runs what PATTERN names by a shorter word (ALSO) from inside its folder, as after
# `cd launch`. A whole path that PATTERN does not name is another program of that name (`gpu-watchdog.sh`): it would
# hold every stop up for ever. Where its folder is hidden from this account it may be it.
inside() {
    runs_it "$3" || return 1
    inside_of=$(readlink "/proc/$1/cwd" 2>/dev/null)
    set -f # its words are no patterns of files here; whoever asks is a shell of its own
    for line_word in $line; do
        # shellcheck disable=SC2254
        case $line_word in /*) continue ;; *$3*) ;; *) continue ;; esac
        [ -n "$inside_of" ] || return 0
        # shellcheck disable=SC2254
        case $inside_of/${line_word#./} in *$2*) return 0 ;; esac
    done
    return 1
}

# those PATTERN [ALSO]: numbers of the processes that run it, also from inside its folder.
those() {
    line_above=$$
    walk=$$
    while birth "$walk" && [ "$above" -gt 1 ]; do
        walk=$above
        line_above="$line_above $walk"
    done
    for entry in /proc/[0-9]*; do
        pid=${entry#/proc/}
        command_of "$pid" || continue
        runs_it "$1" || inside "$pid" "$1" "${2:-$1}" || continue
        ours "$pid" && continue
        birth "$pid" || continue
        case $mood in Z | X) continue ;; esac
        say "$pid"
    done
}

# get URL SECONDS: sets `code` (000: no answer) and `body`.
get() {
    code=000
    body=''
    if command -v curl >/dev/null 2>&1; then
        body=$(curl -s -g -m "$2" --max-filesize 1000000 -w '\n%{http_code}' -- "$1" 2>/dev/null </dev/null)
        code=${body##*'
'}
        body=${body%'
'*}
    elif command -v bash >/dev/null 2>&1 && [ "${1#http://}" != "$1" ]; then
        by_hand "$1" "$2"
    else
        body=$(timeout -k 2 "$2" python3 -I -c '
import sys, urllib.request, urllib.error
try:
    with urllib.request.urlopen(sys.argv[1], timeout=float(sys.argv[2])) as answer:
        print(answer.read(1000000).decode("utf-8", "replace")); print(answer.status)
except urllib.error.HTTPError as error:
    print(error.code)' "$1" "$2" 2>/dev/null </dev/null)
        code=${body##*'
'}
        body=${body%"$code"}
    fi
    case $code in [1-5][0-9][0-9]) ;; *) code=000 ;; esac
}

# by_hand URL SECONDS: plain HTTP by bash alone. Below sshd bash -c reads .bashrc, whose words would stand in the answer.
by_hand() {
    url_rest=${1#http://}
    url_place=${url_rest%%/*}
    url_port=${url_place##*:}
    [ "$url_port" != "$url_place" ] || url_port=80
    url_name=${url_place%:*}
    url_name=${url_name#'['}
    url_name=${url_name%']'}
    body=$(timeout -k 2 "$2" bash --norc -c '
exec 3<>"/dev/tcp/$1/$2" || exit 7
printf "GET %s HTTP/1.0\r\nHost: %s\r\nConnection: close\r\n\r\n" "$3" "$4" >&3
head -c 1000000 <&3' bash "$url_name" "$url_port" "/${url_rest#*/}" "$url_place" 2>/dev/null </dev/null | tr -d '\000')
    url_said=${body%%'
'*}
    case $url_said in HTTP/1.[01]' '*) code=${url_said#* } code=${code%"${code#???}"} ;; esac
}

# serves BASE HEALTH NAME: health 200, and the name among the models; sets `words`. An empty NAME asks health alone.
serves() {
    get "$1$2" 25
    words="health $code"
    [ "$code" = 200 ] || return 1
    [ -n "$3" ] || return 0
    get "$1/v1/models" 10
    words="health 200, models $code"
    [ "$code" = 200 ] || return 1
    words="health 200, $3 is not among the models"
    case $(printf '%s' "$body" | tr -d ' \t\r\n') in *'"id":"'"$3"'"'*) ;; *) return 1 ;; esac
    words="health 200, serves $3"
}

# hears PORT: somebody listens on it.
hears() {
    port_hex=$(printf '%04X' "$1")
    grep -qsE ":$port_hex [0-9A-F]+:[0-9A-F]+ 0A " /proc/net/tcp /proc/net/tcp6
}

# number TEXT: whether it is a process's number.
number() {
    case $1 in '' | 0* | *[!0-9]*) return 1 ;; esac
    [ ${#1} -le 9 ]
}

# locked FILE: sets `owner`, the number in a lock; '' where there is none.
locked() {
    owner=''
    [ "$1" = - ] && return
    { read -r owner <"$(home "$1")"; } 2>/dev/null
    owner=$(printf '%s' "$owner" | tr -d ' \t\r')
    number "$owner" || owner=''
}

# control SECONDS MANAGER ARG...: systemctl of the system (with sudo where that is needed to change something) or of this
# user, waited for within SECONDS.
control() {
    control_within=$1 control_of=$2
    shift 2
    if [ "$control_of" = user ]; then
        XDG_RUNTIME_DIR=${XDG_RUNTIME_DIR:-/run/user/$(id -u)} timeout -k 2 "$control_within" systemctl --user "$@" </dev/null
    elif [ "$1" = is-active ] || [ "$(id -u)" = 0 ]; then
        timeout -k 2 "$control_within" systemctl "$@" </dev/null
    else
        timeout -k 2 "$control_within" sudo -n systemctl "$@" </dev/null
    fi
}

# job SECONDS MANAGER start|stop UNIT: has systemd do it. What takes longer goes on without us: whoever asks what the unit
# is waits for it, as long as the step may last. Ends the script with 1 where systemd refuses.
job() {
    said=$(control "$1" "$2" "$3" -- "$4" 2>&1)
    case $? in
        0) say "systemctl $3 $4" ;;
        124 | 137) say "systemctl $3 $4: not through after $1 s, it goes on" ;;
        *) no "systemctl $3: $(printf '%.300s' "$said" | tr '\n\t' '  ')" ;;
    esac
}
