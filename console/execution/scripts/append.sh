# append.sh D EPOCH FILE [SIZE [AT]]: stdin's lines are added to D/FILE, all of them or none, on disk before it answers.
# SIZE: how many bytes have to come. AT: how long the file has to be before; if it is not, exit 3, with its `size=`.
folder "${1:-}"
inside "${3:-}"
size=${4:-} at=${5:-}
[ -z "$size" ] || number "$size" || cannot "not a size: $size"
[ -z "$at" ] || number "$at" || cannot "not an offset: $at"
lock
fence "${2:-}"
way_to "$3"
plain "$file"
[ -e "$file" ] || store "$file" </dev/null
length=$(wc -c <"$file") || cannot "$file cannot be read by $(id -un)"
length=$((length))
if [ -n "$at" ] && [ "$at" -ne "$length" ]; then
    printf 'size=%s\n' "$length"
    echo "$file is $length bytes long, not $at: somebody else has added to it" >&2
    exit 3
fi
incoming=$file.incoming
store "$incoming" "$size"
undo() {
    truncate -s "$length" "$file" 2>/dev/null
    rm -f "$incoming"
    cannot "nothing was added to $file: $(complaint "$1")"
}
# a line that was torn off by a crash must not swallow the next one
if [ "$length" -gt 0 ] && [ -n "$(tail -c 1 "$file")" ]; then
    said=$( (echo >>"$file") 2>&1) || undo "$said"
fi
said=$(cat "$incoming" 2>&1 >>"$file" && sync "$file" 2>&1) || undo "$said"
rm -f "$incoming"
printf 'size=%s\n' "$(wc -c <"$file" | tr -d ' ')"
