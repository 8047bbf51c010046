//! How WAL is made to last, and how its segments are made: `wal_sync_method`, `wal_init_zero`, `wal_recycle`.
//!
//! Invariant: nothing that makes less durable is ever advised; where space cannot be reserved by writing zeros, that is said.

use crate::advice::run_figures::{Pair, RunFigures};
use crate::advice::version::Version;
use crate::advice::{Evidence, Ruling};

/// File systems that put what is overwritten elsewhere, so that a block which was written is no block reserved.
const COPY_ON_WRITE: [&str; 3] = ["btrfs", "zfs", "bcachefs"];

/// True when overwriting takes new space.
pub(super) fn is_copy_on_write(run_figures: &RunFigures<'_>) -> bool {
    let on_such =
        run_figures.fact("file_system").is_some_and(|found| COPY_ON_WRITE.contains(&found));
    on_such && !has_mount_option(run_figures, "nodatacow")
}

/// True for an option of the mount, with or without a value.
pub(super) fn has_mount_option(run_figures: &RunFigures<'_>, name: &str) -> bool {
    let options = run_figures.fact("mount_options").unwrap_or_default();
    options.split(',').any(|option| option.split('=').next() == Some(name))
}

/// The default on Linux.
const DEFAULT_SYNC: &str = "fdatasync";
/// Others that last as well, and exist on Linux, with the cells that write as servers do: through the page cache.
const DURABLE: [(&str, &str); 3] = [
    ("open_datasync", "open_datasync buffered"),
    ("fsync", "fsync"),
    ("open_sync", "open_sync buffered"),
];

/// Rule: the durable method that is faster than `fdatasync` by the threshold both with one write and with two, as a commit
/// may have either; the one with the best lower bound where there are several. Only writes through the page cache count:
/// servers open WAL past it with `wal_level = minimal` or `debug_io_direct = wal` only (`get_sync_bit` in
/// src/backend/access/transam/xlog.c, 14 to 18).
pub(super) fn wal_sync_method(run_figures: &RunFigures<'_>, _version: Version) -> Ruling {
    let mut candidates = Vec::new();
    let mut measured = Vec::new();
    let groups =
        ["device/sync-one-write", "device/sync-two-writes"].map(|name| run_figures.group(name));
    let [one, two] = match groups {
        [Ok(one), Ok(two)] => [one, two],
        [Err(reason), _] | [_, Err(reason)] => return Ruling::not_measured(reason),
    };
    for (method, cell) in DURABLE {
        let pairs = one.pair_named(cell, DEFAULT_SYNC).zip(two.pair_named(cell, DEFAULT_SYNC));
        let Some((one, two)) = pairs else { continue };
        measured.extend([one.evidence.clone(), two.evidence.clone()]);
        if one.is_faster() && two.is_faster() {
            candidates.push((one.ratio().low.min(two.ratio().low), method, [one, two]));
        }
    }
    if measured.is_empty() {
        return Ruling::not_measured("fdatasync and the others were not measured often enough");
    }
    let best = candidates.into_iter().max_by(|one, other| one.0.total_cmp(&other.0));
    let Some((_, method, pairs)) = best else {
        let why = "no other durable method was faster than fdatasync with one write and with two, beyond the noise";
        return Ruling::keep(why).evidence(measured);
    };
    let why = format!("{method} makes writes last sooner than fdatasync");
    Ruling::set(method, why).evidence(pairs.map(|pair| pair.evidence)).caution(
        "measured through the page cache, as servers write WAL; pg_test_fsync writes past it with the open_ methods",
    )
}

/// Rule: `off` on a file system that copies on write, where making a segment by its last byte is faster by the threshold and
/// first writes into it were seen to be no slower. Elsewhere zeros reserve the space, and stay.
pub(super) fn wal_init_zero(run_figures: &RunFigures<'_>, _version: Version) -> Ruling {
    let (made, written) = match (
        run_figures.group("extend/wal-segment"),
        run_figures.group("extend/wal-first-writes"),
    ) {
        (Ok(made), Ok(written)) => (made, written),
        (Err(reason), _) | (_, Err(reason)) => return Ruling::not_measured(reason),
    };
    let made = made.pair_named("last byte", "write_zeros 8 kB");
    let written = written.pair_named("over a hole", "over zeros");
    let (Some(made), Some(written)) = (made, written) else {
        return Ruling::not_measured(
            "segments with zeros and without were not both measured often enough",
        );
    };
    let pays = made.is_faster() && written.is_no_slower();
    let evidence = [made.evidence, written.evidence];
    if !is_copy_on_write(run_figures) {
        let why =
            "zeros reserve a segment's space here: without them a commit can find the device full";
        return Ruling::keep(why).evidence(evidence);
    }
    if !pays {
        let why = "zeros were not seen to be in vain: making a segment without them, or writing to it, is no better";
        return Ruling::keep(why).evidence(evidence);
    }
    Ruling::set("off", "the file system copies on write: zeros reserve nothing, and take time")
        .evidence(evidence)
}

/// Rule: `off` on a file system that copies on write, where first writes into a new segment are faster by the threshold than
/// into an old one under a new name. Elsewhere recycling saves the making of segments, and stays.
pub(super) fn wal_recycle(run_figures: &RunFigures<'_>, _version: Version) -> Ruling {
    let place = match run_figures.group("extend/wal-first-writes") {
        Ok(place) => place,
        Err(reason) => return Ruling::not_measured(reason),
    };
    let Some(pair) = place.pair_named("over a hole", "over a recycled segment") else {
        return Ruling::not_measured(
            "new and recycled segments were not both measured often enough",
        );
    };
    let (is_faster, evidence): (bool, [Evidence; 1]) = (Pair::is_faster(&pair), [pair.evidence]);
    if !is_copy_on_write(run_figures) {
        let why = "a recycled segment has its space and does not have to be allocated again";
        return Ruling::keep(why).evidence(evidence);
    }
    match is_faster {
        true => Ruling::set(
            "off",
            "writes into new segments are faster than into old ones under a new name",
        )
        .evidence(evidence)
        .caution("it goes with wal_init_zero = off: new segments are made more often then"),
        false => Ruling::keep("new segments were not seen to be written faster than recycled ones")
            .evidence(evidence),
    }
}
