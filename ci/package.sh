#!/usr/bin/env bash
# Builds what a release consists of into target/package, with a checksum beside each file:
#
#   ci/package.sh tarball TARGET   stripped static programs, man pages and completions; TARGET is
#                                  x86_64-unknown-linux-musl or aarch64-unknown-linux-musl
#   ci/package.sh deb [TARGET]     a Debian package, linked with the C library of the system it is built on,
#                                  since only that one knows the locales of its PostgreSQL
#
# BUILD is what builds (cargo build), as "cargo zigbuild" for another processor, and RUN what runs the built
# program where this machine cannot, as qemu-aarch64-static.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

BUILD=${BUILD:-cargo build}
RUN=${RUN:-}
PROGRAMS=(pagemill pagemill-lab)

fail() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}

version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
out=$PWD/target/package

# build TARGET: the programs, and the folder they are in.
build() {
    local program features
    for program in "${PROGRAMS[@]}"; do
        # Parquet and Arrow are built only where they are asked for.
        features=
        [ "$program" != pagemill ] || features=arrow
        # BUILD is a command with its arguments.
        # shellcheck disable=SC2086
        $BUILD --release --locked ${1:+--target "$1"} --package "$program" \
            ${features:+--features "$features"}
    done
    built=${CARGO_TARGET_DIR:-$PWD/target}/${1:+$1/}release
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

tarball() {
    local target=$1 name="pagemill-$version-$1" program
    build "$target"
    documents
    rm -rf "${out:?}/$name"
    mkdir -p "$out/$name"
    for program in "${PROGRAMS[@]}"; do
        readelf -d "$built/$program" | grep -q NEEDED && fail "$program is not static"
        cp "$built/$program" "$out/$name/"
    done
    cp -r "$out/documents/man" "$out/documents/completions" "$out/$name/"
    cp README.md CHANGELOG.md LICENSE-MIT LICENSE-APACHE "$out/$name/"
    tar -C "$out" --sort=name --owner=0 --group=0 --numeric-owner -czf "$out/$name.tar.gz" "$name"
    rm -r "${out:?}/$name"
    checksum "$out/$name.tar.gz"
}

deb() {
    local target=${1:-} package
    build "$target"
    documents
    package=$(cargo deb --package pagemill --no-build --no-strip ${target:+--target "$target"} \
        --output "$out/" | tail -n 1)
    checksum "$package"
}

mkdir -p "$out"
case ${1:-} in
    tarball) tarball "${2:?the target is missing}" ;;
    deb) deb "${2:-}" ;;
    *) fail "usage: ci/package.sh tarball TARGET | deb [TARGET]" ;;
esac
