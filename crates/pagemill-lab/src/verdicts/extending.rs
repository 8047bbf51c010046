//! Claims of "extending relations more efficiently" (pgsql-hackers, 1 May 2012).
//!
//! Each is a pair of cells and what was said of them; invariant: the words are ours, the figures the message's.

use super::judge::Measure::{Figure, Part};
use super::{Claim, Document};

pub(super) const DOCUMENT: Document = Document {
    name: "\"extending relations more efficiently\", pgsql-hackers, 2012",
    link: Some(
        "https://www.postgresql.org/message-id/CA%2BTgmobZ60z7%3DXspRDHUx2W1jOUjVhPUQj4tSKgq55UVuCZjnw%40mail.gmail.com",
    ),
    parts: &[("extend", CLAIMS)],
};

const EXTEND: &str = "extend";

const CLAIMS: &[Claim] = &[
    Claim {
        id: "extend-larger-writes",
        claim: "Writing zeros 64 blocks at a time instead of one gains so little that it is not worth it (782 ms to 608 ms for \
                1 GB, and 4.4 s of fdatasync in either case)",
        otherwise: "devices have become fast enough for the calls to count",
        judge: |judge| vec![judge.pair(EXTEND, "write_zeros 64", "write_zeros 1").same(Figure)],
    },
    Claim {
        id: "fallocate-ten-times",
        claim: "posix_fallocate 64 blocks at a time is ten times as fast as writing zeros (about 60 ms to 600 ms)",
        otherwise: "what an allocation costs is the file system's affair",
        judge: |judge| {
            let pair = judge.pair(EXTEND, "posix_fallocate 64", "write_zeros 64");
            vec![pair.better(Part("extend"), 10.0)]
        },
    },
    Claim {
        id: "fallocate-no-sync",
        claim: "The fdatasync after it takes almost no time, where after zeros it takes 4 to 5 s",
        otherwise: "the file's new size and extents have to be made to last all the same",
        judge: |judge| {
            let pair = judge.pair(EXTEND, "posix_fallocate 64", "write_zeros 64");
            vec![pair.better(Part("fdatasync"), 100.0)]
        },
    },
    Claim {
        id: "fallocate-single-blocks",
        claim: "posix_fallocate one block at a time is much less efficient than writing it (3 to 9 s to 0.8 s)",
        otherwise: "an allocation is no write of metadata here; the journal has it together with others",
        judge: |judge| {
            let pair = judge.pair(EXTEND, "write_zeros 1", "posix_fallocate 1");
            vec![pair.better(Part("extend"), 4.0)]
        },
    },
    Claim {
        id: "ftruncate-fast",
        claim: "ftruncate is really fast",
        otherwise: "its sync still takes a commit of the file system",
        judge: |judge| {
            vec![judge.pair(EXTEND, "ftruncate 64", "write_zeros 64").better(Figure, 10.0)]
        },
    },
    Claim {
        id: "ftruncate-holes",
        claim: "ftruncate is no good, because its holes let later writes fail for lack of space, which posix_fallocate and \
                zeros do not",
        otherwise: "the space that was promised was there",
        judge: |judge| {
            vec![judge.alone_counts(
                "full-device",
                "ftruncate",
                &["posix_fallocate", "write_zeros"],
            )]
        },
    },
    Claim {
        id: "fallocate-wal",
        claim: "A new WAL segment could be allocated as a whole, at a considerable saving",
        otherwise: "what is saved is paid back by the first writes, which have to turn allocated blocks into written ones",
        judge: |judge| {
            let made = judge.pair("wal-segment", "posix_fallocate", "write_zeros 8 kB");
            let written = judge.pair("wal-first-writes", "over zeros", "over posix_fallocate");
            vec![made.better(Figure, 2.0), written.gains_less(Figure, 1.10)]
        },
    },
];
