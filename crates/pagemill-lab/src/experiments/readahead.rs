//! `readahead`: telling the kernel of blocks far ahead ("Patch : seq scan readahead (WIP)", pgsql-hackers,
//! 2009).
//!
//! That message's four strategies and the project's own, over a table from its first block to its last and back, over two tables at
//! once, over a file with holes, over a compressed one where the file system compresses, and over mirrored disks: real ones that are
//! made slow where that is asked for and allowed (`--mirrored`), and those of 2009 as a model.

use std::path::{Path, PathBuf};

use pagemill_engine::{GenerateOptions, GeneratedTable, generate};
use pagemill_format::SEGMENT_BLOCKS;
use pagemill_io::{Storage, WriteSettings};

use crate::error::{Error, Result};
use crate::experiments::mirrored_disks::MirroredDisks;
use crate::experiments::relation_scans::{RelationScans, STRATEGIES, copy_with_holes};
use crate::experiments::simulated_mirror::{ScanMeasure, SimulatedMirror};
use crate::experiments::{Plan, Scale, Session};
use crate::results::{CacheState, Figure};
use crate::runner::GroupPlan;

/// The experiment.
pub const PLAN: Plan = Plan {
    name: "readahead",
    title: "Telling the kernel of blocks far ahead of a sequential scan",
    question: "Does a scan gain from telling the kernel of blocks 4096 further on, always, in every second window, or in turns one \
               window and two ahead? On one disk and on mirrored ones, forward and backward, alone and beside another?",
    bytes_needed: |scale| 4 * table_bytes(scale) + 4 * mirrored_bytes(scale),
    share: 14,
    run,
};

/// Blocks ahead that the document chose (32 MB), and the part of a table that a window takes at most.
const DISTANCE: u64 = 4096;
const WINDOWS: u64 = 8;
/// Rows of three integers on a page, about.
const ROWS_PER_BLOCK: u64 = 185;
/// Blocks between holes, and of a hole.
const STRETCH: usize = 8;

/// Bytes of a table.
fn table_bytes(scale: &Scale) -> u64 {
    (scale.size / if scale.quick { 2 } else { 4 }).next_multiple_of(8192)
}

/// Bytes of a table on mirrored disks, which are slow.
fn mirrored_bytes(scale: &Scale) -> u64 {
    (scale.size / if scale.quick { 4 } else { 8 }).next_multiple_of(8192)
}

/// Blocks that the kernel is told ahead of in a table of so many bytes.
fn distance(bytes: u64) -> u32 {
    let blocks = (bytes / 8192 / WINDOWS).clamp(1, DISTANCE);
    u32::try_from(blocks).unwrap_or(1)
}

fn run(session: &mut Session<'_>) -> Result<()> {
    session.preparing("making two tables");
    let bytes = table_bytes(&session.scale());
    let directory = session.directory().to_path_buf();
    let tables = [0, 1].map(|number| {
        make_table(session, &directory.join(format!("table{number}")), number, bytes)
    });
    let [first, second] = tables;
    let (first, second) = (first?, second?);
    let on_disk = Trial { bytes, prefix: "", disks: None };
    let one = |backward| on_disk.scans(vec![first.clone()], backward);
    let title = "A table scanned from its first block on";
    let group = ScanGroup { name: "forward-cold", title, percent: 16 };
    on_disk.group(session, group, &one(false))?;
    let title = "A table scanned from its last block back";
    let group = ScanGroup { name: "backward-cold", title, percent: 16 };
    on_disk.group(session, group, &one(true))?;
    let both = on_disk.scans(vec![first.clone(), second.clone()], false);
    let title = "Two tables scanned at once by two readers";
    let group = ScanGroup { name: "several-readers-cold", title, percent: 16 };
    on_disk.group(session, group, &both)?;
    remove(&second)?;
    sparse(session, &on_disk, &first)?;
    compressed(session, &on_disk)?;
    remove(&first)?;
    simulated(session)?;
    mirrored(session)
}

fn remove(table: &Path) -> Result<()> {
    let directory = table.parent().unwrap_or(table);
    std::fs::remove_dir_all(directory).map_err(Error::file(directory))
}

/// A table of about so many bytes in a new directory.
fn make_table(session: &Session<'_>, directory: &Path, number: u64, bytes: u64) -> Result<PathBuf> {
    if !directory.is_dir() {
        std::fs::create_dir(directory).map_err(Error::file(directory))?;
    }
    session.cancel().check()?;
    let options = GenerateOptions {
        table: GeneratedTable::Bigtable,
        rows: bytes / 8192 * ROWS_PER_BLOCK,
        seed: session.seed().wrapping_add(number),
        fillfactor: 100,
        checksums: false,
        jobs: session.jobs(),
        writing: WriteSettings::default(),
    };
    Ok(generate(&Storage::real().untimed(), directory, &options)?.path)
}

/// Tables of one size on the same disks.
struct Trial<'d> {
    bytes: u64,
    /// Of the groups' names.
    prefix: &'static str,
    disks: Option<&'d MirroredDisks>,
}

/// A group of scans.
#[derive(Debug, Clone, Copy)]
struct ScanGroup {
    /// Its name, but for the prefix of the trial.
    name: &'static str,
    /// Its title, but for the state of the page cache.
    title: &'static str,
    /// Its share of the experiment's time, in hundredths.
    percent: u32,
}

