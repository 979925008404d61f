# drop.sh D EPOCH FILE: removes D/FILE; one that is not there is fine. Refused with exit 4 for an older epoch.
folder "${1:-}"
inside "${3:-}"
lock
way_to "$3" look
fence "${2:-}"
[ ! -d "$file" ] || [ -L "$file" ] || cannot "$file is a folder, which is refused"
said=$(rm -f "$file" 2>&1) || cannot "$file cannot be removed: $(complaint "$said")"
[ ! -d "${file%/*}" ] || sync "${file%/*}"
