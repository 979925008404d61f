# fence.sh D EPOCH -- ARGV...: runs ARGV, stdin untouched, unless a newer lease was seen here (exit 4). The lock is held
# for the check alone; ARGV does not inherit it. An exit status of ARGV that is 4 or 5, too, has no `epoch=` on stdout.
folder "${1:-}"
epoch=${2:-}
[ "${3:-}" = -- ] && [ "$#" -ge 4 ] || cannot "usage: fence D EPOCH -- COMMAND"
shift 3
lock
fence "$epoch"
unlock
trap - TERM HUP
umask "$laneswap_umask"
if [ "$laneswap_locale" = unset ]; then unset LC_ALL; else LC_ALL=$laneswap_locale; fi
exec "$@"
