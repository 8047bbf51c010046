//! `copy`: the files of a database copied, with and without WAL ("Use read streams in CREATE DATABASE command
//! when the strategy is wal_log", pgsql-hackers, 2024).
//!
//! The message let CREATE DATABASE with the strategy `wal_log` read by a stream: one sixteenth of the read calls, and the same
//! time, as writing and WAL take most of it. Here the same, what batches of WAL and a stream that writes add, and the ways
//! without WAL. No server's buffers lie in between; pages go from the file to the file.

use pagemill_io::CopyMethod;

use crate::error::Result;
use crate::experiments::file_copies::{CopyVariant, FileCopies};
use crate::experiments::file_tree::{self, TreeSize};
use crate::experiments::page_log::Records;
use crate::experiments::{Plan, Scale, Session};
use crate::results::CacheState;
use crate::runner::GroupPlan;

/// The experiment.
pub const PLAN: Plan = Plan {
    name: "copy",
    title: "A database's files copied: by blocks, by streams, by the kernel; with and without WAL",
    question: "Does a copy gain from fewer and larger reads, and from writes likewise? What does it cost to log the pages, \
               and how much of that is the size of a record?",
    bytes_needed: |scale| 3 * total(scale) + 3 * SEGMENT,
    share: 12,
    run,
};

/// Bytes of a WAL segment.
const SEGMENT: u64 = 16 << 20;
/// No file of the tree becomes larger than a segment of a relation.
const MOST: u64 = 4 << 30;

/// Bytes of the database.
fn total(scale: &Scale) -> u64 {
    (scale.size / if scale.quick { 4 } else { 8 }).next_multiple_of(8192).min(MOST)
}

fn run(session: &mut Session<'_>) -> Result<()> {
    session.preparing("writing a database's files");
    let (scale, seed) = (session.scale(), session.seed());
    // Each is synced on its own, in each turn.
    let files = (scale.size / 128 / 8192).clamp(8, if scale.quick { 24 } else { 128 });
    let path = |name: &str| session.directory().join(name);
    let size = TreeSize { files, bytes: total(&scale) };
    let tree = file_tree::make(&path("base"), size, seed, session.cancel())?;
    let copies = FileCopies { files: tree, target: path("copy"), wal: path("wal") };
    let plain = plain();
    if scale.only_advice {
        let title = "A database's files copied and made to last, without WAL, all of them in the page cache";
        return group(
            session,
            &copies,
            GroupPlan::new("files-cached", title),
            CacheState::Cached,
            &plain,
        );
    }
    for (cache, name, words) in [
        (CacheState::Cached, "cached", "all of them in the page cache"),
        (CacheState::Cold, "cold", "none of them in the page cache"),
    ] {
        let is_left_out = scale.quick && cache == CacheState::Cold;
        let title = format!("A database's files copied and made to last, without WAL, {words}");
        if is_left_out {
            session.skip(format!("files-{name}"), "a quick run: leave out --quick");
        } else {
            let plan = GroupPlan::new(format!("files-{name}"), &title);
            group(session, &copies, plan, cache, &plain)?;
        }
        let title =
            format!("A database's files copied and made to last, every page logged, {words}");
        let plan = GroupPlan::new(format!("wal-{name}"), &title);
        group(session, &copies, plan, cache, &logged())?;
    }
    Ok(())
}

/// A contestant: the way, and its WAL.
type Row = (CopyVariant, Option<Records>);

fn plain() -> Vec<Row> {
    let ways = [
        CopyVariant::Blocks(1),
        CopyVariant::Blocks(8),
        CopyVariant::ReadStream,
        CopyVariant::BothStreams,
    ];
    let whole = CopyMethod::ALL.map(CopyVariant::Whole);
    ways.into_iter().chain(whole).map(|way| (way, None)).collect()
}

fn logged() -> Vec<Row> {
    let rows = [
        (CopyVariant::Blocks(1), Records::Single),
        (CopyVariant::ReadStream, Records::Single),
        (CopyVariant::ReadStream, Records::Batches),
        (CopyVariant::BothStreams, Records::Batches),
    ];
    rows.into_iter().map(|(way, records)| (way, Some(records))).collect()
}

fn group<'a>(
    session: &mut Session<'_>,
    copies: &'a FileCopies,
    plan: GroupPlan<'a>,
    cache: CacheState,
    rows: &[Row],
) -> Result<()> {
    let contestants: Vec<_> =
        rows.iter().map(|(way, records)| copies.contestant(*way, *records)).collect();
    let baseline = contestants.first().map(|first| first.name.clone()).unwrap_or_default();
    let plan = plan
        .bytes(total(&session.scale()))
        .cache(cache, copies.files.clone())
        .baseline(&baseline)
        .contestants(contestants);
    let plan = if cache == CacheState::Cold { plan.timeline().without_warm_up() } else { plan };
    session.group(plan, 25)
}
