# The dry runs of the present site file and of a candidate, compared: FOLDER VARIABLE OLD NEW ROWS_OLD ROWS_NEW RANKS HOLDER
# LAUNCHER...; `candidate` holds the candidate in base64, `check` readings/dryrun.py. Nothing is changed.
{
    umask 077
    folder=$1 variable=$2 old=$3 new=$4 rows_old=$5 rows_new=$6 ranks=$7 holder=$8
    shift 8
    [ -d "$folder" ] || folder=${TMPDIR:-/tmp}
    work=$(mktemp -d "$folder/dry-run.XXXXXX") || exit 2
    trap 'rm -rf -- "$work"' EXIT
    trap 'exit 2' HUP INT TERM
    printf '%s' "$candidate" | base64 -d >"$work/candidate.env" || exit 2
    printf '%s' "$check" >"$work/check.py" || exit 2

    # A knob that somebody exported must not be in one of them.
    clean() {
        env -i PATH="$PATH" HOME="$HOME" USER="${USER-}" LOGNAME="${LOGNAME-}" LANG=C.UTF-8 "$@" </dev/null 2>&1
    }

    left=$#
    while [ "$left" -gt 0 ]; do
        case $1 in
            "~/"*) word=$HOME/${1#"~/"} ;;
            *) word=$1 ;;
        esac
        shift
        set -- "$@" "$word"
        left=$((left - 1))
    done
    clean "$@" >"$work/present"
    present=$?
    clean "$variable=$work/candidate.env" "$@" >"$work/candidate"
    python3 -I "$work/check.py" "$work/present" "$present" "$work/candidate" "$?" \
        "$old" "$new" "$rows_old" "$rows_new" "$ranks" "$holder"
    exit
}
