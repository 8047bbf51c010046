//! `extend`: making files longer ("extending relations more efficiently", pgsql-hackers, 2012).
//!
//! The message wrote a gigabyte, 1 to 64 blocks at a time, and synced it once: written zeros against posix_fallocate. Here
//! also ftruncate, blocks that are filled afterwards, four writers, WAL segments, and what a full device says.

use crate::error::{Error, Result};
use crate::experiments::grow::{Grow, GrowMethod};
use crate::experiments::{Plan, Scale, Session, late_enospc, wal_segments};
use crate::results::Figure;
use crate::runner::GroupPlan;

/// The experiment.
pub const PLAN: Plan = Plan {
    name: "extend",
    title: "Making files longer: written zeros, posix_fallocate, ftruncate",
    question: "By how many blocks at a time should a file grow, and should its new blocks be written as zeros or \
               allocated? What does that cost when they are filled later, by one writer and by four?",
    bytes_needed: |scale| total(scale) + segment(scale),
    share: 15,
    run,
};

/// Bytes of a WAL segment.
const SEGMENT: u64 = 16 << 20;

/// Bytes that a file grows to: less than the main file of other experiments, since it is written so often.
fn total(scale: &Scale) -> u64 {
    let part = if scale.quick { scale.size / 2 } else { scale.size / 4 };
    (part / 8192 * 8192).max(8192)
}

fn segment(scale: &Scale) -> u64 {
    SEGMENT.min(scale.size)
}

fn run(session: &mut Session<'_>) -> Result<()> {
    let quick = session.scale().quick;
    let steps: &[usize] = if quick { &[1, 8, 64] } else { &[1, 2, 4, 8, 16, 32, 64, 128] };
    let few: &[usize] = if quick { &[1, 64] } else { &[1, 8, 64] };
    let only_advice = session.scale().only_advice;
    if !only_advice {
        let title = "A file made longer so many blocks at a time, then fdatasync";
        growth(
            session,
            GroupPlan::new("extend", title),
            Shape { steps, fill: false, writers: 1 },
            35,
        )?;
    }
    let title = "A file made longer so many blocks at a time, each filled, then fdatasync";
    growth(
        session,
        GroupPlan::new("extend-and-fill", title),
        Shape { steps: few, fill: true, writers: 1 },
        20,
    )?;
    let title =
        "A file made longer by four writers, so many blocks at a time, each filled, then fdatasync";
    growth(
        session,
        GroupPlan::new("extend-four-writers", title),
        Shape { steps: few, fill: true, writers: 4 },
        20,
    )?;
    segments(session)?;
    if only_advice { Ok(()) } else { full_device(session) }
}

/// What the cells of a group do.
struct Shape<'a> {
    steps: &'a [usize],
    fill: bool,
    writers: usize,
}

fn growth(
    session: &mut Session<'_>,
    plan: GroupPlan<'_>,
    shape: Shape<'_>,
    percent: u32,
) -> Result<()> {
    let (path, total) = (session.directory().join("file"), total(&session.scale()));
    let Shape { steps, fill, writers } = shape;
    let cell = |way, blocks: &usize| {
        Grow { way, blocks: *blocks, total, fill, writers }.contestant(path.clone())
    };
    let ways = [GrowMethod::WriteZeros, GrowMethod::PosixFallocate, GrowMethod::Ftruncate];
    let cells = ways.into_iter().flat_map(|way| steps.iter().map(move |blocks| (way, blocks)));
    let plan = plan
        .bytes(total)
        .baseline("write_zeros 1")
        .contestants(cells.map(|(way, blocks)| cell(way, blocks)));
    session.group(plan, percent)?;
    std::fs::remove_file(&path).map_err(Error::file(&path))
}

fn segments(session: &mut Session<'_>) -> Result<()> {
    let (path, bytes) = (session.directory().join("segment"), segment(&session.scale()));
    let plan = GroupPlan::new("wal-segment", "A WAL segment made and synced")
        .bytes(bytes)
        .baseline("write_zeros 8 kB")
        .contestants(wal_segments::makers(&path, bytes));
    session.group(plan, 10)?;
    let time = session.turn_time(10, 4);
    let plan = GroupPlan::new(
        "wal-first-writes",
        "8 kB blocks written to a new WAL segment, each made to last",
    )
    .figure(Figure::Rate)
    .baseline("over zeros")
    .contestants(wal_segments::writers(&path, bytes, time));
    session.group(plan, 10)
}

fn full_device(session: &mut Session<'_>) -> Result<()> {
    let directory = session.directory().join("tiny");
    std::fs::create_dir(&directory).map_err(Error::file(&directory))?;
    let title = "On a full file system: bytes promised that cannot be written";
    let plan = GroupPlan::new("full-device", title)
        .figure(Figure::Count)
        .contestants(late_enospc::contestants(&directory));
    session.group(plan, 2)
}
