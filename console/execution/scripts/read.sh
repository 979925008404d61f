# read.sh D FILE OFFSET MOST: `size=` of D/FILE and at most MOST bytes from OFFSET as `data=`, in base64; exit 1 and
# nothing where there is no such file. Makes nothing.
reading "${1:-}"
inside "${2:-}"
way_to "$2" look
number "${3:-}" && number "${4:-}" || cannot "not an offset and a number of bytes: ${3:-} ${4:-}"
[ -e "$file" ] || [ -L "$file" ] || exit 1
plain "$file"
[ -r "$file" ] || cannot "$file cannot be read by $(id -un)"
printf 'size=%s\n' "$(wc -c <"$file" | tr -d ' ')"
printf 'data=%s\n' "$(tail -c "+$(($3 + 1))" "$file" | head -c "$4" | base64 | tr -d '\n')"
