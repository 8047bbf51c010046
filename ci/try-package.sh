#!/usr/bin/env bash
# Tries Debian packages on the system it runs on: installs them by dpkg, runs what is in them, reads the man pages,
# asks the completions, removes all, and looks for what was left. As root, where losing the packages is no loss.
#
#   ci/try-package.sh FILE.deb... [DATADIR]   the package pagemill, and with it pagemill-sql; with a data directory, its
#                                             databases are listed, its tables counted and asked for in SQL
set -euo pipefail

package=
sql_package=
data=
for given in "$@"; do
    case $(basename "$given") in
        pagemill-sql_*.deb) sql_package=$given ;;
        *.deb) package=$given ;;
        *) data=$given ;;
    esac
done

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

# The files of a package.
files_of() {
    dpkg -L "$1" | while read -r path; do [ -d "$path" ] || echo "$path"; done
}

# refused PATTERN COMMAND...: the command fails, and says this.
refused() {
    local wanted=$1 printed
    shift
    ! printed=$("$@" 2>&1) || fail "$* did not fail"
    grep -q -- "$wanted" <<<"$printed" || fail "$* does not say: $wanted"
    echo "ok: $*, in vain"
}

[ -n "$package" ] || fail "the package is missing"
dpkg -i "$package"
files=$(files_of pagemill)

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
if [ -n "$sql_package" ]; then
    refused 'package pagemill-sql of a release' pagemill serve -D "${data:-/}"
    dpkg -i "$sql_package"
    files+=$'\n'$(files_of pagemill-sql)
    for command in sql serve; do
        expect 'Usage: pagemill' pagemill "$command" --help
        expect '^pagemill [0-9]' "pagemill-$command" --version
    done
    if [ -n "$data" ]; then
        expect '^42$' pagemill sql -D "$data" -d postgres --format csv 'select 6 * 7 as n'
        if command -v psql >/dev/null; then
            expect '^[1-9][0-9]*$' pagemill serve -D "$data" --exec psql -X -A -t -c 'select count(*) from pg_class' postgres
        else
            echo "SKIPPED: pagemill serve, as psql is not installed"
        fi
    fi
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

if [ -n "$sql_package" ]; then
    refused 'dependency problems' dpkg -r pagemill
    dpkg -r pagemill-sql
fi
dpkg -r pagemill
for file in $files; do
    [ ! -e "$file" ] || fail "$file is left"
done
echo "ok: nothing is left"
