# deadman.sh arm D SECONDS TEXT: stdin (webhook= health= fleet= lane=) is kept in a file for this account alone; every
#     SECONDS it is looked at D, by a timer of systemd or a sleeper. TEXT: this script. Answers mode= and unit=.
# deadman.sh check D: one look. Tells the webhook when a debt is overdue, or when the lease ran out with the lane down,
#     each once; takes itself away when there is nothing left to watch. It re-arms, starts and stops nothing.
# deadman.sh disarm D | state D: answers state=armed or state=off.
verb=${1:-}
me=$(id -un) uid=$(id -u)
[ -n "${XDG_RUNTIME_DIR-}" ] || XDG_RUNTIME_DIR=/run/user/$uid
export XDG_RUNTIME_DIR
folder "${2:-}"
own=$D/deadman-$me unit=laneswap-deadman-${D##*/}-$me remembered=

# ---- arming

lingers() {
    [ -e "/var/lib/systemd/linger/$me" ] || [ "$(loginctl show-user "$me" -p Linger 2>/dev/null)" = Linger=yes ]
}

choose() {
    mode=none
    [ -d /run/systemd/system ] && command -v systemd-run >/dev/null 2>&1 || return 0
    if [ "$uid" = 0 ]; then
        mode=system
    elif lingers && timeout 10 systemctl --user show -p Version >/dev/null 2>&1; then
        mode=user
    elif timeout 10 sudo -n systemd-run --version >/dev/null 2>&1; then
        mode=system
    fi
}

manager() {
    program=$1
    shift
    case $mode in
    user) timeout 20 "$program" --user "$@" ;;
    *) if [ "$uid" = 0 ]; then timeout 20 "$program" "$@"; else timeout 20 sudo -n "$program" "$@"; fi ;;
    esac
}

# a URL that can stand between quotes in a file of ours
plain_url() {
    case $1 in
    *[!A-Za-z0-9._~:/?#@!\&+,\;=%-]*) return 1 ;;
    http://?* | https://?*) ;;
    *) return 1 ;;
    esac
}

configure() {
    webhook= health= fleet= lane=
    while IFS= read -r row; do
        case $row in
        webhook=*) webhook=${row#*=} ;;
        health=*) health=${row#*=} ;;
        fleet=*) fleet=${row#*=} ;;
        lane=*) lane=${row#*=} ;;
        esac
    done
    plain_url "$webhook" || cannot "the webhook is no http:// or https:// URL that can be used"
    [ -z "$health" ] || plain_url "$health" || cannot "the health check is no http:// or https:// URL that can be used"
}

arm() {
    period=$1
    number "$period" && [ "$period" -ge 1 ] || cannot "not a number of seconds: $period"
    configure
    poster >/dev/null || cannot "neither curl nor python3 with urllib is installed here: nobody could be told"
    real_folder "$own"
    chmod 755 "$own" 2>/dev/null
    [ -O "$own" ] || cannot "$own belongs to somebody else"
    choose
    disarmed
    printf '%s\n' "webhook=$webhook" "health=$health" "fleet=$fleet" "lane=$lane" "mode=$mode" | store "$own/config" '' 600 || exit $?
    printf '%s\n' "$2" | store "$own/script" '' 644 || exit $?
    # it goes in before it believes a file there: another account may write in D
    entering="cd -P $own && test -O . && test -O ./script && test ! -L ./script && exec /bin/sh ./script"
    if [ "$mode" = none ]; then
        setsid -f /bin/sh -c "$entering watch $D $period" </dev/null >/dev/null 2>&1
    else
        set -- --quiet --unit="$unit" --description="laneswap tells people about ${D##*/}" \
            --on-active="$period" --on-unit-active="$period" --timer-property=AccuracySec=1s -p RuntimeMaxSec=120 -p OOMScoreAdjust=900
        [ "$mode" = user ] || set -- "$@" -p "User=$me"
        said=$(manager systemd-run "$@" /bin/sh -c "$entering check $D" 2>&1) || cannot "no timer: $(complaint "$said")"
    fi
    printf '%s\n' state=armed "mode=$mode" "unit=$unit"
}

