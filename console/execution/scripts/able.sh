# able.sh D: whether leases and files can be written in D, before anybody confirms anything: exit 0 with `uid=`, or 5 with
# the reason. Makes no folder and leaves nothing behind.
named "${1:-}"
printf 'uid=%s\n' "$(id -u)"
at=$D
while [ ! -e "$at" ] && [ ! -L "$at" ]; do
    at=${at%/*}
    [ -n "$at" ] || at=/
done
for one in "$D" "${D%/*}"; do
    [ ! -L "$one" ] || cannot "$one is a symbolic link, which is refused"
done
[ -d "$at" ] || cannot "$D cannot be made: $at is no folder"
base=${D%/*}
case $at in
"$D" | "$base") private "$base" ;;
"${base%/*}") ;;
*) [ -z "${base%/*}" ] || cannot "$base cannot be made: there is no ${base%/*}" ;;
esac
if [ "$at" = "$D" ]; then
    plain "$D/lock"
    plain "$D/lease"
    highest
    [ ! -e "$D/lock" ] || [ -w "$D/lock" ] || cannot "$D/lock cannot be opened by $(id -un)"
fi
# a disk that is full takes a name, and a root that may write anywhere still has a file system that is read-only
trap 'rm -f "$laneswap_temp"' EXIT
trap 'exit 143' TERM HUP
laneswap_temp=$(mktemp "$at/.new.XXXXXXXX" 2>&1) || {
    said=$laneswap_temp laneswap_temp=
    cannot "$D cannot be written: $(complaint "$said")"
}
said=$({ od -An -v -N4096 -tx1 /dev/zero >"$laneswap_temp" && sync "$laneswap_temp"; } 2>&1) ||
    cannot "$D cannot be written: $(complaint "${said:-no space is left on it}")"
