//! How files of relations are extended, copied and flushed.
//!
//! Invariant: what no experiment measures is said not to be measured, and left.

use crate::advice::Ruling;
use crate::advice::sight::{Pair, Place, Sight, is_of, number};
use crate::advice::version::Version;
use crate::advice::wal::has_mount_option;
use crate::results::{Cell, Group};

/// Blocks by which cells of both ways grew: as much as PostgreSQL extends by at most (16 to 18).
const BLOCKS: u64 = 64;

/// Rule: `write_zeros` where it is faster by the threshold with the blocks filled afterwards, by one writer, and seen to be no
/// slower by four; or where the file system compresses, as btrfs does not compress what was allocated.
pub(super) fn file_extend_method(sight: &Sight<'_>, _version: Version) -> Ruling {
    let compresses = sight.fact("file_system") == Some("btrfs")
        && ["compress", "compress-force"].iter().any(|name| has_mount_option(sight, name));
    if compresses {
        // Documentation of file_extend_method, PostgreSQL 18.
        return Ruling::set("write_zeros", "mounted with compression, which btrfs does not apply to what posix_fallocate allocated")
            .caution("it follows from the mount options and was not measured");
    }
    let (one, four) =
        match (sight.group("extend/extend-and-fill"), sight.group("extend/extend-four-writers")) {
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

fn zeros_against_fallocate(place: &Place<'_>) -> Option<Pair> {
    let is_wanted =
        |cell: &Cell, method: &str| is_of(cell, method) && number(cell, "blocks") == Some(BLOCKS);
    let cell = |method: &str| place.cells().find(|cell| is_wanted(cell, method));
    place.pair(cell("write_zeros")?, cell("posix_fallocate")?)
}

/// Rule: `clone`, which is `copy_file_range` on Linux, where some group of the experiment `copy` shows it faster than reads
/// and writes by the threshold, and none shows it slower.
pub(super) fn file_copy_method(sight: &Sight<'_>, _version: Version) -> Ruling {
    let pairs = copies(sight);
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
            ),
        false => Ruling::keep("copies by the kernel were not seen to be faster").evidence(evidence),
    }
}

/// Copies by the kernel against reads and writes of 64 kB, by which servers copy (`copy_file` in
/// src/backend/storage/file/copydir.c, 14 to 18), or else larger ones.
fn copies(sight: &Sight<'_>) -> Vec<Pair> {
    let pair = |group: &Group| {
        let place = sight.group(&format!("copy/{}", group.name)).ok()?;
        let cell = |method: &str| place.cells().find(|cell| is_of(cell, method));
        place.pair(cell("copy_file_range")?, cell("64 kB").or_else(|| cell("read_write"))?)
    };
    sight.groups("copy").iter().filter_map(pair).collect()
}

/// Rule: left. It is about how long others wait while a checkpoint writes, which no experiment has.
pub(super) fn checkpoint_flush_after(_: &Sight<'_>, _version: Version) -> Ruling {
    Ruling::not_measured(
        "no experiment shows what a checkpoint's writes do to those who read meanwhile",
    )
}

/// Rule: left, for the same reason.
pub(super) fn backend_flush_after(_: &Sight<'_>, _version: Version) -> Ruling {
    Ruling::not_measured(
        "no experiment shows what a session's writes do to those who read meanwhile",
    )
}
