# start|stop MANAGER UNIT: starts or stops a systemd unit; one that takes long is left to whoever asks what the unit is.
main() {
    job 100 "$2" "$1" "$3"
}
main "$@" </dev/null
