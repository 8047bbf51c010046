#!/usr/bin/env bash
# Tries a Debian package on the system it runs on: installs it by dpkg, runs what is in it, reads its man pages,
# asks its completions, removes it, and looks for what was left. As root, where losing the package is no loss.
#
#   ci/try-package.sh FILE.deb [DATADIR]   with a data directory, its databases are listed and its tables counted
set -euo pipefail

package=${1:?the package is missing}
data=${2:-}

fail() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}

# expect PATTERN COMMAND...: the command succeeds, and a line of what it prints has the pattern.
expect() {
    local wanted=$1 printed
    shift
    printed=$("$@" 2>&1) || fail "$* failed: $printed"
    grep -q -- "$wanted" <<<"$printed" || fail "$* does not show: $wanted"
    echo "ok: $*"
}

# The words that completion offers for a command line whose last word is begun.
offered() {
    # The test is of bash's own loader, as an interactive shell runs it.
    bash -c '
        . /usr/share/bash-completion/bash_completion
        _completion_loader pagemill || test $? = 124
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*" COMP_POINT=${#COMP_LINE}
        _pagemill pagemill "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
        printf "%s\n" "${COMPREPLY[@]}"' bash "$@"
}

dpkg -i "$package"
files=$(dpkg -L pagemill | while read -r path; do [ -d "$path" ] || echo "$path"; done)

expect '^pagemill [0-9]' pagemill --version
expect 'ls -D' pagemill ls --help
expect 'row-group-size' pagemill export --help
expect 'O_DIRECT' pagemill probe /tmp
expect '^ii ' dpkg -l pagemill
expect 'posix_fallocate' pagemill lab --quick --size 1MB --experiment extend --details --no-html /tmp
if [ -n "$data" ]; then
    expect 'postgres' pagemill ls -D "$data"
    expect '^[a-z_.]*[[:space:]]*[0-9]' pagemill count -D "$data" -t 'pg_catalog.*'
fi
for page in $(grep -o 'man1/[^/]*\.1' <<<"$files" | sed 's,man1/,,; s,\.1$,,'); do
    expect 'SYNOPSIS' env MANPAGER=cat MANWIDTH=80 man "$page"
done
if [ -e /usr/share/bash-completion/bash_completion ]; then
    expect 'export' offered pagemill exp
    expect 'order-by' offered pagemill count --ord
else
    echo "SKIPPED: completion, as bash-completion is not installed"
fi

dpkg -r pagemill
for file in $files; do
    [ ! -e "$file" ] || fail "$file is left"
done
echo "ok: nothing is left"
