#!/bin/bash
# Starts every rank of the lane, the workers first: what launch/production.sh of the SGLang fleets does, in its words.
#   production.sh [--dry-run|--stop]      anything else is ignored
# Site facts come from launch/fleet.env, or from the file that FLEET_ENV names.
set -o pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
FLEET_ENV="${FLEET_ENV:-$HERE/fleet.env}"
NAME=sgldsv41
PORT="${PORT:-8210}"
DIST_PORT="${DIST_PORT:-20100}"
CHUNK="${CHUNK:-2048}"
MAXREQ="${MAXREQ:-16}"
EXTRA_ARGS="${EXTRA_ARGS:-}"

abort() { echo "ABORT: $*" >&2; exit 1; }

[ -f "$FLEET_ENV" ] || abort "$FLEET_ENV not found"
. "$FLEET_ENV"
RANKS=${#NODES[@]}
for key in NODES USERS HOMES; do
  declare -n listed=$key
  [ "${#listed[@]}" = "$RANKS" ] && [ "$RANKS" -gt 1 ] || abort "$key in $FLEET_ENV must list exactly $RANKS ranks"
done
for key in FABRIC_IFACE FABRIC_SUBNET MODEL_REPO SNAP ENGRAM_LOCAL_DIR; do
  [ -n "${!key:-}" ] || abort "$key is not set in $FLEET_ENV"
done
LAST=$((RANKS - 1))
HEAD=${NODES[0]}
[[ "$(ip -o addr)" == *" $HEAD/"* ]] ||
  abort "this node does not carry the rank-0 fabric address $HEAD (NODES[0] in $FLEET_ENV); run the launcher on rank 0"
IMAGE="${IMAGE:-laneswap/sglang-stand-in:production}"

# RANK PATH: absolute on that rank
absolute() { case "$2" in /*) echo "$2" ;; *) echo "${HOMES[$1]}/$2" ;; esac; }

# RANK COMMAND: rank 0 is this host
on_rank() {
  if [ "$1" = 0 ]; then
    bash -c "$2"
  else
    ssh -o BatchMode=yes -o ConnectTimeout=10 "${USERS[$1]}@${NODES[$1]}" "$2"
  fi
}

reach_all() {
  local rank why
  for rank in $(seq 1 "$LAST"); do
    why=$(ssh -o BatchMode=yes -o ConnectTimeout=5 "${USERS[$rank]}@${NODES[$rank]}" true 2>&1 >/dev/null) && continue
    why=$(tail -n 1 <<<"$why" | tr -d '\r')
    abort "rank $rank: cannot ssh to ${USERS[$rank]}@${NODES[$rank]}: ${why:-no error text}" \
      "(check NODES/USERS in $FLEET_ENV and key-based ssh from this node)"
  done
}

# RANK: the docker command of a rank, on one line
run_line() {
  local cache repo rows gid
  cache=$(absolute "$1" "${CACHE_DIR:-sgl-dsv41-cache}")
  gid=$(on_rank "$1" "cat $cache/gid 2>/dev/null || echo 3" 2>/dev/null | tail -n 1)
  case "$gid" in [0-9] | [0-9][0-9]) ;; *) abort "rank $1: no RoCE v2 GID for ${NODES[$1]} on ${RDMA_HCAS%%,*}" ;; esac
  if [ "$1" = "${MODEL_HOST_RANK:-}" ]; then
    repo=$MODEL_REPO_HOST
    rows="-e SPARK_ENGRAM_DIR=/models/repo/$SNAP -e SPARK_ENGRAM_ROWS=$ENGRAM_ROWS_HOST"
  else
    repo=$MODEL_REPO
    rows="-v $(absolute "$1" "$ENGRAM_LOCAL_DIR"):/engram-local:ro -e SPARK_ENGRAM_DIR=/engram-local"
  fi
  echo -n "mkdir -p $cache; docker run -d --name $NAME --restart no --network host --ipc host" \
    "--memory 512m --oom-score-adj 500" \
    "-v $repo:/models/repo:ro -v $cache:/root/.cache $rows" \
    "-e SPARK_SERVED_ALIASES=$SERVED_ALIASES -e HOST_IP=${NODES[$1]} -e NCCL_SOCKET_IFNAME=$FABRIC_IFACE" \
    "-e NCCL_IB_ADDR_RANGE=$FABRIC_SUBNET -e NCCL_IB_GID_INDEX=$gid" \
    "--entrypoint python3 $IMAGE -m sglang.launch_server --model-path /models/repo/$SNAP" \
    "--served-model-name deepseek-v4.1-flash --trust-remote-code --tp $RANKS --ep-size $RANKS --nnodes $RANKS" \
    "--node-rank $1 --dist-init-addr $HEAD:$DIST_PORT --host 0.0.0.0 --port $PORT --chunked-prefill-size $CHUNK" \
    "--max-running-requests $MAXREQ --speculative-algorithm DSPARK" \
    "--default-chat-template-kwargs '{\"thinking\":true}' $EXTRA_ARGS"
}

stop() {
  local rank pid
  pid=$(grep -o 'watchdog started (pid [0-9]*' "$HOME/sgl-watchdog.log" 2>/dev/null | tail -n 1 | grep -o '[0-9]*$')
  [ -n "$pid" ] && ps -p "$pid" >/dev/null &&
    echo "NOTE: the fleet watchdog (pid $pid) is armed and will relaunch production within minutes;" \
      "kill it first, or use launch/relaunch.sh" >&2
  reach_all
  for rank in $(seq 0 "$LAST"); do
    on_rank "$rank" "docker inspect $NAME >/dev/null 2>&1 && docker rm -f $NAME >/dev/null && echo '  stopped rank $rank' ||
      echo '  rank $rank: nothing to stop'" | tail -n 1
  done
}

# RANK: `image-ok overlay-ok rows-ok`, or what is missing
preflight() {
  local what
  if [ "$1" = "${MODEL_HOST_RANK:-}" ]; then
    what="$MODEL_REPO_HOST/$SNAP/model.safetensors.index.json"
  else
    what="$(absolute "$1" "$ENGRAM_LOCAL_DIR")/engram-local.json"
  fi
  on_rank "$1" "docker image inspect $IMAGE >/dev/null 2>&1 && echo image-ok || echo image-MISSING
    docker image inspect $IMAGE 2>/dev/null | grep -q '\"overlay\": \"spark\"' && echo overlay-ok || echo overlay-MISMATCH
    test -f $what && echo rows-ok || echo rows-MISSING" 2>&1 | tail -n 3 | tr '\n' ' '
}

preflight_all() {
  local rank found bad=""
  echo "== preflight"
  for rank in $(seq 0 "$LAST"); do
    found=$(preflight "$rank")
    case "$found" in
      *"image-ok overlay-ok rows-ok"*) echo "  rank $rank: image + overlay + engram rows OK" ;;
      *-ok* | *-MI*)
        bad=1
        echo "  rank $rank: ${found% } — image $IMAGE (docker pull it on that node; overlay-MISMATCH = the image's" \
          "overlay does not read SPARK_* and would run stock SGLang) / engram rows" \
          "$(absolute "$rank" "$ENGRAM_LOCAL_DIR")/engram-local.json"
        ;;
      *)
        bad=1
        echo "  rank $rank: unreachable (${USERS[$rank]}@${NODES[$rank]}): $found"
        ;;
    esac
  done
  [ -z "$bad" ] || { echo "ABORT preflight (nothing was stopped or started)"; exit 1; }
}

# RANK: returns once no engine's process is left there
wait_free() {
  local try busy
  for try in $(seq 1 30); do
    busy=$(on_rank "$1" "pgrep -fc 'sglang[.]launch_server'" 2>/dev/null | tail -n 1)
    [ "$busy" = 0 ] && { echo "  rank $1: GPU free"; return; }
    echo "  rank $1: GPU busy ($busy ), waiting"
    sleep 0.2
  done
  echo "ABORT: rank $1 GPU still busy"
  exit 1
}

dry=0 stopping=0
for word in "$@"; do
  case "$word" in --dry-run) dry=1 ;; --stop) stopping=1 ;; esac
done
[ $stopping = 1 ] && { stop; exit 0; }
reach_all
if [ $dry = 1 ]; then
  for rank in $(seq 0 "$LAST"); do
    echo "== rank $rank"
    line=$(run_line "$rank") || exit 1
    echo "$line"
  done
  exit 0
fi
preflight_all
for rank in $(seq 0 "$LAST"); do
  on_rank "$rank" "docker rm -f $NAME >/dev/null 2>&1"
done >/dev/null
for rank in $(seq 0 "$LAST"); do wait_free "$rank"; done
for rank in $(seq "$LAST" -1 0); do
  line=$(run_line "$rank") || exit 1
  on_rank "$rank" "$line" >/dev/null || { echo "rank $rank launch FAILED"; exit 1; }
  echo "  rank $rank launched"
done
echo "== launched: head API http://$HEAD:$PORT (health: /health); follow: docker logs -f $NAME"
