# lease.sh take D OPERATOR CONSOLE PURPOSE TTL [over [ID [SEEN]]]: granted with all keys, or exit 3 with the holder's.
#     `over` takes an expired or foreign one over; with SEEN only from the lease of that id. The same ID twice is one take.
# lease.sh renew D ID | release D ID | offer D ID TO: exit 4 with the holder's keys when it is not ours any more.
# lease.sh accept D OPERATOR CONSOLE TTL [ID]: takes what was offered to OPERATOR, else exit 1.
# lease.sh show D: the holder's keys, or none. Every answer has now= (this host's clock) and highest= (epoch).
verb=${1:-}
if [ "$verb" = show ]; then reading "${2:-}"; else folder "${2:-}"; fi

one_line() {
    case $1 in
    *"
"*) cannot "a value of a lease is one line" ;;
    esac
    [ "${#1}" -le 500 ] || cannot "a value of a lease has at most 500 bytes"
}

answer() {
    if [ "$holder" = held ]; then
        printf '%s\n' "id=$l_id" "epoch=$l_epoch" "operator=$l_operator" "console=$l_console" "purpose=$l_purpose" \
            "acquired=$l_acquired" "renewed=$l_renewed" "ttl=$l_ttl" "offered_to=$l_offered_to"
    fi
    printf '%s\n' "holder=$holder" "highest=$highest" "now=$now" "$@"
}

write_lease() {
    printf '%s\n' "id=$l_id" "epoch=$l_epoch" "operator=$l_operator" "console=$l_console" "purpose=$l_purpose" \
        "acquired=$l_acquired" "renewed=$l_renewed" "ttl=$l_ttl" "offered_to=$l_offered_to" | store "$D/lease" || exit $?
}

# a new lease with the next epoch, from $l_operator, $l_console, $l_purpose, $l_ttl and $id
grant() {
    [ -n "$id" ] || id=$(od -An -N8 -tx1 /dev/urandom | tr -d ' \n')
    word "$id" || cannot "not an id: $id"
    one_line "$l_operator"
    one_line "$l_console"
    one_line "$l_purpose"
    [ -n "$l_operator" ] || cannot "a lease needs an operator's name"
    number "$l_ttl" && [ "$l_ttl" -ge 1 ] || cannot "not a number of seconds: $l_ttl"
    highest=$((highest + 1))
    # the lease is the truth: should this be cut off behind it, its epoch counts all the same
    l_id=$id l_epoch=$highest l_acquired=$now l_renewed=$now l_offered_to= holder=held
    write_lease
    printf '%s\n' "$highest" | store "$D/epoch" || exit $?
}

# exit unless the lease is that of id $1
ours() {
    [ "$holder" != held ] || [ "$l_id" != "$1" ] || return 0
    answer
    if [ "$holder" = nobody ]; then
        echo "nobody holds the lease any more" >&2
        exit 1
    fi
    [ "$holder" = held ] || cannot "$D/lease is damaged: take it over"
    echo "fenced off: $l_operator holds the lease since $l_acquired" >&2
    exit 4
}

# what is renamed into place can be read without a lock, and by those who may not write here
[ "$verb" = show ] || lock
now=$(date +%s)
highest
case $verb in
show) ;;
take)
    [ "$#" -ge 6 ] || cannot "usage: lease take D OPERATOR CONSOLE PURPOSE TTL [over [ID [SEEN]]]"
    over=${7:-} id=${8:-} seen=${9:-} from=$l_operator
    if [ "$holder" != held ] || [ -z "$id" ] || [ "$l_id" != "$id" ]; then
        if [ "$holder" = damaged ] && [ "$over" != over ]; then
            answer
            cannot "$D/lease is damaged: nobody knows who holds it; take it over"
        fi
        if [ "$holder" = held ] && { [ "$over" != over ] || { [ -n "$seen" ] && [ "$seen" != "$l_id" ]; }; }; then
            answer
            echo "$l_operator holds the lease" >&2
            exit 3
        fi
        l_operator=$3 l_console=$4 l_purpose=$5 l_ttl=$6
        grant
        answer "from=$from"
        exit 0
    fi
    ;;
renew)
    ours "${3:-}"
    l_renewed=$now
    write_lease
    ;;
release)
    if [ "$holder" != nobody ]; then
        ours "${3:-}"
        said=$(rm -f "$D/lease" 2>&1) || cannot "$D/lease cannot be removed: $(complaint "$said")"
        sync "$D"
        holder=nobody
    fi
    ;;
offer)
    ours "${3:-}"
    one_line "${4:-}"
    l_offered_to=${4:-}
    write_lease
    ;;
accept)
    id=${6:-} from=$l_operator
    if [ "$holder" != held ] || [ -z "$id" ] || [ "$l_id" != "$id" ]; then
        if [ "$holder" != held ] || [ -z "${3:-}" ] || [ "$l_offered_to" != "$3" ]; then
            answer
            echo "the lease was not offered to ${3:-}" >&2
            exit 1
        fi
        l_operator=$3 l_console=${4:-} l_ttl=${5:-}
        grant
        answer "from=$from"
        exit 0
    fi
    ;;
*) cannot "no such verb: $verb" ;;
esac
answer
