#!/bin/bash
# Relaunches the lane: disarms the watchdog, runs production.sh, waits until the head is healthy, arms a new watchdog.
# Takes no arguments and looks at none. What launch/relaunch.sh of the SGLang fleets does, in its words.
HERE=$(cd "$(dirname "$0")" && pwd)
FLEET_ENV="${FLEET_ENV:-$HERE/fleet.env}"
[ -f "$FLEET_ENV" ] || { echo "ABORT: $FLEET_ENV not found" >&2; exit 1; }
. "$FLEET_ENV"
. "$HERE/http.sh"
PORT="${PORT:-8210}"
READY_LIMIT="${READY_LIMIT:-40}"
WATCHDOG_LOG=$HOME/sgl-watchdog.log
case "${LOG_DIR:-sgl-dsv41-logs}" in /*) logs=$LOG_DIR ;; *) logs=$HOME/${LOG_DIR:-sgl-dsv41-logs} ;; esac
mkdir -p "$logs" && [ -w "$logs" ] || { echo "ABORT: cannot write to LOG_DIR=$logs (fleet.env)" >&2; exit 1; }
out=$logs/dsv41-sgl-relaunch-$(date +%H%M%S).log

say() { echo "$*" | tee -a "$out"; }
fail() {
  say "$1 — the fleet is DOWN and the watchdog is DISARMED; fix the cause, then run relaunch.sh again (log: $out)"
  exit "$2"
}
healthy() { ask 5 127.0.0.1 "$PORT" /health; }

: >"$out"
say "relaunch start $(date +%T)"
pid=$(grep -o 'watchdog started (pid [0-9]*' "$WATCHDOG_LOG" 2>/dev/null | tail -n 1 | grep -o '[0-9]*$')
if [ -n "$pid" ] && ps -p "$pid" -o args= | grep -q 'launch/watchdog[.]sh'; then
  kill "$pid" && say "watchdog $pid disarmed"
fi
rm -f "$HOME/.sgl-watchdog.lock"
[ -n "${PREVIOUS_STACK_STOP:-}" ] && bash -c "$PREVIOUS_STACK_STOP" >>"$out" 2>&1
PORT=$PORT bash "$HERE/production.sh" >>"$out" 2>&1 || fail "launch failed" 1
began=$(date +%s)
until healthy; do
  sleep 0.2
  [ $(($(date +%s) - began)) -gt "$READY_LIMIT" ] &&
    fail "not healthy after 40 min (docker logs sgldsv41 on each node)" 2
  docker ps --format '{{.Names}}' | grep -qx sgldsv41 ||
    fail "head container exited $(date +%T) (docker logs sgldsv41)" 3
done
say "healthy $(date +%T) after $(($(date +%s) - began)) s"
docker logs sgldsv41 2>&1 | grep -E 'DSV4 memory calculation|The server is fired up' | tail -n 4 | cut -c1-200 | tee -a "$out"
PORT=$PORT nohup setsid bash "$HERE/watchdog.sh" >/dev/null 2>&1 &
sleep 1
say "watchdog: $(tail -n 1 "$WATCHDOG_LOG")"
