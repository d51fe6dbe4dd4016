#!/bin/sh
# Debian calls this with "remove" or "upgrade", Fedora with the number of versions that
# remain. Only a removal stops the units.
set -e
[ -d /run/systemd/system ] || exit 0
case $1 in
remove | 0) systemctl disable --now gcsup-backup.timer gcsup-backup.service gcsup-wal.service || : ;;
esac
