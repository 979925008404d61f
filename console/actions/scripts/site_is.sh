# Whether the file $1 has one of the sha256 that follow: exit 0 yes, 1 no, 2 it cannot be told. Says what it is.
{
    case $1 in
        "~/"*) file=$HOME/${1#"~/"} ;;
        *) file=$1 ;;
    esac
    shift
    [ -e "$file" ] || { printf '%s is not there\n' "$file"; exit 1; }
    sum=$(sha256sum <"$file") || exit 2
    sum=${sum%% *}
    printf '%s is %s\n' "$file" "$sum"
    for wanted in "$@"; do
        [ "$sum" != "$wanted" ] || exit 0
    done
    exit 1
}
