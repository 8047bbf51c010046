#!/bin/sh
# Fetches PostgreSQL 15's regression suite out of Debian's source package into the cache that the tests look in:
# $HOME/.cache/pagemill-test/regress15. Safe to run again; skipped, in words, where it cannot be had. apt checks the signatures,
# and its own lists and sources stay as they are.
#
# Run by root, the servers of the tests must be able to read it, which root's home is not for: it is then put into
# /var/cache/pagemill-test, and the cache in the home holds a symbolic link.
set -eu

major=15
cache="$HOME/.cache/pagemill-test"
store="$cache"
[ "$(id -u)" -ne 0 ] || store=/var/cache/pagemill-test

skip() {
    echo "SKIPPED: $*, so the regression suite's database is not dumped"
    exit 0
}

if [ -e "$cache/regress$major/parallel_schedule" ]; then
    echo "the regression suite of PostgreSQL $major is already there"
    exit 0
fi
for tool in apt-get bzip2; do
    command -v "$tool" >/dev/null || skip "there is no $tool"
done

mkdir -p "$cache" "$store"
work=$(mktemp -d "$store/fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/sources" "$work/lists/partial" "$work/suite"
# The same places as for programs, for their sources.
for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
    [ ! -e "$file" ] || sed -n 's/^deb /deb-src /p' "$file" >"$work/sources/$(basename "$file")"
done
for file in /etc/apt/sources.list.d/*.sources; do
    [ ! -e "$file" ] || sed 's/^Types:.*/Types: deb-src/' "$file" >"$work/sources/$(basename "$file")"
done

# The first word is the tool, apt-get or apt-cache; it sees the lists of this folder only.
apt() {
    tool=$1
    shift
    "$tool" -q -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$work/sources" \
        -o Dir::State::lists="$work/lists" -o APT::Sandbox::User="$(id -un)" "$@"
}

# That of the server that is installed, or else any that can be had: a mirror may list what it no longer holds, and the suites of
# minor versions differ by little.
installed=$(dpkg-query -W -f '${source:Version}' "postgresql-$major" 2>/dev/null || true)
cd "$work"
apt apt-get update >/dev/null || skip "there are no lists of source packages"
listed=$(apt apt-cache showsrc "postgresql-$major" | sed -n 's/^Version: //p')
fetched=
for version in $installed $listed; do
    if apt apt-get source --download-only "postgresql-$major=$version" >/dev/null; then
        fetched=$version
        break
    fi
    rm -f "postgresql-$major"_*
done
[ -n "$fetched" ] || skip "the source package could not be fetched"
tar -xjf "postgresql-$major"_*.orig.tar.bz2 -C suite --no-same-owner --strip-components=4 --wildcards \
    '*/src/test/regress/sql' '*/src/test/regress/data' '*/src/test/regress/parallel_schedule'
chmod -R a+rX,go-w suite
rm -rf "$store/regress$major"
mv suite "$store/regress$major"
[ "$store" = "$cache" ] || ln -sfn "$store/regress$major" "$cache/regress$major"
echo "the regression suite of PostgreSQL $major is there"
