#!/usr/bin/env bash
# Installs what the tests need on Debian, and runs everything a change must pass.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
. ci/needs.sh

need_packages bzip2 gcc libc6-dev git strace
need_rust clippy fmt
bash ci/install-postgres.sh
sh ci/install-drivers.sh
sh ci/install-pgbackrest.sh
sh ci/install-barman.sh
sh ci/fetch-regression-suite.sh
exec cargo xtask ci
