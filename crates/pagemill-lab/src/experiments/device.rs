//! `device`: what the storage gives at all: the limit that everything else is held against.
//!
//! One file, written in full, is read and overwritten: in order and here and there, in blocks of 8 kB to 1 MiB, by each
//! method, with 1 to 64 requests in flight, past the page cache and through it; then each way to make a write last, and how
//! long transactions wait beside somebody who writes much.
//! Turns last a time, not a number of blocks, so that a slow device takes no longer.
//!
//! Invariant: reads through the page cache begin with none of the file in it and read no block twice in a turn.

use std::path::PathBuf;
use std::time::Duration;

use pagemill_io::{Caching, IoMethod, WriteMethod};

use crate::contestant::Contestant;
use crate::error::Result;
use crate::experiments::block_io::{BlockIo, Method, Order};
use crate::experiments::write_back::{self, Ground, Writer};
use crate::experiments::{Plan, Scale, Session, sync_methods, test_file};
use crate::results::{CacheState, Figure};
use crate::runner::GroupPlan;

/// The experiment.
pub const PLAN: Plan = Plan {
    name: "device",
    title: "What the device gives: reads and writes in order and here and there, and ways to sync",
    question: "How many blocks a second, and how many bytes, does this storage read and write at best, and by \
               which method, at which block size and depth? Which way makes a write last soonest? How long do \
               transactions wait for somebody who writes much, and does it help to send that early?",
    bytes_needed,
    share: 20,
    run,
};

/// Size of the file for syncs: that of a WAL segment.
const SEGMENT: u64 = 16 << 20;

const KB: usize = 1024;
const MB: usize = 1024 * KB;
const BLOCK: usize = 8 * KB;

use Method::{Read, Write};

fn bytes_needed(scale: &Scale) -> u64 {
    scale.size + SEGMENT.min(scale.size) + dirtied(scale)
}

/// Bytes of the file of which half is written while others work.
fn dirtied(scale: &Scale) -> u64 {
    let part = if scale.quick { scale.size } else { scale.size / 4 };
    (part / 8192 * 8192).max(8192)
}

fn run(session: &mut Session<'_>) -> Result<()> {
    let (file, segment) = (session.directory().join("file"), session.directory().join("segment"));
    session.preparing("writing the file");
    let (size, seed) = (session.scale().size, session.seed());
    test_file::make(&file, size, seed, session.cancel())?;
    test_file::make(&segment, SEGMENT.min(size), seed, session.cancel())?;
    let trial = Trial { file, seed };
    trial.reads(session)?;
    trial.writes(session)?;
    syncs(session, &segment)?;
    write_backs(session, (trial.file, segment))
}

/// The file and what all stretches of work have in common.
struct Trial {
    file: PathBuf,
    seed: u64,
}

/// A row: method, block size, depth.
type Row = (Method, usize, u32);

