# PERCENT UUID...: whether that part of each GPU's memory is free.
main() {
    percent=$1
    shift
    table=$(timeout -k 2 10 nvidia-smi --query-gpu=uuid,memory.used,memory.total --format=csv,noheader,nounits 2>/dev/null) ||
        unknown "nvidia-smi does not answer"
    for wanted in "$@"; do
        row=$(printf '%s\n' "$table" | grep -F -- "$wanted" | tr -d ' ')
        used=${row#*,}
        total=${used#*,}
        used=${used%%,*}
        case $used$total in '' | *[!0-9]*) unknown "$wanted: its memory is not told" ;; esac
        [ $(((total - used) * 100)) -ge $((total * percent)) ] || no "$used of $total MiB in use"
    done
    say "free"
}
main "$@" </dev/null
