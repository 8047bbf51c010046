#!/bin/sh
# Installs the PostgreSQL server the oracle tests cannot do without (version 15, Debian's package), its psql
# included, in the newest minor version there is: what servers write and say differs among them in small things. Safe to run again.
# The package's own cluster is not needed and is not created.
set -eu

major=15
as_root() {
    if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo "$@"; fi
}

if [ -x "/usr/lib/postgresql/$major/bin/postgres" ] && ls /run/postgresql/"$major"-*.pid >/dev/null 2>&1; then
    echo "SKIPPED: a server of PostgreSQL $major runs here, and is left as it is"
    exit 0
elif [ -x "/usr/lib/postgresql/$major/bin/postgres" ]; then
    as_root apt-get update -qq >/dev/null && as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y \
        -o Dpkg::Options::=--force-confold --only-upgrade "postgresql-$major" "postgresql-client-$major" >/dev/null ||
        echo "SKIPPED: no news of Debian's PostgreSQL $major"
    "/usr/lib/postgresql/$major/bin/postgres" --version
    exit 0
fi

if [ ! -e /etc/postgresql-common/createcluster.conf ]; then
    as_root mkdir -p /etc/postgresql-common
    echo 'create_main_cluster = false' | as_root tee /etc/postgresql-common/createcluster.conf >/dev/null
fi
as_root apt-get update -q
as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y -o Dpkg::Options::=--force-confold \
    --no-install-recommends "postgresql-$major" "postgresql-client-$major"
"/usr/lib/postgresql/$major/bin/postgres" --version
