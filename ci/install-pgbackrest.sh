#!/bin/sh
# Installs pgBackRest, whose repositories the tests read: Debian's package. One that is too old to store files by blocks (before 2.46)
# leaves those to be skipped; PAGEMILL_PGBACKREST names another one. Safe to run again; what cannot be installed is said.
set -eu

as_root() {
    if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo "$@"; fi
}

if [ -x /usr/bin/pgbackrest ]; then
    echo "pgBackRest is already installed"
    exit 0
fi
as_root apt-get update -q >/dev/null || echo "SKIPPED: no news of Debian's packages"
as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends pgbackrest >/dev/null ||
    echo "SKIPPED: pgBackRest could not be installed"
