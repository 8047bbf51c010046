//! How files of relations are extended, copied and flushed.
//!
//! Invariant: what no experiment measures is said not to be measured, and left.

use crate::advice::Ruling;
use crate::advice::reads::size;
use crate::advice::run_figures::{GroupFigures, Pair, RunFigures, is_of, number};
use crate::advice::version::Version;
use crate::advice::wal::has_mount_option;
use crate::results::{Cell, Group};

/// Blocks by which cells of both ways grew: as much as PostgreSQL extends by at most (16 to 18).
const BLOCKS: u64 = 64;

/// Rule: `write_zeros` where it is faster by the threshold with the blocks filled afterwards, by one writer, and seen to be no
/// slower by four; or where the file system compresses, as btrfs does not compress what was allocated.
pub(super) fn file_extend_method(run_figures: &RunFigures<'_>, _version: Version) -> Ruling {
    let compresses = run_figures.fact("file_system") == Some("btrfs")
        && ["compress", "compress-force"].iter().any(|name| has_mount_option(run_figures, name));
    if compresses {
        // Documentation of file_extend_method, PostgreSQL 18.
        return Ruling::set("write_zeros", "mounted with compression, which btrfs does not apply to what posix_fallocate allocated")
            .caution("it follows from the mount options and was not measured");
    }
    let (one, four) = match (
        run_figures.group("extend/extend-and-fill"),
        run_figures.group("extend/extend-four-writers"),
    ) {
        (Ok(one), Ok(four)) => (one, four),
        (Err(reason), _) | (_, Err(reason)) => return Ruling::not_measured(reason),
    };
    let (Some(one), Some(four)) = (zeros_against_fallocate(&one), zeros_against_fallocate(&four))
    else {
        return Ruling::not_measured(
            "both ways were not measured often enough with 64 blocks at a time",
        );
    };
    let pays = one.is_faster() && four.is_no_slower();
    let evidence = [one.evidence, four.evidence];
    match pays {
        true => Ruling::set("write_zeros", "files grow and are filled faster by written zeros")
            .evidence(evidence),
        false => Ruling::keep(
            "written zeros were not seen to be faster, with the blocks filled afterwards",
        )
        .evidence(evidence),
    }
}

fn zeros_against_fallocate(place: &GroupFigures<'_>) -> Option<Pair> {
    let is_wanted =
        |cell: &Cell, method: &str| is_of(cell, method) && number(cell, "blocks") == Some(BLOCKS);
    let cell = |method: &str| place.cells().find(|cell| is_wanted(cell, method));
    place.pair(cell("write_zeros")?, cell("posix_fallocate")?)
}

/// Rule: `clone`, which is `copy_file_range` on Linux, where some group of the experiment `copy` shows it faster than reads
/// and writes by the threshold, and none shows it slower.
pub(super) fn file_copy_method(run_figures: &RunFigures<'_>, _version: Version) -> Ruling {
    let pairs = copies(run_figures);
    if pairs.is_empty() {
        let why = "no copy by copy_file_range was measured beside one by reads and writes";
        return Ruling::not_measured(why);
    }
    let pays = pairs.iter().any(Pair::is_faster) && !pairs.iter().any(Pair::is_slower);
    let evidence = pairs.into_iter().map(|pair| pair.evidence);
    match pays {
        true => Ruling::set("clone", "the kernel copies files faster than reads and writes do")
            .evidence(evidence)
            .caution(
                "for CREATE DATABASE with STRATEGY = FILE_COPY, which is not its default, and for \
                 ALTER DATABASE SET TABLESPACE",
            )
            // `clone_file` in src/backend/storage/file/copydir.c.
            .caution(
                "where copy_file_range fails, as it may between tablespaces on different file systems, PostgreSQL 18 \
                 raises an error and does not fall back to copy: try both commands once",
            ),
        false => Ruling::keep("copies by the kernel were not seen to be faster").evidence(evidence),
    }
}

/// Copies by the kernel against reads and writes of 64 kB, by which servers copy (`copy_file` in
/// src/backend/storage/file/copydir.c, 14 to 18), or else larger ones.
fn copies(run_figures: &RunFigures<'_>) -> Vec<Pair> {
    let pair = |group: &Group| {
        let place = run_figures.group(&format!("copy/{}", group.name)).ok()?;
        let cell = |method: &str| place.cells().find(|cell| is_of(cell, method));
        place.pair(cell("copy_file_range")?, cell("64 kB").or_else(|| cell("read_write"))?)
    };
    run_figures.groups("copy").iter().filter_map(pair).collect()
}

