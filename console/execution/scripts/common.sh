# Runs on a host under a plain POSIX /bin/sh with coreutils and util-linux; head of every script of this folder.
# Answers are `key=value` lines on stdout, errors one sentence on stderr. Exit status: 0 ok, 1 no or failed, 3 already
# there or held, 4 fenced off, 5 cannot (permission, disk full, no flock); anything else is unknown.
laneswap_umask=$(umask)
laneswap_locale=${LC_ALL-unset}
LC_ALL=C
# two accounts share the folder: whoever takes over has to write what the other one made
umask 000
laneswap_temp=

cannot() {
    printf '%s\n' "$*" >&2
    exit 5
}

# a decimal without sign and leading zeros (which the shell would read as octal), small enough to count with
number() {
    case $1 in
    0) return 0 ;;
    '' | 0* | *[!0-9]*) return 1 ;;
    esac
    [ "${#1}" -le 15 ]
}

# what a tool complained of: its last line without the tool's own name
complaint() {
    complaint=$(printf '%s\n' "$1" | tail -n 1)
    printf '%s' "${complaint##*: }"
}

# sets D from a path of plain characters with a parent folder
named() {
    case $1/ in
    *[!A-Za-z0-9._/-]* | *//* | */./* | */../*) cannot "not a state folder: $1" ;;
    /*/*/) D=$1 ;;
    *) cannot "not a state folder: $1" ;;
    esac
}

# sets D, and makes it where there is none
folder() {
    named "$1"
    state_folder "${D%/*}"
    lane_folder
    [ -w "$D" ] && [ -x "$D" ] || cannot "$D cannot be written by $(id -un): ask its owner $(stat -c %U "$D" 2>/dev/null)"
}

# the folder above all lanes. What lies in it is run with the rights of whoever acts: it is made for this account alone,
# or for those who may use Docker, who are as good as root anyway; one that everybody may write to is refused
state_folder() {
    if [ ! -L "$1" ] && [ ! -d "$1" ]; then
        said=$(mkdir -m 700 "$1" 2>&1) || [ -d "$1" ] || cannot "$1 cannot be made: $(complaint "$said")"
        ! for_docker || { chgrp docker "$1" && chmod 2770 "$1"; } 2>/dev/null
    fi
    real_folder "$1"
    private "$1"
}

