# prune.sh D EPOCH KEEP DAYS MOST: removes old operations of D, at most MOST of them, once a day (exit 3 before that).
# Kept are the newest KEEP of them, what is younger than DAYS, `current`, what a window or a debt names, what runs, and
# what another account has to remove. Tries of the head's ssh go after a day. Makes no state folder: exit 1 without one.
REACH_DAYS=1
SECONDS_MOST=40
reading "${1:-}"
epoch=${2:-} keep=${3:-} days=${4:-} most=${5:-}
for one in "$keep" "$days" "$most"; do
    number "$one" || cannot "not a number: $one"
done
command -v find >/dev/null 2>&1 || cannot "find is not installed on this host (package findutils)"
ops=$D/ops
[ ! -L "$ops" ] || cannot "$ops is a symbolic link, which is refused"
[ -d "$ops" ] || exit 1
cd "$ops" || cannot "$ops cannot be entered by $(id -un)"

# whether the name is an operation's, and its time as a number, as $stamp
is_op() {
    stamp=${1%%Z-*}
    case $stamp in
    *[!0-9T]* | *T*T* | T*) return 1 ;;
    ????????T??????) stamp=${stamp%T*}${stamp#*T} ;;
    *) return 1 ;;
    esac
    word "$1" && [ "$1" != "${1#*Z-}" ] && number "$stamp" && [ -d "$1" ] && [ ! -L "$1" ]
}

# its name and everything in it are older than $2 days
is_old() {
    [ "$stamp" -lt "$(date -u -d "@$(($(date +%s) - $2 * 86400))" +%Y%m%d%H%M%S)" ] &&
        found=$(find "./$1" -mmin "-$(($2 * 1440))" 2>&1 | head -n 1) && [ -z "$found" ]
}

# a runner holds the lock of its operation as long as it lives; what cannot be asked counts as running
runs() {
    [ -e "./$1/running" ] || return 1
    ! (command exec 8<"./$1/running" && flock -n 8) 2>/dev/null
}

is_needed() {
    current=
    ! first_line "$D/current" || current=$text
    [ "$1" = "$current" ] || grep -qsF "$1" "$D/window.json" "$D/debts.json" || runs "$1"
}

# nothing in it belongs to an account that alone can remove it
is_ours() {
    found=$(find "./$1" -type d ! \( -writable -executable \) 2>&1 | head -n 1)
    [ -z "$found" ]
}

lock
fence "$epoch"
plain "$D/pruned"
[ -z "$(find "$D/pruned" -mmin -1440 2>/dev/null)" ] || {
    echo "old operations were removed here less than a day ago" >&2
    exit 3
}
date +%s | store "$D/pruned" || exit $?
unlock

seen=0 chosen= count=0
for one in $(for each in *; do ! is_op "$each" || printf '%s\n' "$each"; done | sort -r); do
    is_op "$one" || continue
    case $one in
    *Z-reach-*) after=$REACH_DAYS ;;
    *)
        after=$days seen=$((seen + 1))
        [ "$seen" -gt "$keep" ] || continue
        ;;
    esac
    [ "$count" -lt "$most" ] || break
    is_old "$one" "$after" && ! is_needed "$one" && is_ours "$one" || continue
    chosen="$chosen $one" count=$((count + 1))
done

# no starter and no fence is at work while the lock is ours: what is renamed cannot begin to run
lock
fence "$epoch"
removed=0
for one in $chosen; do
    is_op "$one" && ! is_needed "$one" && mv "./$one" "./.pruned-$one" 2>/dev/null || continue
    removed=$((removed + 1))
done
unlock
said=
for one in .pruned-*; do
    [ ! -d "./$one" ] || [ -L "./$one" ] || said=$(timeout "$SECONDS_MOST" rm -rf --one-file-system "./$one" 2>&1) || break
done
printf 'removed=%s\n' "$removed"
[ -z "$said" ] || cannot "not everything of old operations in $ops was removed: $(complaint "$said")"
