# FOLDER COMMAND...: runs a command of the recipe there (`-`: in the home folder) and ends as it ends.
main() {
    folder=$1
    [ "$folder" != - ] || folder=$HOME
    cd "$(home "$folder")" || cannot "$folder cannot be entered"
    shift
    count=$#
    while [ "$count" -gt 0 ]; do
        word=$(home "$1")
        shift
        set -- "$@" "$word"
        count=$((count - 1))
    done
    umask 022
    "$@"
    code=$?
    [ "$code" -eq 0 ] || say "$1 ended with $code"
    exit "$code"
}
main "$@" </dev/null
