//! Claims of "Patch : seq scan readahead (WIP)" (pgsql-hackers, 8 August 2009).
//!
//! Each is a pair of cells and what was said of them; invariant: the words are ours, the figures the message's.

use super::judge::Measure::Figure;
use super::{Claim, Document};

pub(super) const DOCUMENT: Document = Document {
    name: "\"Patch : seq scan readahead (WIP)\", pgsql-hackers, 2009",
    link: None,
    parts: &[("readahead", CLAIMS)],
};

const NONE: &str = "0 none";
/// Groups of mirrored disks: real ones where there may be any, and those of the message as a model.
const MIRRORS: [&str; 2] = ["mirrored-forward-cold", "simulated-mirror"];

const CLAIMS: &[Claim] = &[
    Claim {
        id: "readahead-mirror-idle",
        claim: "A sequential scan keeps one of two mirrored disks busy while the other sits idle; with strategy 2 both read as much",
        otherwise: "which disk serves a read is the kernel's choice, and kernels have changed it",
        judge: |judge| {
            vec![judge.pair("simulated-mirror-share", "2 window", NONE).better(Figure, 1.5)]
        },
    },
    Claim {
        id: "readahead-strategy-2",
        claim: "Strategy 2, in every second window of 4096 blocks the block 4096 further on, gives 54 % more bandwidth on a RAID1 \
                (162.8 s to 105.2 s)",
        otherwise: "it needs a mirror whose kernel sends two far sequences to two disks, and disks slower than the reader",
        judge: |judge| {
            MIRRORS.map(|group| judge.pair(group, "2 window", NONE).better(Figure, 1.54)).into()
        },
    },
    Claim {
        id: "readahead-strategies-1-and-3",
        claim: "Strategy 1, each block 4096 ahead, and strategy 3, in turns one window and two ahead, gain only 6 % on a RAID1 \
                (152.9 s and 152.3 s of 162.8 s)",
        otherwise: "the file system of 2009 held strategy 3 back with its block maps, which extents do without",
        judge: |judge| {
            let gains = |group| {
                ["1 every-page", "3 double-window"]
                    .map(|cell| judge.pair(group, cell, NONE).gains_less(Figure, 1.15))
            };
            MIRRORS.into_iter().flat_map(gains).collect()
        },
    },
    Claim {
        id: "readahead-busy-device",
        claim: "Where a scan keeps the whole device busy by itself, as on the RAID5, there is nothing to gain",
        otherwise: "the kernel's own readahead does not keep this device busy",
        judge: |judge| {
            let cells = ["1 every-page", "2 window", "3 double-window"];
            cells.map(|cell| judge.pair("forward-cold", cell, NONE).gains_less(Figure, 1.10)).into()
        },
    },
    Claim {
        id: "readahead-sparse",
        claim: "Linux does not read ahead in sparse files, so that a scan of one gains from being told",
        otherwise: "the kernel reads ahead over holes like over blocks",
        judge: |judge| {
            let cells = ["1 every-page", "2 window"];
            cells.map(|cell| judge.pair("sparse-cold", cell, NONE).better(Figure, 1.0)).into()
        },
    },
    Claim {
        id: "readahead-several-readers",
        claim: "With two or more readers of different tables both disks of a mirror are in use already, and less than with one \
                is gained (asked in answer)",
        otherwise: "readers of different tables can end up on the same disk",
        judge: |judge| {
            let pair = judge.pair("mirrored-several-readers-cold", "2 window", NONE);
            vec![pair.gains_less(Figure, 1.35)]
        },
    },
];
