# start|stop MANAGER UNIT: starts or stops a systemd unit.
main() {
    said=$(control "$2" "$1" -- "$3" 2>&1) || no "systemctl $1: $(printf '%.300s' "$said" | tr '\n\t' '  ')"
    say "systemctl $1 $3"
}
main "$@" </dev/null
