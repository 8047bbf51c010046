#!/bin/sh
# keep-times.sh RECORD: gives the files of a fresh checkout the times that the same files had in the checkout of the run before, as
# RECORD has them, and records what is here now. Run in the root of the checkout. A directory that cargo builds into has one record,
# wherever the checkouts lie: cargo takes what one of them built for the others' too.
#
# cargo takes what it built for as good as new if no source is younger, and in a fresh checkout all are: the crates of this project
# would be built again for every run. A file keeps its time only if its content is what it was in the run before; every other one is
# as young as this run. So what was built since that time was built from that content, provided that nobody builds into the same
# directory without this. In the checkout of the run before, files have their own times, and are left alone.
set -eu

record=$1
# Of the directory: another one at the same path differs in it. Where a file system knows no birth, a number that is used again only
# means that all is built again.
checkout="$(pwd) $(stat -c '%i %W' .)"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tab=$(printf '\t')

# Whatever is asked of each file of the checkout.
files() {
    find . \( -path ./.git -o -path ./target \) -prune -o -type f "$@"
}
files_with_times() {
    files -printf "%p\t%T@\n" | LC_ALL=C sort
}
files -print0 | xargs -0 sha1sum | sed -E 's/^([0-9a-f]+) [ *](.*)$/\2\t\1/' | LC_ALL=C sort >"$work/contents"

if [ -f "$record" ]; then
    cp "$record" "$work/before"
    # If this ends early, the next run must not take what it says for what was built last.
    rm "$record"
    if [ "$(head -n 1 "$work/before")" != "$checkout" ]; then
        # All are as young as this run, also where copying kept their times; then those that are known are as old as they were.
        files -print0 | xargs -0 touch
        sed 1d "$work/before" | awk -F "$tab" '
            NR == FNR { content[$1] = $2; next }
            content[$1] == $2 { print $1 | "xargs -d \"\\n\" touch -d @" $3 }
        ' "$work/contents" -
    fi
fi

mkdir -p "$(dirname "$record")"
{
    printf '%s\n' "$checkout"
    files_with_times | LC_ALL=C join -t "$tab" "$work/contents" -
} >"$work/record"
# Whole or not at all: half a record would be taken for a checkout with fewer files, which is right, but slow.
cp "$work/record" "$record.new"
mv "$record.new" "$record"
