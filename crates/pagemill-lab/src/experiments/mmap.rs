//! `mmap`: mapped files against read and written ones (pgsql-performance, 2003).
//!
//! The message read a file of 72 kB over and over and wrote it to `/dev/null`, by a buffer as large as the file, by one of 64 kB,
//! mapped each time, and mapped once. Asked whether the mapped bytes were read at all, it went on to a directory tree. Both are
//! here, once as it was done and once with every byte looked at; and what it only supposed: that loading and writing gain the
//! same, and that holes filled through a mapping end in many pieces.

use std::path::PathBuf;

use pagemill_sys::MapAdvice;

use crate::error::{Error, Result};
use crate::experiments::file_tree::{self, TreeSize};
use crate::experiments::mapped_writing::{self, Blocks};
use crate::experiments::text_loading::TextFile;
use crate::experiments::whole_file_reads::{ADVICE, ReadTechnique, Span, Use, WholeFileReads};
use crate::experiments::{Plan, Scale, Session, test_file};
use crate::results::{CacheState, Figure};
use crate::runner::GroupPlan;

/// The experiment.
pub const PLAN: Plan = Plan {
    name: "mmap",
    title: "Mapped files against read and written ones",
    question: "Is a file read, loaded or written faster through a mapping: a small one over and over, a tree of many, \
               in memory and out of it, with which advice? In how many pieces do files end that grow under a mapping?",
    bytes_needed: |scale| 4 * part(scale) + SMALL,
    share: 16,
    run,
};

/// The document's file: 72 kB.
const SMALL: u64 = 72 << 10;
/// Blocks of a scattered overwrite.
const FEW: usize = 128;

/// Bytes of one part: the tree, the large file, the text.
fn part(scale: &Scale) -> u64 {
    (scale.size / 8).next_multiple_of(8192)
}

/// Files of the tree; fewer than there can be mappings.
fn tree_files(scale: &Scale) -> u64 {
    let most = if scale.quick { 128 } else { 768 };
    (scale.size / 64 / 8192).clamp(8, most)
}

fn run(session: &mut Session<'_>) -> Result<()> {
    session.preparing("writing files to map");
    let (scale, seed, cancel) = (session.scale(), session.seed(), session.cancel());
    let path = |name: &str| session.directory().join(name);
    let (small, large) = (path("small"), path("large"));
    test_file::make(&small, SMALL, seed, cancel)?;
    test_file::make(&large, part(&scale), seed, cancel)?;
    let size = TreeSize { files: tree_files(&scale), bytes: part(&scale) };
    let tree = file_tree::make(&path("tree"), size, seed, cancel)?;
    let text = TextFile::make(&path("text"), part(&scale), seed, cancel)?;
    small_file(session, small)?;
    a_tree(session, &tree)?;
    large_file(session, &large)?;
    loading(session, &text)?;
    overwriting(session, large)?;
    growing(session)
}

/// Reading by buffers, mapping each time with every advice, and mapping once.
fn ways() -> Vec<ReadTechnique> {
    let mapped = ADVICE.into_iter().map(|(advice, _)| ReadTechnique::MapEach(advice));
    let once = [MapAdvice::Normal, MapAdvice::PopulateRead].map(ReadTechnique::MapOnce);
    [ReadTechnique::Buffer, ReadTechnique::Whole].into_iter().chain(mapped).chain(once).collect()
}

/// Those that differ where each file is read once.
fn ways_for_one_pass() -> Vec<ReadTechnique> {
    ways().into_iter().filter(|way| !matches!(way, ReadTechnique::MapOnce(_))).collect()
}

fn group<'a>(
    plan: GroupPlan<'a>,
    reads: &WholeFileReads,
    ways: &[ReadTechnique],
    cache: CacheState,
) -> GroupPlan<'a> {
    plan.figure(Figure::Throughput)
        .cache(cache, reads.files.clone())
        .baseline("read 64 kB")
        .contestants(ways.iter().map(|way| reads.contestant(*way)))
}

fn small_file(session: &mut Session<'_>, small: PathBuf) -> Result<()> {
    let ways = ways();
    let names = [
        (
            "small-file-to-null",
            "A file of 72 kB over and over, written to /dev/null: nobody looks at the bytes",
            Use::Null,
        ),
        ("small-file", "A file of 72 kB over and over, every byte looked at", Use::Lines),
    ];
    for (name, title, use_of_bytes) in names {
        let span = Span::Time(session.turn_time(7, ways.len()));
        let reads = WholeFileReads { files: vec![small.clone()], use_of_bytes, span };
        session.group(group(GroupPlan::new(name, title), &reads, &ways, CacheState::Cached), 7)?;
    }
    Ok(())
}

