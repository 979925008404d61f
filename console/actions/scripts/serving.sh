# BASE HEALTH NAME: whether health is 200 and NAME is among the models.
main() {
    if serves "$1" "$2" "$3"; then
        say "$words"
        exit 0
    fi
    no "$words"
}
main "$@" </dev/null
