# ask SECONDS ADDRESS PORT PATH [BODY]: 0 where HTTP answers 200, 124 where nothing came in time. The hosts have no curl.
ask() {
  timeout "$1" bash -c 'exec 3<>"/dev/tcp/$0/$1" || exit 7
    [ -n "$3" ] && method=POST || method=GET
    printf "%s %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s" "$method" "$2" "$0" "${#3}" "$3" >&3
    read -r _ code _ <&3 && [ "$code" = 200 ]' "$2" "$3" "$4" "${5:-}" 2>/dev/null
}
