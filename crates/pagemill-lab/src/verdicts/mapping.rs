//! Claims of the thread "Re: \[COMMITTERS\] pgsql-server/ /configure /configure.in rc/incl ...", on mmap and kqueue
//! (pgsql-performance, 6 and 7 March 2003).
//!
//! Each is a pair of cells and what was said of them; invariant: the words are ours, the figures the message's.

use super::judge::Measure::Figure;
use super::{Claim, Document};

pub(super) const DOCUMENT: Document = Document {
    name: "\"Re: [COMMITTERS] pgsql-server/ /configure /configure.in rc/incl ...\", pgsql-performance, 2003",
    link: None,
    parts: &[("mmap", MAPPING), ("readiness", READINESS)],
};

const READ: &str = "read 64 kB";
/// The program of 2003 wrote to `/dev/null`; the second looks at the bytes.
const SMALL: [&str; 2] = ["small-file-to-null", "small-file"];

const MAPPING: &[Claim] = &[
    Claim {
        id: "mmap-each-time",
        claim: "A file of 72 kB is read and written out twice as fast and more when it is mapped each time than through a buffer of \
                64 kB (7.24 s to 18.16 s)",
        otherwise: "the program wrote to /dev/null, where nobody looks at the bytes and no page of the mapping is fetched; \
                    making and removing page tables costs more than a copy once they are",
        judge: |judge| {
            SMALL.map(|group| judge.pair(group, "mmap each time", READ).better(Figure, 2.5)).into()
        },
    },
    Claim {
        id: "mmap-once",
        claim: "Mapped once, it is fifteen times as fast (1.18 s to 18.16 s)",
        otherwise: "that is the price of a call against that of a copy; where the bytes are looked at, looking at them is most of it",
        judge: |judge| {
            SMALL.map(|group| judge.pair(group, "mmap once", READ).better(Figure, 15.0)).into()
        },
    },
    Claim {
        id: "whole-file-buffer",
        claim: "A buffer as large as the file is more than four times slower than one of 64 kB (82 s to 18 s)",
        otherwise: "what a new buffer costs depends on how the allocator gets its memory",
        judge: |judge| {
            SMALL.map(|group| judge.pair(group, READ, "read whole").better(Figure, 4.5)).into()
        },
    },
    Claim {
        id: "mmap-tree",
        claim: "Over a tree of a database's files mapping each of them is far ahead of reading it (12 s to more than 40 min)",
        otherwise: "the two did not do the same work: nobody looked at the mapped bytes",
        judge: |judge| {
            let groups = ["tree-cached", "tree-cold"];
            groups.map(|group| judge.pair(group, "mmap each time", READ).better(Figure, 2.0)).into()
        },
    },
    Claim {
        id: "madvise-speeds-up",
        claim: "A call of madvise speeds up access to the pages",
        otherwise: "advice tells the kernel what it mostly has noticed by itself, and MADV_RANDOM switches its readahead off",
        judge: |judge| {
            let advised = ["sequential", "willneed", "populate"]
                .map(|advice| format!("mmap each time {advice}"));
            let better = |cell: &String| {
                judge.pair("large-file-cold", cell, "mmap each time").better(Figure, 1.0)
            };
            advised.iter().map(better).collect()
        },
    },
    Claim {
        id: "mmap-copy-from",
        claim: "COPY FROM would gain from mapping its file (an easy first step, asked in answer)",
        otherwise: "finding rows and values costs far more than the copy that is saved",
        judge: |judge| {
            ["load-cached", "load-cold"]
                .map(|group| judge.pair(group, "mmap", "read").better(Figure, 1.0))
                .into()
        },
    },
    Claim {
        id: "mmap-writes",
        claim: "What holds for reading holds for writing: through a mapping it is faster",
        otherwise: "what lasts has to get to the device either way; a mapping adds a fault for each page and a search for what \
                    was changed",
        judge: |judge| {
            ["overwrite", "overwrite-few"]
                .map(|group| {
                    judge.pair(group, "mmap, msync", "pwrite, fdatasync").better(Figure, 1.0)
                })
                .into()
        },
    },
    Claim {
        id: "mmap-hole-pieces",
        claim: "A file made longer by ftruncate and filled through a mapping ends in many pieces; zeros should be written first",
        otherwise: "file systems that choose a place only when they write back, and then for all that is waiting, keep it together",
        judge: |judge| {
            let groups = ["pieces-one-writer", "pieces-four-writers"];
            groups
                .map(|group| judge.pair(group, "zeros, mmap", "hole, mmap").better(Figure, 2.0))
                .into()
        },
    },
];

const READINESS: &[Claim] = &[
    Claim {
        id: "event-queue-few",
        claim: "An event queue is five times as fast as select and poll on few descriptors (said of kqueue; here of epoll)",
        otherwise: "two descriptors are looked at as fast as a queue is",
        judge: |judge| {
            let others = ["poll", "select"];
            others.map(|other| judge.pair("2-few-ready", "epoll", other).better(Figure, 5.0)).into()
        },
    },
    Claim {
        id: "event-queue-many",
        claim: "It scales very well to many thousands of descriptors (said of kqueue; here of epoll)",
        otherwise: "what select and poll cost grows with all descriptors, what epoll costs with those that are ready",
        judge: |judge| {
            let others = ["poll", "select"];
            others
                .map(|other| judge.pair("10000-few-ready", "epoll", other).better(Figure, 5.0))
                .into()
        },
    },
    Claim {
        id: "event-queue-no-use",
        claim: "An event queue only wins with many descriptors, and PostgreSQL never waits for many (said in answer)",
        otherwise: "on few descriptors it is ahead too, if little, as long as they are told of once",
        judge: |judge| {
            vec![
                judge.pair("2-few-ready", "epoll", "poll").gains_less(Figure, 1.25),
                judge.pair("2-one-wait", "epoll", "poll").gains_less(Figure, 1.0),
                judge.pair("10000-few-ready", "epoll", "poll").better(Figure, 1.25),
            ]
        },
    },
];