fn a_tree(session: &mut Session<'_>, tree: &[PathBuf]) -> Result<()> {
    let (files, use_of_bytes) = (tree.to_vec(), Use::Lines);
    let ways = ways();
    let span = Span::Time(session.turn_time(8, ways.len()));
    let reads = WholeFileReads { files, use_of_bytes, span };
    let title = "A tree of many files over and over, all in the page cache, every byte looked at";
    session
        .group(group(GroupPlan::new("tree-cached", title), &reads, &ways, CacheState::Cached), 8)?;
    let reads = WholeFileReads { span: Span::Once, ..reads };
    let title = "A tree of many files, none in the page cache, every byte looked at";
    let plan =
        group(GroupPlan::new("tree-cold", title), &reads, &ways_for_one_pass(), CacheState::Cold);
    session.group(plan.timeline().without_warm_up(), 16)
}

fn large_file(session: &mut Session<'_>, large: &std::path::Path) -> Result<()> {
    let reads = WholeFileReads {
        files: vec![large.to_path_buf()],
        use_of_bytes: Use::Lines,
        span: Span::Once,
    };
    let title = "A large file, all in the page cache, every byte looked at";
    let plan = group(
        GroupPlan::new("large-file-cached", title),
        &reads,
        &ways_for_one_pass(),
        CacheState::Cached,
    );
    session.group(plan, 8)?;
    let title = "A large file, none in the page cache, every byte looked at";
    let plan = group(
        GroupPlan::new("large-file-cold", title),
        &reads,
        &ways_for_one_pass(),
        CacheState::Cold,
    );
    session.group(plan.timeline().without_warm_up(), 14)
}

fn loading(session: &mut Session<'_>, text: &TextFile) -> Result<()> {
    for (name, title, cache) in [
        (
            "load-cached",
            "Rows and values of a text file found, all in the page cache",
            CacheState::Cached,
        ),
        (
            "load-cold",
            "Rows and values of a text file found, none in the page cache",
            CacheState::Cold,
        ),
    ] {
        let plan = GroupPlan::new(name, title)
            .bytes(text.bytes)
            .cache(cache, vec![text.path.clone()])
            .baseline("read")
            .contestants(text.contestants());
        session.group(plan, 8)?;
    }
    Ok(())
}

fn overwriting(session: &mut Session<'_>, large: PathBuf) -> Result<()> {
    let (bytes, seed) = (part(&session.scale()), session.seed());
    for (name, title, blocks, bytes) in [
        (
            "overwrite",
            "A file overwritten in order, 8 kB at a time, and made to last",
            Blocks::InOrder,
            bytes,
        ),
        (
            "overwrite-few",
            "128 blocks of a file overwritten in random order, and made to last",
            Blocks::Few(FEW),
            (FEW as u64 * 8192).min(bytes),
        ),
    ] {
        let plan = GroupPlan::new(name, title)
            .bytes(bytes)
            .cache(CacheState::Cached, vec![large.clone()])
            .baseline("pwrite, fdatasync")
            .contestants(mapped_writing::overwriters(&large, blocks, seed));
        session.group(plan, 6)?;
    }
    std::fs::remove_file(&large).map_err(Error::file(&large))
}

fn growing(session: &mut Session<'_>) -> Result<()> {
    // Written so often that half of a part has to do.
    let (bytes, seed) = (part(&session.scale()) / 2, session.seed());
    for (name, title, writers) in [
        ("pieces-one-writer", "In how many pieces a file lies that has grown", 1),
        (
            "pieces-four-writers",
            "In how many pieces four files lie that have grown at the same time",
            4,
        ),
    ] {
        let file = |number: usize| session.directory().join(format!("grown{number}"));
        let files: Vec<PathBuf> = (0..writers).map(file).collect();
        let plan = GroupPlan::new(name, title)
            .bytes(bytes)
            .figure(Figure::Count)
            .baseline("pwrite")
            .without_warm_up()
            .contestants(mapped_writing::growers(&files, bytes, seed));
        session.group(plan, 6)?;
        for file in &files {
            std::fs::remove_file(file).map_err(Error::file(file))?;
        }
    }
    Ok(())
}
