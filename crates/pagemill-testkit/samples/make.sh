#!/bin/sh
# Makes a sample of the WAL and the files of a server that no registry has: those of 17.11, 18.6 and later name pages of
# the visibility map in records that clear its bits. Run by hand, by any account but root; what it makes is kept here.
#
#   make.sh BINDIR      BINDIR: initdb, pg_ctl, postgres and psql of the server, built from Debian's source package:
#                       apt-get source postgresql-18; configure --without-icu --without-readline --without-zlib
#
# Beside that it needs tar, truncate and zstd. It writes VERSION.tar.zst, with these directories:
#
#   before/    what the work begins with: the control file, and those files of relations that the work changes
#   killed/    the cluster as it was when the server was stopped at once, with a transaction still open; without
#              indexes, and without catalogs that are not read
#   after/     the same relations as in `before`, and all WAL, once the server had recovered and was stopped
#   expected/  what the recovered server prints for each table, by COPY
set -eu

bindir=${1:?the directory with initdb and postgres}
here=$(cd "$(dirname "$0")" && pwd)
psql=$bindir/psql
[ -x "$psql" ] || psql=psql
version=$("$bindir/postgres" --version | sed 's/[^0-9]*\([0-9]*\.[0-9]*\).*/\1/')
root=$(mktemp -d "${TMPDIR:-/tmp}/sample.XXXXXX")
data=$root/data
sample=$root/sample
trap '"$bindir/pg_ctl" -D "$data" stop -m immediate >/dev/null 2>&1 || true; rm -rf "$root"' EXIT
export LC_ALL=C

settings="
autovacuum = off
checkpoint_timeout = 1h
fsync = off
full_page_writes = off
listen_addresses = ''
max_connections = 8
max_wal_size = 1GB
shared_buffers = 16MB
unix_socket_directories = '$root'
wal_consistency_checking = 'all'
wal_keep_size = 1GB
"
ask() { "$psql" -X -q -v ON_ERROR_STOP=1 -h "$root" -U postgres -d postgres "$@"; }
start() { "$bindir/pg_ctl" -D "$data" -l "$root/log" -w start >/dev/null; }
stop() { "$bindir/pg_ctl" -D "$data" -w stop -m "$1" >/dev/null; }
# Copies files of the cluster, named on standard input, below a directory; holes stay holes.
take() { mkdir -p "$2"; (cd "$1" && tar -cS -T - -f -) | tar -xS -C "$2" -f -; }

"$bindir/initdb" -D "$data" -U postgres -A trust -E UTF8 --locale=C --no-sync --wal-segsize=1 \
    $("$bindir/initdb" --help | sed -n 's/.*\(--no-data-checksums\).*/\1/p') >/dev/null
echo "$settings" >>"$data/postgresql.conf"
start
ask -f "$here/tables.sql"

# A table whose pages have their bits on two pages of the map: between its first page and its last two lie so many that
# were never written as make the bits of the second last the first ones of the map's second page, as those of the first are
# of its first one. Without a free space map the last page is the one that is looked at.
far=$(ask -At -c "select pg_relation_filepath('far')")
stop fast
truncate -s $((8192 * 32673)) "$data/$far"
rm -f "$data/${far}_fsm"
start
ask -c "insert into far select g, 0, repeat('f', 900) from generate_series(1001, 1010) g" -c "vacuum (freeze) far"
stop fast
rm -f "$data/${far}_fsm"
start
# Catalogs come to rest, and what was done until now is no part of the sample.
ask -c "vacuum (freeze)" -c "checkpoint"
stop fast
rm -f "$data/${far}_fsm"
mkdir "$root/whole"
(cd "$data" && find base/5 global -type f) | take "$data" "$root/whole"

start
first=$(ask -At -c "select redo_wal_file from pg_control_checkpoint()")
ask -f "$here/work.sql"
# What is still open when the server goes down. The commit after it brings its records to the disk.
mkfifo "$root/open"
ask -f "$root/open" >/dev/null 2>&1 &
exec 3>"$root/open"
cat "$here/open.sql" >&3
until [ "$(ask -At -c "select count(*) from pg_locks where locktype = 'advisory'")" = 1 ]; do
    sleep 0.1
done
ask -c "insert into plain values (9999, 0, 'committed last')"
stop immediate
exec 3>&-
wait || true
killed=$root/killed
mkdir "$killed"
tar -cS -C "$data" -f - . | tar -xS -C "$killed" -f -

start
mkdir -p "$sample/expected"
for table in $(ask -At -c "select relname from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r'"); do
    ask -c "copy $table to stdout" >"$sample/expected/$table.txt"
done
stop fast

changed() {
    (cd "$root/whole" && find base/5 global -type f ! -name '*_fsm' ! -name '*.init') | while read -r file; do
        cmp -s "$root/whole/$file" "$data/$file" || echo "$file"
    done
}
changed >"$root/changed"
take "$root/whole" "$sample/before" <"$root/changed"
take "$data" "$sample/after" <"$root/changed"

# WAL from the segment on that the work begins in.
wal() {
    (cd "$1" && find pg_wal -type f -name '0*') | while read -r file; do
        [ "${file#pg_wal/}" \< "$first" ] || echo "$file"
    done
}
wal "$data" | take "$data" "$sample/after"

# Of the killed cluster: tables, the catalogs that tell of them (pg_type, pg_attribute, pg_class, pg_am, pg_namespace,
# pg_database, pg_authid, pg_tablespace, pg_db_role_setting), transactions, and every directory.
kept='base/5/(1247|1249|1259|2601|2615|[1-9][0-9]{4,})(_vm)?|global/(1213|1260|1262|2964)|base/1/1249'
kept="$kept|.*/pg_filenode.map|global/pg_control|PG_VERSION|postmaster.opts|(pg_xact|pg_multixact)/.*"
cd "$killed"
find . -type d ! -path './base/4' | sed 's,^./,,' >"$root/kept"
find . -type f | sed 's,^./,,' | grep -Ex "$kept" >>"$root/kept"
wal "$killed" >>"$root/kept"
mkdir "$sample/killed"
tar -cS --no-recursion -T "$root/kept" -f - | tar -xS -C "$sample/killed" -f -
: >"$sample/killed/postgresql.conf"

tar -cS -C "$sample" --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 -f - . |
    zstd -q -19 --long=27 -f -o "$here/$version.tar.zst"
ls -l "$here/$version.tar.zst"
