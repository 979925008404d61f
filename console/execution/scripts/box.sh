# box.sh look D OP FILE AT: the time zone of this host at Unix second AT; exit 3 where OP's entry was appended before.
# box.sh add D OP FILE SIZE: stdin, SIZE bytes, is appended to FILE by one write, once for each OP.
# FILE is a Markdown ledger that people keep here. It is never made, and never written through a link.
verb=${1:-}
case $verb in
look) reading "${2:-}" ;;
add) folder "${2:-}" ;;
*) cannot "no such verb: $verb" ;;
esac
op=${3:-} box=${4:-}
word "$op" || cannot "not an operation: $op"
number "${5:-}" || cannot "not a number: ${5:-}"
inside "ops/$op/boxed"
mark=$file
case $box in
'~/'*) box=${HOME:-$(getent passwd "$(id -un)" | cut -d: -f6)}/${box#??} ;;
esac
case $box in
/*) ;;
*) cannot "not a path: $box" ;;
esac

# refuses what is no ledger of people
usable() {
    [ ! -L "$box" ] || cannot "$box is a symbolic link, which is refused"
    [ -e "$box" ] || cannot "$box is not there, and is not made"
    [ -f "$box" ] || cannot "$box is not a plain file, which is refused"
    [ -w "$box" ] || cannot "$box cannot be written by $(id -un)"
}

# whether OP's entry stands in it: the mark says so, else the entry itself, of a console that was gone before the mark
stands() {
    plain "$mark"
    [ -e "$mark" ] || grep -qsF "worker: laneswap $op " "$box"
}

told() {
    echo "the entry of $op is in $box already" >&2
    exit 3
}

if [ "$verb" = look ]; then
    way_to "ops/$op/boxed" look
    [ ! -e "$mark" ] || told
    usable
    ! stands || told
    printf 'offset=%s\nzone=%s\n' "$(date -d "@$5" +%z)" "$(date -d "@$5" +%Z)"
    exit 0
fi
lock
way_to "ops/$op/boxed"
[ ! -e "$mark" ] || told
usable
if ! stands; then
    entry=$D/ops/$op/box.entry
    store "$entry" "$5"
    # a line that was left without its end must not swallow the entry's first one
    if [ -s "$box" ] && [ -n "$(tail -c 1 "$box")" ]; then
        { echo; cat "$entry"; } | store "$entry.2" && mv -f "$entry.2" "$entry" || exit 5
    fi
    before=$(wc -c <"$box")
    if ! said=$(dd if="$entry" of="$box" bs="$(wc -c <"$entry" | tr -d ' ')" count=1 iflag=fullblock \
        oflag=append,nofollow conv=notrunc,nocreat,fsync status=none 2>&1 9>&-); then
        rm -f "$entry"
        [ "$(wc -c <"$box")" -le "$before" ] || cannot "$box: only a part of the entry may stand at its end: $(complaint "$said")"
        cannot "$box cannot be written: $(complaint "$said")"
    fi
    rm -f "$entry"
fi
printf '%s\n' "$box" | store "$mark" || exit $?
