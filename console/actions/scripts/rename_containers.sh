# SOCKET A A_NAME A_WANTED B B_NAME B_WANTED: gives two containers their new names; removes nothing, ever.
main() {
    engine "$1"
    a=$2 a_wanted=$4 b=$5 b_wanted=$7
    a_name=$(name_of "$a") || cannot "docker does not answer for $(short "$a")"
    b_name=$(name_of "$b") || cannot "docker does not answer for $(short "$b")"
    for known in "$a_name:$3:$a_wanted" "$b_name:$6:$b_wanted"; do
        case $known in "${known##*:}":*) continue ;; esac
        rest=${known#*:}
        [ "${known%%:*}" = "${rest%%:*}" ] || no "it is called ${known%%:*} by now, not ${rest%%:*}"
    done
    free "$a_wanted"
    free "$b_wanted"
    if [ "$a_wanted" = "$b_name" ]; then rename "$b" "laneswap-$(short "$b")"; fi
    [ "$a_name" = "$a_wanted" ] || rename "$a" "$a_wanted"
    [ "$b_name" = "$b_wanted" ] || rename "$b" "$b_wanted"
    say "$a_wanted, $b_wanted"
}

name_of() {
    look "$1" '{{.Name}}' || return 1
    say "${seen#/}"
}

# free NAME: held by one of the two, or by nobody.
free() {
    look "$1" '{{.Id}} {{.State.Status}} {{.Name}}'
    case $? in
        1) return ;;
        2) cannot "$seen" ;;
    esac
    [ "${seen##* }" = "/$1" ] || return 0
    case ${seen%% *} in "$a"* | "$b"*) return ;; esac
    rest=${seen#* }
    no "refused: name in use: $1 is held by $(short "$seen") (${rest%% *}); rename that one first"
}

rename() {
    said=$(ask 20 rename "$1" "$2" 2>&1 >/dev/null) || no "docker rename: $(printf '%.300s' "$said" | tr '\n\t' '  ')"
}
main "$@" </dev/null