# refuses a folder that every account may write to, and one below the folder of all that another account has made
private() {
    case $(stat -c %a "$1" 2>/dev/null) in
    *[2367]) cannot "$1 can be written by every account of this host, which is refused: chmod o-w $1" ;;
    esac
    case $1 in
    /dev/shm/*) [ -O "$1" ] || cannot "$1 belongs to another account ($(stat -c %U "$1" 2>/dev/null))" ;;
    esac
}

# the folder of a lane, in which all may write who get there. Where the folder above lets every account of this host pass,
# as one that was made by hand with the usual umask does, this one keeps them out
lane_folder() {
    case $(stat -c %a "${D%/*}" 2>/dev/null) in
    *0)
        real_folder "$D"
        return
        ;;
    esac
    umask 007
    real_folder "$D"
    umask 000
    case $(stat -c %a "$D" 2>/dev/null) in
    *0) ;;
    *) chmod o-rwx "$D" 2>/dev/null || cannot "$D is open to every account of this host, which is refused: chmod o-rwx $D" ;;
    esac
}

# whether others of the group docker may share it with this account
for_docker() {
    case " $(id -Gn) " in
    *' docker '*) return 0 ;;
    esac
    [ "$(id -u)" = 0 ] && grep -q '^docker:' /etc/group 2>/dev/null
}

# a directory, made if need be, and never through a link that somebody put there
real_folder() {
    [ ! -L "$1" ] || cannot "$1 is a symbolic link, which is refused"
    if [ ! -d "$1" ]; then
        said=$(mkdir "$1" 2>&1) || [ -d "$1" ] || cannot "$1 cannot be made: $(complaint "$said")"
        [ ! -L "$1" ] || cannot "$1 is a symbolic link, which is refused"
    fi
}

# D/lock on descriptor 9, which no child may inherit: start them with 9>&-
lock() {
    command -v flock >/dev/null 2>&1 || cannot "flock is not installed on this host (package util-linux)"
    plain "$D/lock"
    command exec 9>>"$D/lock" || cannot "$D/lock cannot be opened by $(id -un)"
    flock -w "${1:-10}" 9 || cannot "$D/lock is held by another command for longer than ${1:-10} s"
}

unlock() {
    exec 9>&-
}

# refuses what is there and is no plain file: links lead elsewhere, pipes block
plain() {
    [ ! -L "$1" ] || cannot "$1 is a symbolic link, which is refused"
    [ ! -e "$1" ] || [ -f "$1" ] || cannot "$1 is not a plain file, which is refused"
}

# the start of a plain file as $text; fails where there is none
slurp() {
    text=
    [ -f "$1" ] && [ ! -L "$1" ] || return 1
    text=$(head -c "${2:-4096}" "$1" 2>/dev/null 9>&-)
}

first_line() {
    slurp "$1" || return 1
    text=${text%%
*}
}

# the first line of a file as $f1 to $f5; the shell must not expand a `*` that somebody wrote there
fields() {
    f1= f2= f3= f4= f5= f6=
    first_line "$1" || return 1
    read -r f1 f2 f3 f4 f5 f6 <<LANESWAP_FIELDS
$text
LANESWAP_FIELDS
}

# sets D for what only reads: nothing is made
reading() {
    named "$1"
    for one in "${D%/*}" "$D"; do
        [ ! -L "$one" ] || cannot "$one is a symbolic link, which is refused"
    done
}

# stdin becomes the file $1 as a whole or not at all, on disk before this returns. $2: its size, checked if given
store() {
    plain "$1"
    trap 'rm -f "$laneswap_temp"; exit 143' TERM HUP
    laneswap_temp=$(mktemp "${1%/*}/.new.XXXXXXXX" 2>&1 9>&-) || {
        said=$laneswap_temp laneswap_temp=
        cannot "$1 cannot be written: $(complaint "$said")"
    }
    if ! said=$(cat 2>&1 >"$laneswap_temp" 9>&- && chmod "${3:-666}" "$laneswap_temp" 2>&1 && sync "$laneswap_temp" 2>&1); then
        rm -f "$laneswap_temp"
        cannot "$1 cannot be written: $(complaint "$said")"
    fi
    if [ -n "${2:-}" ] && [ "$(wc -c <"$laneswap_temp")" -ne "$2" ]; then
        rm -f "$laneswap_temp"
        cannot "$1 was not written: what came was cut off"
    fi
    said=$(mv -f "$laneswap_temp" "$1" 2>&1) || {
        rm -f "$laneswap_temp"
        cannot "$1 cannot be written: $(complaint "$said")"
    }
    laneswap_temp=
    said=$(sync "${1%/*}" 2>&1 9>&-) || cannot "$1 may not be on disk yet: $(complaint "$said")"
}

# the lease of D: sets holder to nobody, held or damaged, and l_* from the file; every value is checked
read_lease() {
    holder=nobody l_id= l_epoch= l_operator= l_console= l_purpose= l_acquired= l_renewed= l_ttl= l_offered_to=
    [ -e "$D/lease" ] || [ -L "$D/lease" ] || return 0
    holder=damaged
    slurp "$D/lease" 8192 || return 0
    while IFS= read -r row; do
        value=${row#*=}
        case $row in
        id=*) l_id=$value ;;
        epoch=*) l_epoch=$value ;;
        operator=*) l_operator=$value ;;
        console=*) l_console=$value ;;
        purpose=*) l_purpose=$value ;;
        acquired=*) l_acquired=$value ;;
        renewed=*) l_renewed=$value ;;
        ttl=*) l_ttl=$value ;;
        offered_to=*) l_offered_to=$value ;;
        esac
    done <<LANESWAP_LEASE
$text
LANESWAP_LEASE
    word "$l_id" && [ -n "$l_operator" ] || return 0
    for one in "$l_epoch" "$l_acquired" "$l_renewed" "$l_ttl"; do
        number "$one" || return 0
    done
    holder=held
}

# letters, digits and hyphens
word() {
    case $1 in
    '' | -* | *[!0-9A-Za-z-]*) return 1 ;;
    esac
    [ "${#1}" -le 64 ]
}

# the highest epoch ever seen in D, as $highest, and what the file alone says, as $kept
highest() {
    kept=0
    plain "$D/epoch"
    if [ -e "$D/epoch" ]; then
        first_line "$D/epoch" && number "$text" || cannot "$D/epoch is damaged: it has to hold one number, the highest epoch that was ever granted"
        kept=$text
    fi
    read_lease
    highest=$kept
    [ "$holder" != held ] || [ "$l_epoch" -le "$highest" ] || highest=$l_epoch
}

# under the lock: exit 4 if a newer lease than $1 was seen here, else remember $1. `-` is break-glass: nothing is asked
fence() {
    [ "$1" != - ] || return 0
    number "$1" || cannot "not an epoch: $1"
    highest
    if [ "$highest" -gt "$1" ]; then
        [ "$holder" = held ] || l_operator= l_acquired=
        printf 'epoch=%s\noperator=%s\nsince=%s\n' "$highest" "$l_operator" "$l_acquired"
        echo "fenced off: a newer lease (epoch $highest) was seen here than that of this command (epoch $1)" >&2
        exit 4
    fi
    [ "$kept" = "$1" ] || printf '%s\n' "$1" | store "$D/epoch" || exit $?
}

# a name inside D, as $file: no way out of it, and none of the files that have scripts of their own
inside() {
    case /$1/ in
    *[!A-Za-z0-9._/@-]* | *//* | */./* | */../*) cannot "not a file of the state folder: $1" ;;
    esac
    case $1 in
    '' | lock | lease | epoch) cannot "not a file of the state folder: $1" ;;
    esac
    file=$D/$1
}

# the folders on the way to a file inside D, made if need be; $2: `look` makes none, but refuses links all the same
way_to() {
    way=$D left=${1%/*}
    [ "$left" != "$1" ] || return 0
    while [ -n "$left" ]; do
        way=$way/${left%%/*}
        if [ "${2:-}" != look ]; then
            real_folder "$way"
        elif [ -L "$way" ]; then
            cannot "$way is a symbolic link, which is refused"
        fi
        case $left in
        */*) left=${left#*/} ;;
        *) left= ;;
        esac
    done
}

