# statedir.sh D: makes the state folder, or says why it cannot be used.
folder "${1:-}"
printf 'folder=%s\n' "$D"
