# PERCENT: whether that part of the memory is available.
main() {
    total='' free=''
    while read -r key value _; do
        case $key in
            MemTotal:) total=$value ;;
            MemAvailable:) free=$value ;;
        esac
    done </proc/meminfo
    number "$total" && number "$free" || unknown "/proc/meminfo says nothing"
    has="$((free / 1048576)) of $((total / 1048576)) GiB available"
    [ $((free / 1024 * 100)) -ge $((total / 1024 * $1)) ] || no "$has"
    say "$has"
}
main "$@" </dev/null
