# Sources the bash file $1 as its launcher would, in a clean shell, and lists what that shell has then:
# NAME NUL VALUE NUL, arrays as `NAME[]` in the words of `declare -p`, functions as `()`; an empty name and `end` last.
# What the file prints is dropped. Nothing after it is trusted but builtins: it may have changed PATH, IFS and options.
exec 196>&1 >/dev/null 2>&1 </dev/null
set -a
. "$1"
trap - DEBUG ERR EXIT RETURN
{
    while IFS= builtin read -r _laneswap; do
        case $_laneswap in
            _ | _laneswap | BASH* | COMP_* | DIRSTACK | EPOCH* | FUNCNAME | GROUPS | HISTCMD | LINENO | PIPESTATUS) ;;
            PPID | RANDOM | SECONDS | SHELLOPTS | SRANDOM) ;;
            *) builtin printf '%s\0%s\0' "$_laneswap" "${!_laneswap-}" ;;
        esac
    done < <(builtin compgen -A variable)
    while IFS= builtin read -r _laneswap; do
        case $_laneswap in
            BASH* | COMP_* | DIRSTACK | FUNCNAME | GROUPS | PIPESTATUS) ;;
            *) builtin printf '%s[]\0%s\0' "$_laneswap" "$(builtin declare -p "$_laneswap")" ;;
        esac
    done < <(builtin compgen -A arrayvar)
    builtin printf '()\0%s\0\0end\0' "$(builtin declare -f)"
} >&196