/// The most that servers take: 256 blocks (`WRITEBACK_MAX_PENDING_FLUSHES` in src/include/pg_config_manual.h, 14 to 18).
const MOST_FLUSH_AFTER: u64 = 2 << 20;

/// Rule: as [`flush_after`], beside writes in rising order that have time.
pub(super) fn checkpoint_flush_after(run_figures: &RunFigures<'_>, _version: Version) -> Ruling {
    flush_after(run_figures, "device/checkpoint-flush-after", 256 << 10)
}

/// Rule: as [`flush_after`], beside writes in any order, as fast as they go.
pub(super) fn backend_flush_after(run_figures: &RunFigures<'_>, _version: Version) -> Ruling {
    let ruling = flush_after(run_figures, "device/backend-flush-after", 0);
    match ruling.value {
        Some(_) => ruling.caution(
            "it matters where sessions write dirty buffers themselves, as with small shared_buffers; a block that \
             is written again soon then goes to the device twice",
        ),
        None => ruling,
    }
}

/// Rule: the value beside which transactions wait less than beside the default by the threshold, and with which the writing
/// itself was not seen to take longer by it; of several the nearest to the default, and one further off only where that is
/// better by the threshold again.
fn flush_after(run_figures: &RunFigures<'_>, group: &str, default: u64) -> Ruling {
    let place = match run_figures.group(group) {
        Ok(place) => place,
        Err(reason) => return Ruling::not_measured(reason),
    };
    let value = |cell: &Cell| number(cell, "flush_after").filter(|bytes| is_taken(*bytes));
    let Some(usual) = place.cells().find(|cell| value(cell) == Some(default)) else {
        return Ruling::not_measured(format!("in {group} the default was not measured"));
    };
    let pair = |cell: &'_ Cell| {
        let bytes = value(cell).filter(|bytes| *bytes != default)?;
        let longer = place.elapsed_pair(cell, usual).is_some_and(|pair| pair.is_slower());
        Some((bytes, place.pair(cell, usual)?, longer))
    };
    let pairs: Vec<(u64, Pair, bool)> = place.cells().filter_map(pair).collect();
    let mut better: Vec<_> =
        pairs.iter().filter(|(_, pair, longer)| pair.is_faster() && !longer).collect();
    better.sort_by(|(one, ..), (other, ..)| {
        steps_between(default, *one).total_cmp(&steps_between(default, *other))
    });
    let cell = |bytes: u64| place.cells().find(|cell| value(cell) == Some(bytes));
    let beats = |one: u64, other: u64| {
        let cells = cell(one).zip(cell(other));
        cells.and_then(|(one, other)| place.pair(one, other)).is_some_and(|pair| pair.is_faster())
    };
    let further =
        |stand: &&'_ (u64, Pair, bool), next: &&'_ (u64, Pair, bool)| beats(next.0, stand.0);
    let chosen = better.iter().copied().reduce(
        |stand, next| {
            if further(&stand, &next) { next } else { stand }
        },
    );
    if let Some((bytes, pair, _)) = chosen {
        let why = match bytes {
            0 => "transactions wait less where the kernel decides when to write".to_owned(),
            bytes => format!("transactions wait less where {} kB are sent at a time", bytes >> 10),
        };
        return Ruling::set(size(*bytes), why).evidence([pair.evidence.clone()]);
    }
    let low = |(_, pair, _): &(u64, Pair, bool)| pair.ratio().low;
    match pairs.iter().max_by(|one, other| low(one).total_cmp(&low(other))) {
        Some((_, pair, _)) => Ruling::keep(
            "with no other value were transactions seen to wait less without the writing taking longer",
        )
        .evidence([pair.evidence.clone()]),
        None => Ruling::not_measured(format!("{group} has too few values or turns to choose from")),
    }
}

/// How many times two values have to be doubled to be the same; never to send early is next to the most.
fn steps_between(one: u64, other: u64) -> f64 {
    let size = |bytes: u64| if bytes == 0 { 2 * MOST_FLUSH_AFTER } else { bytes } as f64;
    (size(one) / size(other)).log2().abs()
}

/// True for whole blocks within what servers take.
fn is_taken(bytes: u64) -> bool {
    bytes <= MOST_FLUSH_AFTER && bytes.is_multiple_of(8192)
}
