#!/usr/bin/env bash
# Builds what a release consists of into target/package, with a checksum beside each file:
#
#   ci/package.sh tarball TARGET   stripped static programs, man pages and completions; TARGET is
#                                  x86_64-unknown-linux-musl or aarch64-unknown-linux-musl
#   ci/package.sh deb [TARGET]     Debian packages, linked with the C library of the system they are built on,
#                                  since only that one knows the locales of its PostgreSQL
#
# Each is made twice: pagemill, and pagemill-sql with the programs that `pagemill sql` and `pagemill serve` start, which are
# several times as large. Their man pages and completions are part of pagemill's.
#
# BUILD is what builds (cargo build), as "cargo zigbuild" for another processor, and RUN what runs the built
# program where this machine cannot, as qemu-aarch64-static. PROFILE is release but to try this script.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

BUILD=${BUILD:-cargo build}
RUN=${RUN:-}
PROFILE=${PROFILE:-release}
PROGRAMS=(pagemill pagemill-lab)
# Of a workspace of their own.
SQL_PROGRAMS=(pagemill-sql pagemill-serve)

fail() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}

version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
out=$PWD/target/package
targets=${CARGO_TARGET_DIR:-$PWD/target}
sql=$PWD/crates/pagemill-sql
# Where cargo puts what it builds by a profile.
folder=$PROFILE
[ "$PROFILE" != dev ] || folder=debug

# build TARGET: the programs, and the folders they are in.
build() {
    local program features
    for program in "${PROGRAMS[@]}"; do
        # Parquet and Arrow are built only where they are asked for.
        features=
        [ "$program" != pagemill ] || features=arrow,remote
        # BUILD is a command with its arguments.
        # shellcheck disable=SC2086
        $BUILD --profile "$PROFILE" --locked ${1:+--target "$1"} --target-dir "$targets" --package "$program" \
            ${features:+--features "$features"}
    done
    # shellcheck disable=SC2086
    (cd "$sql" && $BUILD --profile "$PROFILE" --locked ${1:+--target "$1"} --target-dir "$targets/sql" \
        "${SQL_PROGRAMS[@]/#/--package=}" --features pagemill-sql/ballista,pagemill-serve/ballista)
    built=$targets/${1:+$1/}$folder
    sql_built=$targets/sql/${1:+$1/}$folder
}

# Man pages and completion scripts, as the program itself prints them.
documents() {
    rm -rf "$out/documents"
    mkdir -p "$out/documents/man" "$out/documents/completions"
    # shellcheck disable=SC2086
    $RUN "$built/pagemill" man --dir "$out/documents/man"
    local shell
    for shell in bash zsh fish; do
        # shellcheck disable=SC2086
        $RUN "$built/pagemill" completions "$shell" >"$out/documents/completions/pagemill.$shell"
    done
}

# checksum FILE: as sha256sum -c reads it.
checksum() {
    (cd "$(dirname "$1")" && sha256sum "$(basename "$1")" >"$(basename "$1").sha256")
    echo "$1"
}

# archive NAME FILE...: a tarball of one folder, with the licenses.
archive() {
    local name=$1
    shift
    rm -rf "${out:?}/$name"
    mkdir -p "$out/$name"
    cp -r "$@" LICENSE-MIT LICENSE-APACHE "$out/$name/"
    tar -C "$out" --sort=name --owner=0 --group=0 --numeric-owner -czf "$out/$name.tar.gz" "$name"
    rm -r "${out:?}/$name"
    checksum "$out/$name.tar.gz"
}

tarball() {
    local target=$1 program
    build "$target"
    documents
    local programs=("${PROGRAMS[@]/#/$built/}") sql_programs=("${SQL_PROGRAMS[@]/#/$sql_built/}")
    for program in "${programs[@]}" "${sql_programs[@]}"; do
        readelf -d "$program" | grep -q NEEDED && fail "$program is not static"
    done
    archive "pagemill-$version-$target" "${programs[@]}" "$out/documents/man" "$out/documents/completions" \
        README.md CHANGELOG.md
    archive "pagemill-sql-$version-$target" "${sql_programs[@]}"
}

# package FOLDER TARGETS TARGET: the Debian package of the crate in a folder, built in another.
package() {
    (cd "$1" && CARGO_TARGET_DIR=$2 cargo deb --no-build --no-strip --profile "$PROFILE" \
        ${3:+--target "$3"} --output "$out/" | tail -n 1)
}

deb() {
    local target=${1:-} first second wanted
    build "$target"
    documents
    first=$(package crates/pagemill "$targets" "$target")
    second=$(package "$sql" "$targets/sql" "$target")
    wanted="pagemill (= $(dpkg-deb -f "$first" Version))"
    dpkg-deb -f "$second" Depends | grep -qF "$wanted" || fail "$second does not depend on $wanted: see $sql/Cargo.toml"
    checksum "$first"
    checksum "$second"
}

mkdir -p "$out"
case ${1:-} in
    tarball) tarball "${2:?the target is missing}" ;;
    deb) deb "${2:-}" ;;
    *) fail "usage: ci/package.sh tarball TARGET | deb [TARGET]" ;;
esac
