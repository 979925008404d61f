# PATH WORDS: writes a flag that says who and when; one that is there stays as it is.
main() {
    path=$(home "$1")
    if [ -e "$path" ]; then say "it is there already" && exit 0; fi
    new="$path.laneswap.$$"
    { printf '%s at %s\n' "$2" "$(date -u +%Y-%m-%dT%H:%M:%SZ)" >"$new"; } 2>/dev/null || cannot "$path cannot be written"
    sync "$new" 2>/dev/null || :
    mv -n "$new" "$path" || cannot "$path cannot be written"
    rm -f "$new"
    say "$path written"
}
main "$@" </dev/null
