# PORT: whether nobody listens on it on this host.
main() {
    [ -r /proc/net/tcp ] || unknown "/proc/net/tcp cannot be read"
    if hears "$1"; then no "somebody listens on $1"; fi
    say "nobody listens on $1"
}
main "$@" </dev/null
