# Builds a row copy beside $1 with the recipe's own copier and puts it in its place once it is proved good.
# DEST SNAPSHOT REVISION MANIFEST SAMPLES VERIFIED SHARDS RANGES NUMBER REMOVED... COPIER...; `check` holds rows_check.py.
# REMOVED are copies that are deleted first; @SIDE@ in the copier's words is the folder that it fills.
{
    home() {
        case $1 in
            "~/"*) printf '%s\n' "$HOME/${1#"~/"}" ;;
            *) printf '%s\n' "$1" ;;
        esac
    }

    # What else lies in the folder is somebody's: then nothing is removed. The manifest goes first.
    clear() {
        [ -e "$1" ] || [ -L "$1" ] || return 0
        [ -d "$1" ] && [ ! -L "$1" ] || { echo "$1 is no folder: not removed" >&2; return 1; }
        for file in "$1"/* "$1"/.*; do
            case ",.,..,*,.*,$manifest,$manifest.partial,model.safetensors.index.json,config.json,$shards," in
                *",${file##*/},"*) ;;
                *)
                    echo "$1 holds ${file##*/}, which is no part of a row copy: not removed" >&2
                    return 1
                    ;;
            esac
        done
        rm -f -- "$1/$manifest" && find "$1" -mindepth 1 -maxdepth 1 ! -type d -delete && rmdir -- "$1"
    }

    fail() {
        echo "$1" >&2
        exit 1
    }

    dest=$(readlink -m -- "$(home "$1")") || exit 5
    snapshot=$2 revision=$3 manifest=$4 samples=$5 verified=$6 shards=$7 ranges=$8 removes=$9
    shift 9
    side=$dest.laneswap-new old=$dest.laneswap-old log=$dest.laneswap-log ended=$dest.laneswap-exit
    proved() {
        python3 -I -c "$check" "$1" "$2" "$snapshot" "$revision" "$manifest" "$samples" "$verified" "$shards" "$ranges"
    }

    clear "$side" && clear "$old" || exit 1
    while [ "$removes" -gt 0 ]; do
        gone=$(readlink -m -- "$(home "$1")") && clear "$gone" || exit 1
        echo "removed: $gone"
        removes=$((removes - 1))
        shift
    done
    left=$#
    while [ "$left" -gt 0 ]; do
        word=$(home "$1")
        [ "$word" != @SIDE@ ] || word=$side
        shift
        set -- "$@" "$word"
        left=$((left - 1))
    done

    rm -f -- "$ended" && : >"$log" || exit 5
    {
        "$@" </dev/null 2>&1
        echo "$?" >"$ended"
    } | tee "$log"
    status=$(cat "$ended") || exit 5
    [ "$status" = 0 ] || fail "the copier ended with exit $status"
    grep -qF -e "$verified" "$log" || fail "the copier did not write '$verified'"
    proved manifest,blocks,rows "$side" || fail "the new copy is not good: it stays in $side"
    sync -f "$side"
    if [ -e "$dest" ]; then
        mv -T -- "$dest" "$old" || exit 5
    fi
    mv -T -- "$side" "$dest" || exit 5
    clear "$old" || echo "the former copy stays in $old"
    exit 0
}
