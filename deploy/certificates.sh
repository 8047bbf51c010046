#!/bin/sh
# Certificates for workers and for who asks them, in a directory:
#
#     deploy/certificates.sh certificates worker1 worker2 worker3
#
# authority.crt and authority.key: who signs; worker.crt and worker.key: for all workers, under these names or addresses; asker.crt and
# asker.key: for `pagemill sql`, `serve` and `export`. The authority's key is needed to sign again, and nowhere else: keep it away from the
# machines. Where there is an authority already, it signs. A worker reads new files on SIGHUP.
set -eu
umask 077

if [ $# -lt 2 ]; then
    echo "usage: $0 DIRECTORY NAME|ADDRESS..." >&2
    exit 2
fi
directory=$1
shift
days=${DAYS:-365}
mkdir -p "$directory"
cd "$directory"

key() {
    openssl genpkey -quiet -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$1"
}

names=
for name in "$@"; do
    case $name in
        *:*) names="$names,IP:$name" ;;
        *[!0-9.]*) names="$names,DNS:$name" ;;
        *) names="$names,IP:$name" ;;
    esac
done
names=${names#,}

if [ ! -e authority.key ]; then
    key authority.key
    openssl req -new -x509 -key authority.key -subj "/CN=pagemill workers" -days 3650 \
        -addext "basicConstraints=critical,CA:TRUE,pathlen:0" -addext "keyUsage=critical,keyCertSign,cRLSign" -out authority.crt
fi

# A worker is both: it is asked, and it asks others.
signed() {
    key "$1.key"
    extensions=$(mktemp)
    printf '%s\n' "subjectAltName=$2" "extendedKeyUsage=$3" "basicConstraints=critical,CA:FALSE" \
        "keyUsage=critical,digitalSignature" > "$extensions"
    openssl req -new -key "$1.key" -subj "/CN=$1" |
        openssl x509 -req -CA authority.crt -CAkey authority.key -days "$days" -extfile "$extensions" -out "$1.crt"
    rm -f "$extensions"
}
signed worker "$names" serverAuth,clientAuth
signed asker DNS:asker clientAuth
