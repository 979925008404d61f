# MANAGER UNIT active|inactive: what the unit is. A bus that does not answer, or an unknown unit, leaves it open.
main() {
    said=$(control 100 "$1" is-active -- "$2" 2>&1)
    code=$?
    word=$(printf '%s\n' "$said" | head -n 1)
    case $code:$word in
        0:active | 0:reloading | 0:refreshing) state=active ;;
        3:inactive | 3:failed) state=inactive ;;
        3:activating | 3:deactivating | 3:reloading | 0:*) no "$2 is $word" ;;
        *) unknown "$2: $(printf '%.200s' "$word") (exit $code)" ;;
    esac
    [ "$state" = "$3" ] || no "$2 is $word"
    say "$2 is $word"
}
main "$@" </dev/null
