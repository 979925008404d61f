# PATH: whether the file is there.
main() {
    path=$(home "$1")
    if [ -e "$path" ] || [ -L "$path" ]; then
        text=''
        { read -r text <"$path"; } 2>/dev/null
        printf '%.160s\n' "${text:-there}"
        exit 0
    fi
    [ -x "${path%/*}/" ] || unknown "${path%/*} cannot be searched"
    no "$path is not there"
}
main "$@" </dev/null
