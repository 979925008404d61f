# PATH: whether the file is not there.
main() {
    path=$(home "$1")
    if [ -e "$path" ] || [ -L "$path" ]; then no "$path is there"; fi
    [ -x "${path%/*}/" ] || unknown "${path%/*} cannot be searched"
    say "$path is not there"
}
main "$@" </dev/null
