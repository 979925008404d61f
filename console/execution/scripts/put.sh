# put.sh D EPOCH FILE [SIZE]: stdin becomes D/FILE, as a whole or not at all; refused with exit 4 for an older epoch.
folder "${1:-}"
inside "${3:-}"
size=${4:-}
[ -z "$size" ] || number "$size" || cannot "not a size: $size"
lock
fence "${2:-}"
way_to "$3"
store "$file" "$size"
printf 'size=%s\n' "$(wc -c <"$file" | tr -d ' ')"
