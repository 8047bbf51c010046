#!/usr/bin/env bash
# Shows pagemill at work on a fresh Debian machine: installs what the build needs, builds, lets PostgreSQL
# make a small cluster, stops the server, and reads the cluster's files. Every command is printed before it
# runs. Nothing stays behind but the installed packages and the build.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
. ci/needs.sh

place=
programs=

clean_up() {
    if [ -n "$place" ]; then
        [ ! -e "$place/data/postmaster.pid" ] ||
            as_server "$programs/pg_ctl" -D "$place/data" -m immediate stop >/dev/null || true
        rm -rf "$place"
    fi
}
trap clean_up EXIT

# PostgreSQL refuses to run as root.
as_server() {
    if [ "$(id -u)" -eq 0 ]; then
        (cd / && runuser -u postgres -- "$@")
    else
        "$@"
    fi
}

run() {
    printf '\n$ %s\n' "$*"
    "$@"
}

sql() {
    as_server "$programs/psql" -X -q -v ON_ERROR_STOP=1 -h "$place" -U postgres -d postgres "$@"
}

make_cluster() {
    place=$(mktemp -d "${TMPDIR:-/tmp}/pagemill-XXXXXX")
    chmod 755 "$place"
    [ "$(id -u)" -ne 0 ] || chown postgres "$place"
    as_server "$programs/initdb" -D "$place/data" -U postgres -A trust -E UTF8 --locale=C >/dev/null
    as_server "$programs/pg_ctl" -D "$place/data" -l "$place/log" -w \
        -o "-k $place -c listen_addresses=" start >/dev/null
    sql <<'SQL'
create table orders (id int primary key, customer text, amount numeric(10,2), placed timestamptz, tags text[]);
insert into orders
select i, 'customer ' || i % 1000, i * 1.25, timestamptz '2024-01-01 00:00:00+00' + i * interval '1 minute',
       case when i % 3 = 0 then null else array['new', 'tag ' || i % 7] end
from generate_series(1, 100000) i;
delete from orders where id % 10 = 0;
SQL
    sql -c 'copy orders to stdout (format csv)' >"$place/server.csv"
    as_server "$programs/pg_ctl" -D "$place/data" -w -m fast stop >/dev/null
}

need_packages gcc libc6-dev
need_rust
if ! newest_postgres >/dev/null; then
    bash ci/install-postgres.sh
fi
programs=$(newest_postgres) || fail "no PostgreSQL 14 to 18 under /usr/lib/postgresql"

# One after the other, as cargo install takes them.
run cargo build --release --locked --package pagemill --features arrow
run cargo build --release --locked --package pagemill-lab
PATH="${CARGO_TARGET_DIR:-$PWD/target}/release:$PATH"

echo
echo "making a cluster with $("$programs/postgres" --version), and stopping the server ..."
make_cluster

run pagemill ls -D "$place/data"
run pagemill count -D "$place/data" -d postgres -t orders
run pagemill export -D "$place/data" -d postgres -t orders --format csv -o "$place/orders.csv"
run head -n 3 "$place/orders.csv"
run pagemill inspect -D "$place/data" -d postgres -t orders

echo
if cmp -s "$place/server.csv" "$place/orders.csv"; then
    echo "The export is byte for byte what the server's COPY wrote before it was stopped."
else
    fail "the export differs from what the server's COPY wrote; please report this"
fi
