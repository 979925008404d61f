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
    before=$(head_engine)
    printf '%s\n' "$before" 2>/dev/null >"$evidence/before.launch"
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

head_engine() {
    [ "$name" != - ] || return
    engine "$socket"
    look "$name" '{{.Id}} {{.State.StartedAt}} {{.State.Status}}' && say "$seen"
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
    after=$(head_engine)
    if [ -z "$after" ]; then
        say "seen now: no container $name is there"
    elif [ "${after% *}" = "${1% *}" ]; then
        say "seen now: $name is the one from before (${after##* }): this launch replaced nothing on the head"
    else
        say "seen now: $name is a new one (${after##* })"
    fi
}
main "$@" </dev/null
