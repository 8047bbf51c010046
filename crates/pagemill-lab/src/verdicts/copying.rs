//! Claims of "Use read streams in CREATE DATABASE command when the strategy is wal_log" (pgsql-hackers, 2024).
//!
//! Each is a pair of cells and what was said of them; invariant: the words are ours, the figures the message's.

use super::judge::Measure::{Figure, System};
use super::{Claim, Document};

pub(super) const DOCUMENT: Document = Document {
    name: "\"Use read streams in CREATE DATABASE command when the strategy is wal_log\", pgsql-hackers, 2024",
    link: Some(
        "https://www.postgresql.org/message-id/CAN55FZ0JKL6vk1xQp6rfOXiNFV1u1H0tJDPPGHWoiO3ea2Wc%3DA%40mail.gmail.com",
    ),
    parts: &[("copy", CLAIMS)],
};

const STREAM: &str = "read stream, single records";
const BLOCKS: &str = "block by block, single records";

const CLAIMS: &[Claim] = &[
    Claim {
        id: "stream-sixteenth-of-calls",
        claim: "With a read stream a copy makes about one sixteenth of the read calls (46,730 to 747,936)",
        otherwise: "small files end a read early",
        judge: |judge| {
            vec![judge.pair("wal-cached", STREAM, BLOCKS).fewer_calls(&["pread", "preadv"], 16.0)]
        },
    },
    Claim {
        id: "stream-no-time",
        claim: "It takes the same time (13.02 s to 13.13 s)",
        otherwise: "here no server's buffers lie in between, so that reads are a larger part of the whole",
        judge: |judge| {
            ["wal-cached", "wal-cold"]
                .map(|group| judge.pair(group, STREAM, BLOCKS).same(Figure))
                .into()
        },
    },
    Claim {
        id: "stream-less-processor",
        claim: "It spends less processor time in reads (20 % of the whole to 18 %, half of the time in read calls)",
        otherwise: "most of what a read costs the processor is the copy, which is as long as before",
        judge: |judge| vec![judge.pair("wal-cached", STREAM, BLOCKS).better(System, 1.0)],
    },
];
