#!/usr/bin/env bash
# Installs what the tests need on Debian, and runs everything a change must pass.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
. ci/needs.sh

need_packages gcc libc6-dev git strace
need_rust clippy fmt
bash ci/install-postgres.sh
exec cargo xtask ci
