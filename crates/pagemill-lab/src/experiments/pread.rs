//! `pread`: positional reads against lseek and read, and what has come since ("\[PATCH\] Using pread instead of
//! lseek (with analysis)", pgsql-patches, 2005).
//!
//! That message's two workloads on its table, `bigtable` of three random integers: `count(*)`, and all rows in the order of an
//! index on the three. As there, with the table smaller than memory and larger. The old calls read one block at a time
//! and look ahead at nothing; today's go through the project's read stream.
//!
//! An index itself is not read: the order is the one it gives, taken from the rows, and each row's block is fetched for it,
//! as with hardly any buffers.

use std::path::PathBuf;
use std::time::Duration;

use pagemill_engine::{GenerateOptions, GeneratedTable, generate};
use pagemill_io::{IoMethod, Storage, WriteSettings};

use crate::cancel::Cancel;
use crate::contestant::{Contestant, Work};
use crate::error::Result;
use crate::experiments::table_reads::{Reading, RowAddress, TableFiles};
use crate::experiments::{Plan, Scale, Session};
use crate::memory_group::MemoryGroup;
use crate::results::{CacheState, Figure};
use crate::runner::GroupPlan;

/// The experiment.
pub const PLAN: Plan = Plan {
    name: "pread",
    title: "pread instead of lseek and read, and today's methods beside them",
    question: "Does a positional read gain anything over a seek and a read, in a scan and in the order of an index, \
               with the table in memory, out of it, and larger than it? And what do the methods that came later gain?",
    bytes_needed: table_bytes,
    share: 15,
    run,
};

/// The first workload.
const SCAN: &str = "count(*) of bigtable";
/// The second.
const LOOK_UP: &str =
    "rows of bigtable in the order of an index on (a, b, c), each row's block fetched for it";

/// Rows of three integers on a page, about (24 bytes of header, 12 of values, 4 of alignment, 4 of line pointer).
const ROWS_PER_BLOCK: u64 = 185;
/// Rows that an index order has at most, so that it takes little memory.
const MOST_PLACES: u32 = 1_000_000;
/// Memory that a scan needs besides the table, and then some: a table must be twice as large to be larger than memory.
const LEAST_LIMIT: u64 = 16 << 20;

/// Bytes of the table: in a full run half of other experiments' files, as it is read so often.
fn table_bytes(scale: &Scale) -> u64 {
    if scale.quick { scale.size } else { scale.size / 2 }
}

