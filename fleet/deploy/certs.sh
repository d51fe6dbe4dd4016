#!/bin/sh
# Makes a certificate authority for the NATS cluster of a fleet, and certificates for the servers,
# the workers and the operator, in the directory DIR.
#
#   certs.sh DIR [SERVER-NAME...]
#
# SERVER-NAME is DNS:NAME or IP:ADDRESS. The default is the names in kubernetes.yaml.
# Certificates are valid for a year. Do not copy ca.key to the machines: with it, anyone can make a
# certificate for any user.
set -eu
umask 077
dir=$1
shift
[ $# -gt 0 ] || set -- DNS:gcsup-nats 'DNS:*.gcsup-nats'
mkdir -p "$dir"
cd "$dir"

key() { openssl ecparam -name prime256v1 -genkey -noout -out "$1.key"; }

if [ ! -e ca.key ]; then
	key ca
	openssl req -x509 -new -key ca.key -days 3650 -subj "/CN=gcsup-fleet" -out ca.crt
fi

sign() { # NAME SUBJECT-ALTERNATIVE-NAMES USAGE
	key "$1"
	openssl req -new -key "$1.key" -subj "/CN=$1" |
		openssl x509 -req -CA ca.crt -CAkey ca.key -CAcreateserial -days 365 -out "$1.crt" -extfile /dev/fd/3 2>/dev/null 3<<-EOF
			subjectAltName=$2
			extendedKeyUsage=$3
		EOF
}

sign server "$(IFS=,; echo "$*")" serverAuth,clientAuth # a server is a client of the others
sign worker DNS:worker.gcsup-fleet clientAuth
sign operator DNS:operator.gcsup-fleet clientAuth