impl Trial {
    fn reads(&self, session: &mut Session<'_>) -> Result<()> {
        use IoMethod::{IoUring, Mmap, Pread, Preadv, Seek, Worker};
        let quick = session.scale().quick;
        let mut rows = vec![(Read(Pread), BLOCK, 1)];
        let depths: (&[u32], &[u32]) =
            if quick { (&[4], &[1, 4, 16, 64]) } else { (&[4, 16, 64], &[1, 2, 4, 8, 16, 32, 64]) };
        rows.extend(depths.0.iter().map(|depth| (Read(Worker), BLOCK, *depth)));
        rows.extend(depths.1.iter().map(|depth| (Read(IoUring), BLOCK, *depth)));
        let group = Kind::direct(
            "random-read",
            "8 kB blocks read here and there, past the page cache",
            Order::Random,
        );
        self.group(session, &group, &rows, 16)?;

        let mut rows: Vec<Row> = sizes(quick).iter().map(|size| (Read(Pread), *size, 1)).collect();
        let depths: &[u32] = if quick { &[4] } else { &[2, 4, 16] };
        rows.extend(depths.iter().map(|depth| (Read(IoUring), MB, *depth)));
        if !quick {
            rows.push((Read(Worker), MB, 4));
            rows.extend([(Read(IoUring), 128 * KB, 16), (Read(Worker), 128 * KB, 16)]);
        }
        let group = Kind::direct(
            "sequential-read",
            "Blocks read in order, past the page cache",
            Order::Around,
        );
        self.group(session, &group, &rows, 13)?;

        let mut rows: Vec<Row> = [Seek, Pread, Preadv, Mmap]
            .map(|method| (Read(method), 128 * KB, 1))
            .into_iter()
            .chain([Worker, IoUring].map(|method| (Read(method), 128 * KB, 16)))
            .collect();
        // Servers of 18 combine up to so much.
        rows.push((Read(Pread), MB, 1));
        if !quick {
            rows.push((Read(Pread), BLOCK, 1));
        }
        let group = Kind::cold(
            "sequential-read-cold",
            "Blocks read in order, through the page cache",
            Order::Once,
        );
        self.group(session, &group, &rows, 11)?;

        if !quick {
            let rows: Vec<Row> = [Seek, Pread, Preadv, Mmap]
                .map(|method| (Read(method), BLOCK, 1))
                .into_iter()
                .chain([Worker, IoUring].map(|method| (Read(method), BLOCK, 16)))
                .collect();
            let title = "8 kB blocks read here and there, through the page cache";
            self.group(session, &Kind::cold("random-read-cold", title, Order::Random), &rows, 7)?;
        }
        Ok(())
    }

    fn writes(&self, session: &mut Session<'_>) -> Result<()> {
        use WriteMethod::{IoUring, Mmap, Pwrite, Pwritev, Worker};
        let quick = session.scale().quick;
        let mut rows = vec![(Write(Pwrite), BLOCK, 1), (Write(Worker), BLOCK, 16)];
        let depths: &[u32] = if quick { &[16] } else { &[1, 4, 16, 64] };
        rows.extend(depths.iter().map(|depth| (Write(IoUring), BLOCK, *depth)));
        let group = Kind::direct(
            "random-write",
            "8 kB blocks written here and there, past the page cache",
            Order::Random,
        );
        self.group(session, &group, &rows, 8)?;

        let mut rows: Vec<Row> =
            sizes(quick).iter().map(|size| (Write(Pwrite), *size, 1)).collect();
        let depths: &[u32] = if quick { &[4] } else { &[2, 4, 16] };
        rows.extend(depths.iter().map(|depth| (Write(IoUring), MB, *depth)));
        if !quick {
            rows.push((Write(Worker), MB, 4));
        }
        let group = Kind::direct(
            "sequential-write",
            "Blocks written in order, past the page cache",
            Order::Around,
        );
        self.group(session, &group, &rows, 10)?;

        let mut rows: Vec<Row> = vec![
            (Write(Pwrite), 128 * KB, 1),
            (Write(Pwritev), 128 * KB, 1),
            (Write(Mmap), 128 * KB, 1),
        ];
        if !quick {
            rows.extend([Worker, IoUring].map(|method| (Write(method), 128 * KB, 16)));
        }
        let title = "Blocks written in order through the page cache, then fdatasync";
        let group = Kind {
            synced: true,
            cache: CacheState::Cold,
            caching: Caching::Buffered,
            ..Kind::direct("sequential-write-synced", title, Order::Once)
        };
        self.group(session, &group, &rows, 9)
    }

    fn group(
        &self,
        session: &mut Session<'_>,
        kind: &Kind,
        rows: &[Row],
        percent: u32,
    ) -> Result<()> {
        let time = session.turn_time(percent, rows.len());
        let contestant = |row: &Row| self.contestant(kind, *row, time);
        let baseline = rows.first().map(name).unwrap_or_default();
        let plan = GroupPlan::new(kind.name, kind.title)
            .figure(if kind.order == Order::Random { Figure::Rate } else { Figure::Throughput })
            .cache(kind.cache, vec![self.file.clone()])
            .baseline(&baseline)
            .contestants(rows.iter().map(contestant));
        session.group(plan, percent)
    }

