# SOCKET A A_NAME A_WANTED B B_NAME B_WANTED BETWEEN: gives two containers their new names; removes nothing, ever. BETWEEN:
# what B is called for a moment where A gets its name. Where a name cannot be given, both are called again as they were.
main() {
    engine "$1"
    a=$2 a_was=$3 a_wanted=$4 b=$5 b_was=$6 b_wanted=$7 between=$8
    a_name=$(name_of "$a") || cannot "docker does not answer for $(short "$a")"
    b_name=$(name_of "$b") || cannot "docker does not answer for $(short "$b")"
    for known in "$a_name:$a_was:$a_wanted" "$b_name:$b_was:$b_wanted"; do
        case $known in "${known##*:}":*) continue ;; esac
        # a run that was cut off between two names left it so
        [ "$known" != "$between:$b_was:$b_wanted" ] || continue
        rest=${known#*:}
        [ "${known%%:*}" = "${rest%%:*}" ] || no "it is called ${known%%:*} by now, not ${rest%%:*}"
    done
    free "$a_wanted"
    free "$b_wanted"
    if [ "$a_wanted" = "$b_name" ]; then rename "$b" "$between" || back; fi
    [ "$a_name" = "$a_wanted" ] || rename "$a" "$a_wanted" || back
    [ "$b_name" = "$b_wanted" ] || rename "$b" "$b_wanted" || back
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

# rename ID NAME: an answer that was lost is no answer: what it is called then counts.
rename() {
    said=$(ask 20 rename "$1" "$2" 2>&1 >/dev/null) && return 0
    [ "$(name_of "$1")" != "$2" ] || return 0
    return 1
}

# back: ends the script, with the names as they were; where that fails too, with what each is called.
back() {
    why=$(printf '%.300s' "$said" | tr '\n\t' '  ')
    why="docker rename: ${why% }"
    # A first where it holds the name of B
    [ "$(name_of "$a")" = "$a_was" ] || rename "$a" "$a_was"
    [ "$(name_of "$b")" = "$b_was" ] || rename "$b" "$b_was"
    a_name=$(name_of "$a") b_name=$(name_of "$b")
    [ "$a_name $b_name" = "$a_was $b_was" ] && no "$why; they are called as before"
    no "$why; $(short "$a") is called ${a_name:-?} now, $(short "$b") ${b_name:-?}"
}
main "$@" </dev/null