impl Trial<'_> {
    fn scans(&self, relations: Vec<PathBuf>, backward: bool) -> RelationScans {
        RelationScans { relations, distance: distance(self.bytes), backward }
    }

    fn group(
        &self,
        session: &mut Session<'_>,
        group: ScanGroup,
        scans: &RelationScans,
    ) -> Result<()> {
        let ScanGroup { name, title, percent } = group;
        let files = scans.files()?;
        let bytes = files.iter().filter_map(|file| Some(std::fs::metadata(file).ok()?.len())).sum();
        let contestant = |strategy| match self.disks {
            Some(disks) => disks.contestant(scans, strategy),
            None => scans.contestant(strategy),
        };
        let plan = GroupPlan::new(
            format!("{}{name}", self.prefix),
            format!("{title}, none of it in the page cache"),
        )
        .bytes(bytes)
        .figure(Figure::Throughput)
        .cache(CacheState::Cold, files)
        .baseline("0 none")
        .timeline()
        .without_warm_up()
        .contestants(STRATEGIES.map(contestant));
        session.group(plan, percent)
    }
}

fn sparse(session: &mut Session<'_>, trial: &Trial<'_>, table: &Path) -> Result<()> {
    session.preparing("making a file with holes");
    let path = session.directory().join("sparse");
    copy_with_holes(table, &path, STRETCH, session.cancel())?;
    let title = "A table with holes of 64 kB scanned from its first block on";
    let group = ScanGroup { name: "sparse-cold", title, percent: 16 };
    trial.group(session, group, &trial.scans(vec![path.clone()], false))?;
    std::fs::remove_file(&path).map_err(Error::file(&path))
}

fn compressed(session: &mut Session<'_>, trial: &Trial<'_>) -> Result<()> {
    let directory = session.directory().join("compressed");
    std::fs::create_dir(&directory).map_err(Error::file(&directory))?;
    if !mark_compressed(&directory) {
        let why = "the file system compresses no files when asked to: run in a directory on btrfs";
        session.skip("compressed files (compressed-cold)", why);
        return Ok(());
    }
    session.preparing("making a compressed table");
    let table = make_table(session, &directory, 2, trial.bytes)?;
    let title = "A compressed table scanned from its first block on";
    let group = ScanGroup { name: "compressed-cold", title, percent: 16 };
    trial.group(session, group, &trial.scans(vec![table.clone()], false))?;
    remove(&table)
}

/// Asks for what is made in a directory to be compressed, and says whether it will be: some file systems take the
/// mark and do nothing.
fn mark_compressed(directory: &Path) -> bool {
    use rustix::fs::{IFlags, ioctl_getflags, ioctl_setflags};
    let Ok(opened) = std::fs::File::open(directory) else { return false };
    let marked = ioctl_getflags(&opened)
        .and_then(|flags| ioctl_setflags(&opened, flags | IFlags::COMPRESSED));
    marked.is_ok() && Storage::real().place_of(&directory.join("table")).compresses
}

fn simulated(session: &mut Session<'_>) -> Result<()> {
    // One segment: with more, the disks take turns from one to the next.
    let blocks = u32::try_from(session.scale().size / 512).unwrap_or(u32::MAX);
    let blocks = blocks.clamp(16_384, SEGMENT_BLOCKS);
    session.preparing("scanning a model's table");
    let mirror = SimulatedMirror::new(blocks);
    let plan = GroupPlan::new(
        "simulated-mirror",
        "Simulated: a table of 1 GB on the RAID1 of 2009, in the model's time",
    )
    .bytes(u64::from(blocks) * 8192)
    .baseline("0 none")
    .contestants(mirror.contestants(ScanMeasure::Time));
    session.group(plan, 5)?;
    let plan = GroupPlan::new(
        "simulated-mirror-share",
        "Simulated: how many percent of the bytes the busier disk of the RAID1 read",
    )
    .figure(Figure::Count)
    .baseline("0 none")
    .contestants(mirror.contestants(ScanMeasure::Share));
    session.group(plan, 1)
}

fn mirrored(session: &mut Session<'_>) -> Result<()> {
    let what = "mirrored disks (mirrored-forward-cold, mirrored-several-readers-cold)";
    if !session.mirrored() {
        session.skip(
            what,
            "not asked for: pass --mirrored, as root, where there are loop devices and btrfs",
        );
        return Ok(());
    }
    let bytes = mirrored_bytes(&session.scale());
    // A scan by one disk takes about a second, or less in a quick run.
    let limit = if session.scale().quick { 6 * bytes } else { bytes };
    session.preparing("making two slow disks and a mirror of them");
    let directory = session.directory().join("mirror");
    let disks = match MirroredDisks::create(&directory, 2 * bytes, limit) {
        Ok(disks) => disks,
        Err(why) => {
            session.skip(what, why);
            return Ok(());
        }
    };
    let table =
        |number| make_table(session, &disks.path().join(format!("table{number}")), number, bytes);
    let (first, second) = (table(0)?, table(1)?);
    let trial = Trial { bytes, prefix: "mirrored-", disks: Some(&disks) };
    let one = trial.scans(vec![first.clone()], false);
    let title = "A table scanned on a RAID1 of two slow disks (btrfs)";
    let group = ScanGroup { name: "forward-cold", title, percent: 25 };
    trial.group(session, group, &one)?;
    let both = trial.scans(vec![first, second], false);
    let title = "Two tables scanned at once on a RAID1 of two slow disks (btrfs)";
    let group = ScanGroup { name: "several-readers-cold", title, percent: 25 };
    trial.group(session, group, &both)
}