disarmed() {
    rm -f "$own/config" "$own/watcher" "$own/message"
    [ "$mode" = none ] || manager systemctl stop "$unit.timer" >/dev/null 2>&1
    [ "$mode" = none ] || manager systemctl reset-failed "$unit.service" >/dev/null 2>&1
    return 0
}

# ---- looking

configured() {
    webhook= health= fleet= lane= mode=none
    [ -O "$own/config" ] && [ "$(stat -c %a "$own/config")" = 600 ] && slurp "$own/config" 8192 || return 1
    while IFS= read -r row; do
        case $row in
        webhook=*) webhook=${row#*=} ;;
        health=*) health=${row#*=} ;;
        fleet=*) fleet=${row#*=} ;;
        lane=*) lane=${row#*=} ;;
        mode=*) mode=${row#*=} ;;
        esac
    done <<LANESWAP_CONFIG
$text
LANESWAP_CONFIG
}

urllib='
import sys, urllib.request
url = dict(row.rstrip("\n").split("=", 1) for row in open(sys.argv[1]))[sys.argv[2]]
data = sys.stdin.buffer.read() or None
opener = urllib.request.build_opener(urllib.request.ProxyHandler({})) if data is None else urllib.request.build_opener()
opener.open(urllib.request.Request(url, data, {"Content-Type": "application/json"} if data else {}), timeout=10)
'

poster() {
    if command -v curl >/dev/null 2>&1; then
        echo curl
    elif python3 -I -c 'import urllib.request' 2>/dev/null; then
        echo python3
    else
        return 1
    fi
}

# asks the URL of the config's key $1, or posts the JSON $2 there; a secret never stands in an argument list, and nothing
# goes by a file: the disk may be full
http() {
    case $(poster) in
    curl)
        eval "url=\$$1"
        if [ -n "${2:-}" ]; then
            body=$(printf '%s' "$2" | sed 's/[\\"]/\\&/g')
            printf 'url = "%s"\ndata-binary = "%s"\n' "$url" "$body" | curl -q -fsS -m 10 -o /dev/null -H 'Content-Type: application/json' -K -
        else
            printf 'url = "%s"\n' "$url" | curl -q -fsS -m 10 --noproxy '*' -o /dev/null -K -
        fi
        ;;
    python3) printf '%s' "${2:-}" | python3 -I -c "$urllib" "$own/config" "$1" ;;
    *) return 1 ;;
    esac >/dev/null 2>&1
}

lane_is_down() {
    [ -n "$health" ] || return 1
    ! http health && sleep 2 && ! http health
}

# a text as the inside of a JSON string
escaped() {
    printf '%s' "$1" | tr -d '\000-\037\177' | sed 's/[\\"]/\\&/g'
}

# the string $2 of the flat JSON object $1, still escaped; the whole number $2
member() {
    printf '%s' "$1" | sed -n "s/.*\"$2\": *\"\(\([^\"\\\\]\|\\\\.\)*\)\".*/\1/p"
}
figure() {
    printf '%s' "$1" | sed -n "s/.*\"$2\": *\([0-9][0-9]*\).*/\1/p"
}

clock() {
    date -u -d "@$1" +%H:%M:%SZ 2>/dev/null || printf '%s' "$1"
}

# the file of what was told in memory, for where D cannot be written: one that belongs to this account
in_memory() {
    memory=/dev/shm/laneswap-$uid
    [ -d "$memory" ] || mkdir -m 700 "$memory" 2>/dev/null
    [ -d "$memory" ] && [ ! -L "$memory" ] && [ -O "$memory" ] || return 1
    memory=$memory/deadman.said$(printf '%s' "$D" | tr / _)
    [ ! -L "$memory" ]
}

# whether the line $2 can be written into $1, or stands there
noted() {
    { grep -qxF "$2" "$1" || { printf '%s\n' "$2" >>"$1" && grep -qxF "$2" "$1"; }; } 2>/dev/null
}

