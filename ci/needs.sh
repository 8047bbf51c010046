# Finds or installs what the scripts of this project need. Sourced by quickstart.sh and test.sh.
#
# Debian's packages are installed where they are missing and we may; otherwise the message says
# what to install. Rust comes from rustup where Debian's own is older than this project needs.
# shellcheck shell=bash

RUST_MINOR=88 # rust-version in Cargo.toml

fail() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}

# Runs a command with the rights to install packages.
as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        fail "not root, and no sudo: run this as root first: $*"
    fi
}

# need_packages PACKAGE...: installs those that are not there.
need_packages() {
    local package missing=()
    command -v dpkg-query >/dev/null || fail "not a Debian system: install the likes of $*"
    for package in "$@"; do
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' ||
            missing+=("$package")
    done
    [ "${#missing[@]}" -gt 0 ] || return 0
    echo "installing ${missing[*]}"
    { as_root apt-get update -qq && as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null; } ||
        fail "could not install ${missing[*]}: without a network, add an installation medium or a copied" \
            "mirror to apt's sources (apt-cdrom add) and run this again"
}

# Whether this release of Debian has a package; a name that others only provide has no version.
debian_has() {
    command -v apt-cache >/dev/null || return 1
    as_root apt-get update -qq
    apt-cache policy "$1" | grep -q 'Candidate: [0-9]'
}

# The minor version of cargo 1.x; nothing without a working cargo.
cargo_minor() {
    cargo --version 2>/dev/null | sed -n 's/^cargo 1\.\([0-9]*\)\..*/\1/p'
}

rust_is_new_enough() {
    local minor
    minor=$(cargo_minor)
    [ -n "$minor" ] && [ "$minor" -ge "$RUST_MINOR" ]
}

# need_rust [COMPONENT...]: a cargo that can build this project, from rustup where Debian's is too old.
need_rust() {
    if [ -n "${HOME:-}" ] && [ -d "$HOME/.cargo/bin" ]; then
        PATH="$HOME/.cargo/bin:$PATH"
    fi
    if ! rust_is_new_enough && ! command -v rustup >/dev/null; then
        if debian_has rustup; then
            need_packages rustup
        else
            need_packages curl ca-certificates
            rustup_script >/dev/null || without_network "the installer of rustup"
            echo "installing Rust with rustup, into $HOME/.cargo$(found_rust)"
            rustup_script |
                sh -s -- -y --quiet --profile minimal --no-modify-path || without_network rustup
            PATH="$HOME/.cargo/bin:$PATH"
        fi
    fi
    if ! rust_is_new_enough && command -v rustup >/dev/null; then
        rustup toolchain install stable --profile minimal --no-self-update ||
            without_network "the stable toolchain"
        export RUSTUP_TOOLCHAIN=stable
    fi
    rust_is_new_enough || fail "Rust 1.$RUST_MINOR or newer is needed$(found_rust): install it with rustup"
    local component
    for component in "$@"; do
        cargo "$component" --version >/dev/null 2>&1 && continue
        command -v rustup >/dev/null || fail "cargo $component is missing; install it"
        rustup component add "$(component_name "$component")" ||
            without_network "the component $component"
    done
}

rustup_script() {
    curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs 2>/dev/null
}

# without_network WHAT: ends with what to carry to a machine that cannot fetch it.
without_network() {
    fail "Rust 1.$RUST_MINOR or newer is needed$(found_rust), and $1 could not be fetched.
Without a network there are two ways, both from a machine that has one:
- Carry the program alone. It needs no Rust here: the static build of a release, or
  cargo build --release --locked --package pagemill and target/release/pagemill.
- Carry what builds it. Copy Rust's standalone installer for $(uname -m)-unknown-linux-gnu, which is listed on
  https://forge.rust-lang.org/infra/other-installation-methods.html, unpack it here and run its ./install.sh.
  Run mkdir -p .cargo && cargo vendor >> .cargo/config.toml in the checkout and copy that with its new folder
  vendor. Then run this again."
}

found_rust() {
    if command -v cargo >/dev/null; then
        printf ' (found %s)' "$(cargo --version 2>/dev/null || echo 'a cargo that does not run')"
    fi
}

# What rustup calls the component of a cargo command.
component_name() {
    case $1 in
        fmt) echo rustfmt ;;
        *) echo "$1" ;;
    esac
}

# The programs of the newest PostgreSQL installed that pagemill can read.
newest_postgres() {
    local version
    for version in 18 17 16 15 14; do
        if [ -x "/usr/lib/postgresql/$version/bin/initdb" ]; then
            echo "/usr/lib/postgresql/$version/bin"
            return 0
        fi
    done
    return 1
}
