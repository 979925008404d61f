#!/bin/bash
# Stands in for launch/watchdog.sh of aidendle94/sparkrun-recipes: the same files, lock and lines. It probes nothing;
# what its checks find is told to it, line by line, in ~/.sgl-watchdog.told.
LOG="$HOME/sgl-watchdog.log"
LOCK="$HOME/.sgl-watchdog.lock"
TOLD="$HOME/.sgl-watchdog.told"

log() { printf '%s %s\n' "$(date '+%F %T')" "$*" >>"$LOG"; }
stopped() {
  log "watchdog stopped (pid $$, signal): no automatic recovery until launch/relaunch.sh arms a new one"
  exit 0
}

exec 9>>"$LOCK"
flock -n 9 || { log "another watchdog holds $LOCK"; exit 1; }
echo $$ >"$LOCK"
trap stopped TERM INT
printf 'watchdog started (pid %s, %s, port 8210, check every 60s, relaunch after 3 failures, probe timeout 45s)\n' \
  "$$" "$(date '+%F %T')" >>"$LOG"
while true; do
  if [ "$(cat "$LOCK" 2>/dev/null)" != "$$" ]; then
    log "lock $LOCK no longer carries pid $$: standing down"
    exit 0
  fi
  if mv "$TOLD" "$TOLD.taken" 2>/dev/null; then
    while read -r line; do log "$line"; done <"$TOLD.taken"
  fi
  sleep 0.2 &
  wait $!
done
