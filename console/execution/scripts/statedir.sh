# statedir.sh D: makes the state folder, or says why it cannot be used; and who besides this account could act there.
folder "${1:-}"
mode=$(stat -c %a "${D%/*}")
group=
case $mode in
*[2367]?) group=$(stat -c %G "${D%/*}") ;;
esac
members=
if [ -n "$group" ]; then
    row=$(getent group "$group" 2>/dev/null || grep "^$group:" /etc/group)
    members=${row##*:}
fi
printf '%s\n' "folder=$D" "group=$group" "members=$members"
