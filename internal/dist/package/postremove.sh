#!/bin/sh
# Only a removal changes the units without postinstall.sh.
set -e
[ -d /run/systemd/system ] || exit 0
case $1 in
remove | 0) systemctl daemon-reload || : ;;
esac
