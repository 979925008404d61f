#!/bin/bash
# Asks the head every few seconds and relaunches the lane after three failures in a row: what launch/watchdog.sh of the
# SGLang fleets does, with its files, its lock and its lines, at another pace.
set -u
HERE=$(cd "$(dirname "$0")" && pwd)
FLEET_ENV="${FLEET_ENV:-$HERE/fleet.env}"
[ -f "$FLEET_ENV" ] || { echo "watchdog: $FLEET_ENV not found" >&2; exit 1; }
. "$FLEET_ENV"
. "$HERE/http.sh"
export PORT="${PORT:-8210}"
CHECK_INTERVAL="${CHECK_INTERVAL:-2}"
FAIL_THRESHOLD="${FAIL_THRESHOLD:-3}"
PROBE_TIMEOUT="${PROBE_TIMEOUT:-3}"
BUSY_GRACE="${BUSY_GRACE:-4}"
READY_TIMEOUT="${READY_TIMEOUT:-60}"
RELAUNCH_LIMIT="${RELAUNCH_LIMIT:-3}"
NAME=sgldsv41
LOG=$HOME/sgl-watchdog.log
LOCK=$HOME/.sgl-watchdog.lock
BASE=http://127.0.0.1:$PORT
case "${LOG_DIR:-sgl-dsv41-logs}" in /*) logs=$LOG_DIR ;; *) logs=$HOME/${LOG_DIR:-sgl-dsv41-logs} ;; esac
mkdir -p "$logs"

log() { printf '%s %s\n' "$(date '+%F %T')" "$*" >>"$LOG"; }
mine() { [ "$(cat "$LOCK" 2>/dev/null)" = "$$" ]; }

exec 9>>"$LOCK"
if ! flock -n 9; then
  log "watchdog not started: another instance (pid $(cat "$LOCK")) holds $LOCK — kill it first, or use launch/relaunch.sh"
  exit 1
fi
echo $$ >"$LOCK"
printf 'watchdog started (pid %s, %s, port %s, check every %ss, relaunch after %s failures, probe timeout %ss, %s)\n' \
  "$$" "$(date '+%F %T')" "$PORT" "$CHECK_INTERVAL" "$FAIL_THRESHOLD" "$PROBE_TIMEOUT" \
  "busy grace ${BUSY_GRACE}s, ready timeout ${READY_TIMEOUT}s, log dir $logs, fleet $FLEET_ENV" >>"$LOG"

# Whatever takes a while is a child that is waited for, so that a signal is obeyed at once.
child=""
run() {
  "$@" &
  child=$!
  wait "$child"
  local code=$?
  child=""
  return $code
}
stopped() {
  log "watchdog stopped (pid $$, signal): no automatic recovery until launch/relaunch.sh arms a new one"
  [ -n "$child" ] && kill "$child" 2>/dev/null
  mine && rm -f "$LOCK"
  exit 0
}
trap stopped TERM INT HUP

head_state() {
  docker inspect --format \
    'head container {{.State.Status}} (exit code {{.State.ExitCode}}, oom killed {{.State.OOMKilled}})' \
    "$NAME" 2>/dev/null || echo "no container named $NAME on this node"
}
fetch() { run ask "$PROBE_TIMEOUT" 127.0.0.1 "$PORT" "$@"; }

# result: ok, busy or fail; why
check() {
  result=fail
  if ! fetch /health; then
    why="/health on $BASE gave no answer; $(head_state)"
    return
  fi
  fetch /v1/chat/completions '{"max_tokens":3}'
  case $? in
    0) result=ok ;;
    124 | 143) result=busy why="3-token chat probe unanswered within ${PROBE_TIMEOUT}s while /health is 200" ;;
    *) why="chat probe answered without choices" ;;
  esac
}

evidence() {
  local folder=$1 rank
  { echo "trigger: $2"; tail -n 40 "$LOG"; } >"$folder/summary.txt"
  run timeout 20 docker inspect "$NAME" >"$folder/rank0-state.txt" 2>&1
  run timeout 20 docker logs "$NAME" >"$folder/rank0-docker.log" 2>&1
  for rank in $(seq 1 $((${#NODES[@]} - 1))); do
    run timeout 20 ssh -o BatchMode=yes -o ConnectTimeout=5 "${USERS[$rank]}@${NODES[$rank]}" \
      "docker logs --tail 200 $NAME" >"$folder/rank$rank.txt" 2>&1
  done
  log "evidence captured in $folder: $(ls "$folder" | tr '\n' ' ')"
}

# FOLDER ATTEMPT: 0 once the head is healthy again
wait_healthy() {
  local began waited
  began=$(date +%s)
  while true; do
    run sleep 1
    waited=$(($(date +%s) - began))
    if fetch /health; then
      log "fleet healthy ${waited}s after relaunch attempt $2; arming again on the next successful probe"
      return 0
    fi
    mine || { log "lock $LOCK no longer mine while waiting for the boot: standing down"; exit 0; }
    if ! docker ps --format '{{.Names}}' | grep -qx "$NAME"; then
      log "head container exited ${waited}s into the boot: $(head_state) — read $1/relaunch.log and 'docker logs $NAME'"
      return 1
    fi
    if [ "$waited" -ge "$READY_TIMEOUT" ]; then
      log "not healthy ${waited}s after relaunch attempt $2 (READY_TIMEOUT ${READY_TIMEOUT}s)"
      return 1
    fi
    [ $((waited % 5)) = 0 ] && log "booting: ${waited}s, head container running"
  done
}

recover() {
  local attempt folder code
  for attempt in $(seq 1 "$RELAUNCH_LIMIT"); do
    mine || { log "lock $LOCK no longer mine before relaunch attempt $attempt: standing down"; exit 0; }
    folder=$logs/postmortem/$(date +%Y%m%d-%H%M%S)
    mkdir -p "$folder"
    log "RECOVERY attempt $attempt/$RELAUNCH_LIMIT: capturing evidence into $folder, then relaunching the fleet"
    evidence "$folder" "$1"
    log "running launch/production.sh (log: $folder/relaunch.log); it tears every rank down before starting any"
    run bash "$HERE/production.sh" >"$folder/relaunch.log" 2>&1
    code=$?
    if [ $code != 0 ]; then
      log "launch/production.sh exited $code — read $folder/relaunch.log"
      run sleep 2
    elif wait_healthy "$folder" "$attempt"; then
      return
    fi
  done
  log "GIVING UP after $RELAUNCH_LIMIT relaunch attempts: the fleet needs a human. Read $logs/postmortem, fix the cause," \
    "then run launch/relaunch.sh. This watchdog keeps probing and arms itself again once the fleet is healthy"
}

armed=0 fails=0 busy_since=0 unarmed=0 why=""
while true; do
  mine || {
    log "lock $LOCK no longer carries pid $$ (removed or taken over by a relaunch/window script): standing down"
    exit 0
  }
  check
  now=$(date +%s)
  case $result in
    ok)
      [ $armed = 0 ] && log "armed: /health 200 and the chat probe answered; checking every ${CHECK_INTERVAL}s"
      [ $fails -gt 0 ] && log "healthy again after $fails failed check(s); counter reset"
      [ $busy_since != 0 ] && log "busy cleared after $((now - busy_since))s"
      armed=1 fails=0 busy_since=0 unarmed=0
      ;;
    busy)
      if [ $armed = 0 ]; then
        log "healthy but busy, not armed yet: $why"
      else
        [ $busy_since = 0 ] && busy_since=$now
        if [ $((now - busy_since)) -ge "$BUSY_GRACE" ]; then
          fails=$((fails + 1))
          log "busy for $((now - busy_since))s, past BUSY_GRACE ${BUSY_GRACE}s: failure $fails/$FAIL_THRESHOLD ($why)"
        else
          log "busy $((now - busy_since))s of ${BUSY_GRACE}s grace: $why (not a failure yet)"
        fi
      fi
      ;;
    fail)
      busy_since=0
      if [ $armed = 0 ]; then
        unarmed=$((unarmed + 1))
        [ $unarmed -gt 3 ] && [ $((unarmed % 10)) != 0 ] || log "not healthy, not armed (check $unarmed): $why"
      else
        fails=$((fails + 1))
        log "check failed $fails/$FAIL_THRESHOLD: $why"
      fi
      ;;
  esac
  if [ $armed = 1 ] && [ $fails -ge "$FAIL_THRESHOLD" ]; then
    recover "$fails consecutive failed checks; last: $why"
    armed=0 fails=0 busy_since=0 unarmed=0
  fi
  run sleep "$CHECK_INTERVAL"
done