    fn contestant(&self, kind: &Kind, row: Row, time: Duration) -> Contestant<'static> {
        let (method, block, depth) = row;
        let Kind { caching, order, synced, .. } = *kind;
        let io = BlockIo { method, caching, order, block, depth, time, seed: self.seed, synced };
        io.contestant(name(&row), self.file.clone())
    }
}

/// What all cells of a group have in common.
struct Kind {
    name: &'static str,
    title: &'static str,
    order: Order,
    caching: Caching,
    cache: CacheState,
    synced: bool,
}

impl Kind {
    fn direct(name: &'static str, title: &'static str, order: Order) -> Self {
        Self { name, title, order, caching: Caching::Direct, cache: CacheState::Any, synced: false }
    }

    fn cold(name: &'static str, title: &'static str, order: Order) -> Self {
        let cache = CacheState::Cold;
        Self { name, title, order, caching: Caching::Buffered, cache, synced: false }
    }
}

/// `pread 8 kB`, `io_uring 8 kB depth 16`.
fn name(row: &Row) -> String {
    let (method, block, depth) = row;
    let method = match method {
        Read(method) => method.name(),
        Write(method) => method.name(),
    };
    let size =
        if *block >= MB { format!("{} MB", block / MB) } else { format!("{} kB", block / KB) };
    match depth {
        1 => format!("{method} {size}"),
        depth => format!("{method} {size} depth {depth}"),
    }
}

fn sizes(quick: bool) -> &'static [usize] {
    match quick {
        // The default of io_combine_limit, and the most that 17 and 18 take.
        true => &[8 * KB, 128 * KB, 256 * KB, MB],
        false => &[8 * KB, 16 * KB, 32 * KB, 64 * KB, 128 * KB, 256 * KB, 512 * KB, MB],
    }
}

fn syncs(session: &mut Session<'_>, segment: &std::path::Path) -> Result<()> {
    let groups: &[(usize, &str, &str, u32)] = &[
        (1, "sync-one-write", "One 8 kB write made to last", 8),
        (2, "sync-two-writes", "Two 8 kB writes made to last", 4),
    ];
    for (writes, name, title, percent) in groups {
        let contestants = sync_methods::methods(segment, *writes, session.turn_time(*percent, 4));
        let plan = GroupPlan::new(*name, *title).figure(Figure::Rate).baseline("fdatasync");
        session.group(plan.contestants(contestants), *percent)?;
    }
    let contestants = sync_methods::sizes(segment, session.turn_time(4, 5));
    let plan = GroupPlan::new(
        "open-sync-sizes",
        "16 kB made to last by writes that are each synced (open_sync)",
    );
    session.group(plan.figure(Figure::Rate).baseline("1 x 16 kB").contestants(contestants), 4)
}

/// Transactions beside a checkpoint, and beside a session that writes much.
fn write_backs(session: &mut Session<'_>, (read, commit): (PathBuf, PathBuf)) -> Result<()> {
    session.preparing("writing a file to be dirtied");
    let dirty = session.directory().join("dirty");
    test_file::make(&dirty, dirtied(&session.scale()), session.seed(), session.cancel())?;
    let ground = Ground::new((dirty.clone(), read, commit), session.seed(), session.cancel())?;
    let kilobytes: &[u64] =
        if session.scale().quick { &[0, 256, 1024] } else { &[0, 128, 256, 512, 1024, 2048] };
    let bytes: Vec<u64> = kilobytes.iter().map(|kilobytes| kilobytes << 10).collect();
    let groups = [
        (Writer::Checkpoint, "checkpoint-flush-after", "a checkpoint", 256 << 10),
        (Writer::Session, "backend-flush-after", "a session that writes much", 0),
    ];
    for (writer, name, what, default) in groups {
        let title =
            format!("Transactions beside {what}, its pages sent to the device every so many kB");
        // In the page cache, as what a server writes was mostly read through it before.
        let plan = GroupPlan::new(name, title)
            .figure(Figure::Latency)
            .cache(CacheState::Cached, vec![dirty.clone()])
            .baseline(&write_back::name(default))
            .contestants(ground.contestants(writer, &bytes));
        session.group(plan, 5)?;
    }
    Ok(())
}
