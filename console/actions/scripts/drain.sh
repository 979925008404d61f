# METRICS SECONDS: waits until no request runs or waits, at most that long. 1: some still do.
main() {
    began=$(now)
    while :; do
        get "$1" 10
        count=$(printf '%s\n' "$body" | awk '
            /^(vllm:num_requests_(running|waiting)|sglang:num_(running|queue)_reqs|llamacpp:requests_(processing|deferred))[{ ]/ {
                found = 1
                sum += $NF
            }
            END { if (found) printf "%d", sum; else print "-" }')
        [ "$code" = 200 ] && [ "$count" = 0 ] && say "no request runs after $(($(now) - began)) s" && exit 0
        if [ $(($(now) - began)) -ge "$2" ]; then
            if [ "$count" = - ]; then no "after $2 s it is not known what runs (metrics $code)"; fi
            no "$count requests still run after $2 s"
        fi
        sleep 1
    done
}
main "$@" </dev/null