/// The way to read, and how it is called.
pub(super) type NamedReading = (&'static str, Reading);

pub(super) const fn way(
    name: &'static str,
    method: Option<IoMethod>,
    single: bool,
) -> NamedReading {
    (name, Reading { method, single })
}

const WAYS: [NamedReading; 8] = [
    way("seek", Some(IoMethod::Seek), true),
    way("pread 8 kB", Some(IoMethod::Pread), true),
    way("pread", Some(IoMethod::Pread), false),
    way("preadv", Some(IoMethod::Preadv), false),
    way("mmap", Some(IoMethod::Mmap), false),
    way("worker", Some(IoMethod::Worker), false),
    way("io_uring", Some(IoMethod::IoUring), false),
    way("auto", None, false),
];

fn run(session: &mut Session<'_>) -> Result<()> {
    session.preparing("making bigtable");
    let table = make_table(session)?;
    let files = table.files()?;
    session.preparing("sorting the keys of bigtable");
    let order = table.index_order(MOST_PLACES, session.cancel())?;
    let bytes = table_bytes(&session.scale());
    let trial = Trial { table, files, order, bytes };
    trial.scans(session, CacheState::Cached, 12)?;
    trial.scans(session, CacheState::Cold, 24)?;
    trial.look_ups(session, CacheState::Cached, 12)?;
    trial.look_ups(session, CacheState::Cold, 20)?;
    trial.with_little_memory(session)
}

fn make_table(session: &Session<'_>) -> Result<TableFiles> {
    let options = GenerateOptions {
        table: GeneratedTable::Bigtable,
        rows: table_bytes(&session.scale()) / 8192 * ROWS_PER_BLOCK,
        seed: session.seed(),
        fillfactor: 100,
        checksums: false,
        jobs: session.jobs(),
        writing: WriteSettings::default(),
    };
    let made = generate(&Storage::real().untimed(), session.directory(), &options)?;
    Ok(TableFiles { path: made.path, rows: made.rows })
}

/// The table, and the order of its index.
struct Trial {
    table: TableFiles,
    files: Vec<PathBuf>,
    order: Vec<RowAddress>,
    bytes: u64,
}

impl Trial {
    fn scans(&self, session: &mut Session<'_>, cache: CacheState, percent: u32) -> Result<()> {
        let name = state_name(cache);
        let scan = |(name, reading): NamedReading| {
            let work = move |cancel: &Cancel| self.table.count(reading, 1, cancel);
            described(Contestant::new(name, work), reading)
        };
        let plan = GroupPlan::new(format!("sequential-{name}"), SCAN).bytes(self.bytes);
        session.group(self.group(plan, cache).contestants(WAYS.map(scan)), percent)
    }

    fn look_ups(&self, session: &mut Session<'_>, cache: CacheState, percent: u32) -> Result<()> {
        let name = state_name(cache);
        let time = session.turn_time(percent, WAYS.len());
        let look_up = |(name, reading): NamedReading| {
            let work = move |cancel: &Cancel| self.look_up(reading, time, cancel);
            described(Contestant::new(name, work), reading)
        };
        let plan = GroupPlan::new(format!("index-order-{name}"), LOOK_UP).figure(Figure::Rate);
        session.group(self.group(plan, cache).contestants(WAYS.map(look_up)), percent)
    }

    fn look_up(&self, reading: Reading, time: Duration, cancel: &Cancel) -> Result<Work> {
        self.table.look_up(&self.order, reading, time, cancel)
    }

    /// What all groups have in common.
    fn group<'a>(&self, plan: GroupPlan<'a>, cache: CacheState) -> GroupPlan<'a> {
        let plan = plan.cache(cache, self.files.clone()).baseline("seek");
        if cache == CacheState::Cold { plan.timeline() } else { plan }
    }

    /// Both workloads with memory for half of the table.
    fn with_little_memory(&self, session: &mut Session<'_>) -> Result<()> {
        let what = "bigtable larger than memory";
        let limit = self.bytes / 2;
        if limit < LEAST_LIMIT {
            session.skip(what, "the table is too small: choose a larger --size");
            return Ok(());
        }
        let memory = match MemoryGroup::create(limit) {
            Ok(memory) => memory,
            Err(error) => {
                let remedy = "run as root where control groups for memory can be made";
                session.skip(what, format!("{error}: {remedy}"));
                return Ok(());
            }
        };
        let state = CacheState::Limited;
        let name = state_name(state);
        let scan = |(name, reading): NamedReading| {
            let memory = &memory;
            let work = move |cancel: &Cancel| {
                let _inside = memory.enter()?;
                self.table.count(reading, 2, cancel)
            };
            described(Contestant::new(name, work), reading)
        };
        let title = format!("{SCAN}, twice over, with memory for half of it");
        let plan = GroupPlan::new(format!("sequential-{name}"), title).bytes(2 * self.bytes);
        session.group(self.group(plan, state).contestants(WAYS.map(scan)), 16)?;
        let time = session.turn_time(16, WAYS.len());
        let look_up = |(name, reading): NamedReading| {
            let memory = &memory;
            let work = move |cancel: &Cancel| {
                let _inside = memory.enter()?;
                self.look_up(reading, time, cancel)
            };
            described(Contestant::new(name, work), reading)
        };
        let title = format!("{LOOK_UP}, with memory for half of it");
        let plan = GroupPlan::new(format!("index-order-{name}"), title).figure(Figure::Rate);
        session.group(self.group(plan, state).contestants(WAYS.map(look_up)), 16)
    }
}

/// With what the way is, as parameters.
pub(super) fn described<'a>(contestant: Contestant<'a>, reading: Reading) -> Contestant<'a> {
    let contestant = contestant
        .parameter("method", reading.method_name())
        .parameter("io_combine_limit", if reading.single { 1 } else { 16 });
    match reading.method {
        Some(IoMethod::Worker) => contestant.by_threads(),
        _ => contestant,
    }
}

/// A state of the cache, in the names of groups.
pub(super) fn state_name(cache: CacheState) -> &'static str {
    match cache {
        CacheState::Cold => "cold",
        CacheState::Limited => "larger-than-memory",
        CacheState::Cached | CacheState::Any => "cached",
    }
}
