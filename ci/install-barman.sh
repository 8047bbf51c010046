#!/bin/sh
# Installs Barman and barman-cloud, whose backups the tests read: Debian's packages, with rsync. Safe to run again; what cannot be
# installed is said, and its tests are skipped.
set -eu

as_root() {
    if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo "$@"; fi
}

if [ -x /usr/bin/barman ] && [ -x /usr/bin/barman-cloud-backup ] && [ -x /usr/bin/rsync ]; then
    echo "Barman is already installed"
    exit 0
fi
as_root apt-get update -q >/dev/null || echo "SKIPPED: no news of Debian's packages"
as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends barman barman-cli-cloud rsync >/dev/null ||
    echo "SKIPPED: Barman could not be installed"
