#!/bin/bash
# Asks the lane every few seconds and drives cluster.sh down and up after three failures in a row: what
# ops/fleet-watchdog.sh of the vLLM fleets does, with its flag files and its lines, at another pace.
HERE=$(cd "$(dirname "$0")/.." && pwd)
. "${CLUSTER_ENV:-$HERE/cluster.env}"
. "$HERE/launch/http.sh"
CHECK_INTERVAL="${CHECK_INTERVAL:-2}"
PAUSE=/var/tmp/dsv41-watchdog.pause
GAVE_UP=/var/tmp/dsv41-watchdog.gaveup
LOGS=/var/tmp/dsv41-logs
mkdir -p $LOGS

log() { echo "$(date -u +%FT%TZ) $*" >>$LOGS/watchdog.log; }

exec 9>>/var/tmp/dsv41-watchdog.lock
flock -n 9 || { log "another watchdog holds the lock"; exit 1; }

# why: what fails, '' for nothing
probe() {
  local rank state
  why=""
  for rank in "${!NODES[@]}"; do
    state=$(ssh -o BatchMode=yes -o ConnectTimeout=5 "${NODES[$rank]}" \
      "docker inspect --format '{{.State.Status}}' $CONTAINER 2>/dev/null || echo absent" | tail -n 1)
    [ "$state" = running ] || { why="rank $rank on ${NODES[$rank]}: $state"; return; }
  done
  ask 5 "$API_HOST" "$API_PORT" /health || { why=health; return; }
  ask 5 "$API_HOST" "$API_PORT" /v1/chat/completions '{"max_tokens":1}' || why=canary
}

recover() {
  log "=== RECOVERY: $why"
  bash "$HERE/launch/cluster.sh" down >>$LOGS/watchdog.log 2>&1
  if bash "$HERE/launch/cluster.sh" up >>$LOGS/watchdog.log 2>&1; then
    log "=== RECOVERY OK"
    recoveries=0
  else
    log "=== RECOVERY FAILED"
    rm -f $PAUSE
    recoveries=$((recoveries + 1))
  fi
}

log "watchdog started: ${#NODES[@]} every ${CHECK_INTERVAL}s"
fails=0 recoveries=0 told=0
while true; do
  sleep "$CHECK_INTERVAL"
  [ -e $GAVE_UP ] && continue
  if [ -e $PAUSE ]; then
    [ $told = 0 ] && log "paused ($(cat $PAUSE))"
    told=1 fails=0
    continue
  fi
  told=0
  probe
  if [ -z "$why" ]; then
    [ $fails -gt 0 ] && log "healthy again after $fails failed probe(s)"
    fails=0
    continue
  fi
  fails=$((fails + 1))
  log "probe failed ($why) $fails/3"
  [ $fails -lt 3 ] && continue
  fails=0
  recover
  if [ $recoveries -ge 3 ]; then
    log "=== GIVING UP after $recoveries recoveries"
    echo "$(date -u +%FT%TZ) $recoveries recoveries failed" >$GAVE_UP
  fi
done
