#!/bin/sh
# Debian calls this with "configure" and the version that was installed before, Fedora
# with the number of versions that are installed now.
set -e
case "$1 ${2:-}" in
"configure ") echo "gcsup: /usr/share/doc/gcsup/README.Debian explains how to set up uploads." ;;
"1 ") echo "gcsup: /usr/share/doc/gcsup/README explains how to set up uploads." ;;
esac
[ -d /run/systemd/system ] || exit 0
# A unit that does not start must not leave the package half installed.
systemctl daemon-reload || :
if [ -n "${2:-}" ] || [ "$1" = 2 ]; then
	systemctl --no-block try-restart gcsup-wal.service || : # a backup that runs ends with the version that began it
fi
