#!/bin/bash
# Drives the lane from its head: what launch/cluster.sh of the vLLM fleets does, in its words.
#   cluster.sh preflight|up|down|status|engram|logs RANK [N]|dry-run RANK
# Site facts come from cluster.env, or from the file that CLUSTER_ENV names.
HERE=$(cd "$(dirname "$0")/.." && pwd)
CLUSTER_ENV="${CLUSTER_ENV:-$HERE/cluster.env}"
. "$CLUSTER_ENV"
. "$HERE/launch/http.sh"
PAUSE=/var/tmp/dsv41-watchdog.pause
LOGS=/var/tmp/dsv41-logs
READY_LIMIT="${READY_LIMIT:-60}"
RANKS=${#NODES[@]}
BASE=http://$API_HOST:$API_PORT

# RANK COMMAND: the head is reached by ssh as the others are
on_rank() { ssh -o BatchMode=yes -o ConnectTimeout=5 "${NODES[$1]}" "$2"; }
state() { on_rank "$1" "docker inspect --format '{{.State.Status}}' $CONTAINER 2>/dev/null || echo absent" | tail -n 1; }
healthy() { ask 5 "$API_HOST" "$API_PORT" /health; }
up_order() { seq $((RANKS - 1)) -1 0; }
down_order() { echo 0; seq $((RANKS - 1)) -1 1; }

# RANK: its docker command, on one line
run_line() {
  local headless=""
  [ "$1" = 0 ] || headless="--headless"
  echo "docker run -d --name $CONTAINER --restart no --network host --ipc host --memory 512m -v $MODEL_DIR:/model:ro" \
    "-v $CACHE_DIR:/root/.cache -e NCCL_SOCKET_IFNAME=$RAIL_A_IFACE -e VLLM_HOST_IP=${RAIL_A_IPS[$1]}" \
    "--entrypoint vllm $IMAGE serve /model --served-model-name deepseek-v4.1-flash --tensor-parallel-size $RANKS" \
    "--nnodes $RANKS --node-rank $1 --master-addr ${RAIL_A_IPS[0]} --master-port $MASTER_PORT $headless" \
    "--host $API_HOST --port $API_PORT --max-model-len $MAXLEN --max-num-seqs $SEQS"
}

# RANK: `ok:` lines, or exit 5
preflight() {
  local image revision
  image=$(on_rank "$1" "docker image inspect --format '{{.Id}}' $IMAGE 2>/dev/null" | tail -n 1)
  case "$image" in
    sha256:*) echo "  ok: image $IMAGE $image" ;;
    *) echo "PREFLIGHT FAIL [rank $1 ${NODES[$1]}]: image $IMAGE is not there"; return 5 ;;
  esac
  revision=$(on_rank "$1" "grep -o '\"revision\": \"[0-9a-f]*\"' $MODEL_DIR/engram-local.json" | tail -n 1)
  case "$revision" in
    *"$MODEL_REVISION"*) echo "  ok: Engram rows of $MODEL_REVISION for rank $1" ;;
    *) echo "PREFLIGHT FAIL [rank $1 ${NODES[$1]}]: engram-local.json is not of $MODEL_REVISION"; return 5 ;;
  esac
  echo "preflight passed: rank $1"
}

down() {
  local rank stamp
  stamp=$(date -u +%Y%m%dT%H%M%SZ)
  echo "$(date -u +%FT%TZ) paused by cluster.sh down ($(id -un))" >$PAUSE
  echo "watchdog paused ($PAUSE on ${NODES[0]}) until the next successful up"
  for rank in $(down_order); do
    on_rank "$rank" "if docker inspect $CONTAINER >/dev/null 2>&1; then
        mkdir -p $LOGS/$stamp && docker logs $CONTAINER >$LOGS/$stamp/$CONTAINER.log 2>&1
        docker inspect $CONTAINER >$LOGS/$stamp/$CONTAINER.json
        docker stop -t 10 $CONTAINER >/dev/null; docker rm -f $CONTAINER >/dev/null
        echo '${NODES[$rank]}: stopped, log in $LOGS/$stamp'
      else echo '${NODES[$rank]}: no container'; fi" | tail -n 1
  done
}

up() {
  local rank began
  for rank in $(up_order); do
    [ "$(state "$rank")" = absent ] ||
      { echo "${NODES[$rank]} still has $CONTAINER; run cluster.sh down first"; exit 3; }
  done
  for rank in $(seq 0 $((RANKS - 1))); do preflight "$rank" || exit 5; done
  for rank in $(up_order); do
    on_rank "$rank" "mkdir -p $CACHE_DIR; $(run_line "$rank")" >/dev/null || { echo "rank $rank did not start"; exit 1; }
    echo "started $CONTAINER rank=$rank"
  done
  echo "waiting for $BASE/health (weights, draft, autotune and graph capture take many minutes)"
  began=$(date +%s)
  until healthy; do
    sleep 0.2
    for rank in $(up_order); do
      [ "$(state "$rank")" = running ] && continue
      echo "rank $rank on ${NODES[$rank]} is $(state "$rank"); its last lines:"
      on_rank "$rank" "docker logs --tail 60 $CONTAINER 2>&1"
      exit 1
    done
    [ $(($(date +%s) - began)) -gt "$READY_LIMIT" ] && { echo "not healthy after 60 min"; exit 1; }
  done
  echo "serving after $((($(date +%s) - began) / 60)) min"
  engram
  rm -f $PAUSE
}

engram() {
  local rank
  for rank in $(seq 0 $((RANKS - 1))); do
    on_rank "$rank" "echo '${NODES[$rank]} rank $rank:' \
      \$(docker logs $CONTAINER 2>&1 | grep -c 'Engram layer .* read from node-local') tables read node-local, 0 warnings" |
      tail -n 1
  done
}

status() {
  local rank
  for rank in $(seq 0 $((RANKS - 1))); do echo "${NODES[$rank]}: $(state "$rank") $IMAGE"; done
  if healthy; then echo "health: ok"; else echo "health: down"; fi
}

case "${1:-}" in
  preflight) for rank in $(seq 0 $((RANKS - 1))); do preflight "$rank" || exit 5; done ;;
  up) up ;;
  down) down ;;
  status) status ;;
  engram) engram ;;
  logs) on_rank "$2" "docker logs --tail ${3:-60} $CONTAINER 2>&1" ;;
  dry-run) run_line "$2" ;;
  *) echo "usage: cluster.sh preflight|up|down|status|engram|logs RANK [N]|dry-run RANK" >&2; exit 2 ;;
esac