# whether the key $1 was told already; else sets `book`, where that will be remembered
was_told() {
    book=
    case $remembered in *"[$1]"*) return 0 ;; esac
    for one in "$D/deadman.said" "/dev/shm/laneswap-$uid/deadman.said$(printf '%s' "$D" | tr / _)"; do
        [ -L "$one" ] || ! grep -qxF "$1" "$one" 2>/dev/null || return 0
    done
    if [ ! -L "$D/deadman.said" ] && noted "$D/deadman.said" "to be told: $1"; then
        book=$D/deadman.said
    elif in_memory && noted "$memory" "to be told: $1"; then
        book=$memory
    fi
    return 1
}

# once for each key $1: event $2, words $3, operator $4, since $5, deadline $6, operation $7; all fit for JSON
tell() {
    was_told "$1" && return 0
    # where nothing can be written at all nobody remembers it: told then in the first minute of each quarter of an hour
    [ -n "$book" ] || [ $(((now - $6) % 900)) -lt 60 ] || return 0
    host=$(uname -n)
    message=$(printf '{"text": "[%s] ACT %s: %s", "event": "%s", "fleet": "%s", "lane": "%s", "operator": "%s", "since": %s, "deadline": %s, "operation": "%s", "host": "%s", "at": %s}\n' \
        "$(escaped "$fleet")" "$(escaped "$lane")" "$3" "$2" "$(escaped "$fleet")" "$(escaped "$lane")" "$4" "$5" "$6" "$7" "$(escaped "$host")" "$now")
    http webhook "$message" || return 1
    remembered="$remembered[$1]"
    [ -z "$book" ] || noted "$book" "$1"
    return 0
}

look_at_debts() {
    slurp "$D/debts.json" 65536 || return 0
    rows=$(printf '%s' "$text" | tr -d '\n' | sed 's/}/}\
/g')
    while IFS= read -r row; do
        due=$(figure "$row" deadline)
        number "$due" || continue
        watching=yes
        [ "$now" -gt "$due" ] || continue
        what=$(member "$row" what) who=$(member "$row" operator) since=$(figure "$row" since)
        words="$what is off and overdue since $(clock "$due") (${who:-?}); it is not armed by itself"
        tell "debt $what ${since:-0} $due" 'debt overdue' "$words" "$who" "${since:-0}" "$due" "$(member "$row" operation)"
    done <<LANESWAP_DEBTS
$rows
LANESWAP_DEBTS
}

look_at_lease() {
    read_lease
    [ "$holder" = held ] || return 0
    watching=yes
    out=$((l_renewed + l_ttl))
    [ "$now" -gt "$out" ] || return 0
    lane_is_down || return 0
    who=$(escaped "$l_operator")
    words="the lease of $who ran out at $(clock "$out") and the lane does not answer; nothing is done by itself"
    tell "lease $l_id" 'lease ran out with the lane down' "$words" "$who" "$l_acquired" "$out" ''
}

check() {
    configured || exit 0
    now=$(date +%s) watching=no
    # two accounts may have armed it: one of them tells
    plain "$D/deadman.lock"
    command exec 8>>"$D/deadman.lock" && flock -w 60 8 || return 0
    look_at_debts
    look_at_lease
    [ ! -e "$D/window.json" ] || watching=yes
    if [ "$watching" = no ]; then
        disarmed
    fi
    exec 8>&-
}

# where there is no systemd; a newer one takes an older one's place
watch() {
    echo "$$" | store "$own/watcher" || exit $?
    while configured && first_line "$own/watcher" && [ "$text" = "$$" ]; do
        sleep "$1"
        check
    done
}

case $verb in
arm) arm "${3:-}" "${4:-}" ;;
check) check ;;
watch) watch "${3:-}" ;;
disarm)
    if configured; then disarmed; fi
    echo state=off
    ;;
state) if configured; then printf '%s\n' state=armed "mode=$mode" "unit=$unit"; else echo state=off; fi ;;
*) cannot "no such verb: $verb" ;;
esac
