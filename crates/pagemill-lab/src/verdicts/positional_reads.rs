//! Claims of "\[PATCH\] Using pread instead of lseek (with analysis)" (pgsql-patches, 8 October 2005).
//!
//! Each is a pair of cells and what was said of them; invariant: the words are ours, the figures the message's.

use super::judge::Measure::{Figure, Processor, User};
use super::{Claim, Document};

pub(super) const DOCUMENT: Document = Document {
    name: "\"[PATCH] Using pread instead of lseek (with analysis)\", pgsql-patches, 2005",
    link: Some("https://www.postgresql.org/message-id/20051008154852.GC30988@svana.org"),
    parts: &[("pread", CLAIMS)],
};

/// The cells: what is held against what.
const NEW: &str = "pread 8 kB";
const OLD: &str = "seek";

const CLAIMS: &[Claim] = &[
    Claim {
        id: "pread-within-noise",
        claim: "An index scan takes as long with pread as with lseek and read: the gain cannot be told from the noise (either \
                way 98 s where half of the reads miss the page cache and 60 s where all of the table is in it, each \
                within 1 s)",
        otherwise: "a system call costs more, next to the read it goes with, than it did in 2005",
        judge: |judge| {
            let groups =
                ["index-order-cached", "index-order-cold", "index-order-larger-than-memory"];
            groups.map(|group| judge.pair(group, NEW, OLD).same(Figure)).into()
        },
    },
    Claim {
        id: "pread-scan-same",
        claim: "A sequential scan of a cached table takes 1.21 s with pread and 1.26 s with lseek and read: no difference worth \
                having",
        otherwise: "here there is an lseek before each block, where the server of 2005 made 40 in 5,950 reads",
        judge: |judge| {
            let groups = ["sequential-cached", "sequential-cold"];
            groups.map(|group| judge.pair(group, NEW, OLD).same(Figure)).into()
        },
    },
    Claim {
        id: "pread-user-time",
        claim: "pread takes slightly less processor time: a few percent in user mode, almost nothing overall",
        otherwise: "what a saved call is worth depends on the processor, and on what the kernel does at each call",
        judge: |judge| {
            let pair = judge.pair("index-order-cached", NEW, OLD);
            vec![pair.better(User, 1.0), pair.gains_less(Processor, 1.05)]
        },
    },
    Claim {
        id: "pread-half-the-calls",
        claim: "Of 891,526 reads and 887,770 seeks, 891,479 calls of pread are left: one call a block instead of two",
        otherwise: "the calls are counted where they are made",
        judge: |judge| {
            let calls = ["lseek", "read", "pread"];
            vec![judge.pair("sequential-cached", NEW, OLD).fewer_calls(&calls, 2.0)]
        },
    },
];
