# FOLDER EVIDENCE SOCKET CONTAINER LOG [CODE=WORDS...] -- COMMAND...: runs the launcher and tells what became of it.
# SOCKET and CONTAINER (`-`: none): the head's engine, for what still runs after a launch that failed. LOG: glob of the
# launcher's own log, `-` for none. When this is ended, what the launcher started is ended with it; daemons that began a
# session of their own live on.
main() {
    folder=$(home "$1") evidence=$2 socket=$3 name=$4 log=$(home "$5")
    shift 5
    meanings=''
    while [ "$1" != -- ]; do
        meanings="$meanings$1
"
        shift
    done
    shift
    mkdir -p "$evidence" 2>/dev/null
    # without it nobody could tell afterwards whether what runs is new: nothing is launched then
    tries=0
    while head_engine && [ "$there" = unknown ] && [ "$tries" -lt 2 ]; do
        tries=$((tries + 1))
        sleep 1
    done
    before=$there
    [ "$before" != unknown ] || cannot "not launched: what runs there is not known: $seen"
    { say "$before" >"$evidence/before.launch"; } 2>/dev/null || cannot "not launched: $evidence cannot be written"
    mark="$evidence/launch.began"
    : 2>/dev/null >"$mark"
    cd "$folder" || cannot "$folder cannot be entered"
    count=$#
    while [ "$count" -gt 0 ]; do
        word=$(home "$1")
        shift
        set -- "$@" "$word"
        count=$((count - 1))
    done
    umask 022
    setsid "$@" </dev/null &
    child=$!
    trap 'ended' TERM INT HUP
    wait "$child"
    code=$?
    trap - TERM INT HUP
    keep_log
    [ "$code" -ne 0 ] || { say "the launcher ended well" && exit 0; }
    words=$(printf '%s' "$meanings" | while IFS= read -r row; do
        [ "${row%%=*}" = "$code" ] && say "${row#*=}" && break
    done)
    say "the launcher ended with $code${words:+: $words}"
    stands "$before"
    exit 1
}

ended() {
    trap - TERM INT HUP
    kill -TERM "-$child" 2>/dev/null || kill -TERM "$child" 2>/dev/null
    tries=0
    while kill -0 "-$child" 2>/dev/null && [ "$tries" -lt 50 ]; do
        tries=$((tries + 1))
        sleep 0.1
    done
    kill -KILL "-$child" 2>/dev/null
    keep_log
    say "the launcher was ended"
    exit 143
}

# head_engine: sets `there` to `none` where nobody asks, `absent`, `unknown`, or ID STARTED STATUS.
head_engine() {
    there=none
    [ "$name" != - ] || return 0
    engine "$socket"
    look "$name" '{{.Id}} {{.State.StartedAt}} {{.State.Status}}'
    case $? in
        0) there=$seen ;;
        1) there=absent ;;
        *) there=unknown ;;
    esac
}

keep_log() {
    [ "$log" != - ] || return
    newest=''
    IFS=''
    # shellcheck disable=SC2086
    for file in $log; do
        [ -f "$file" ] && [ ! "$file" -ot "$mark" ] && newest=$file
    done
    unset IFS
    [ -n "$newest" ] || return
    cp -- "$newest" "$evidence/launcher.log" 2>/dev/null
    say "== the launcher's own log, $newest:"
    tail -n 60 -- "$newest"
}

# stands BEFORE: whatever the launcher's last line says, this is what is seen.
stands() {
    [ "$name" != - ] || return
    head_engine
    case $there in
        absent) say "seen now: no container $name is there" ;;
        unknown) say "seen now: whether $name is there is not known: $seen" ;;
        "${1% *}"' '*) say "seen now: $name is the one from before (${there##* }): this launch replaced nothing on the head" ;;
        *) say "seen now: $name is a new one (${there##* })" ;;
    esac
}
main "$@" </dev/null
