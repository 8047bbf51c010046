//! `device`: what the storage gives at all: the limit that everything else is held against.
//!
//! One file, written in full, is read and overwritten: in order and in random order, in blocks of 8 kB to 1 MiB, by each
//! method, with 1 to 64 requests in flight, past the page cache and through it; then each way to make a write last, and how
//! long transactions wait beside somebody who writes much.
//! Turns last a time, not a number of blocks, so that a slow device takes no longer; and half a second at least, as limits
//! of devices let more through at first.
//!
//! Invariant: reads through the page cache begin with none of the file in it and read no block twice in a turn.

use std::path::PathBuf;
use std::time::Duration;

use pagemill_io::{Caching, IoMethod, WriteMethod};

use crate::contestant::Contestant;
use crate::error::Result;
use crate::experiments::block_io::{BlockIo, Method, Order};
use crate::experiments::write_back::{self, FilePaths, PreparedFiles, Writer};
use crate::experiments::{Plan, Scale, Session, sync_methods, test_file};
use crate::results::{CacheState, Figure};
use crate::runner::{GroupPlan, LEAST_ROUNDS};

/// The experiment.
pub const PLAN: Plan = Plan {
    name: "device",
    title: "What the device gives: reads and writes in order and in random order, and ways to sync",
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

use Method::{Read, ReadByThreads, Write};

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
    trial.blocks(session)?;
    syncs(session, &segment)?;
    write_backs(session, trial.file, segment)
}

/// The file and what all stretches of work have in common.
struct Trial {
    file: PathBuf,
    seed: u64,
}

/// A row: method, block size, depth.
type Row = (Method, usize, u32);

/// A group of rows, and its share of the experiment's time in hundredths.
type Group = (Kind, Vec<Row>, u32);

/// Depths of one method and block size.
fn deep(method: Method, block: usize, depths: &[u32]) -> impl Iterator<Item = Row> {
    depths.iter().map(move |depth| (method, block, *depth))
}

/// Sizes of one method, one after the other.
fn plain(method: Method, sizes: &[usize]) -> impl Iterator<Item = Row> {
    sizes.iter().map(move |size| (method, *size, 1))
}

fn read_groups(quick: bool) -> Vec<Group> {
    use IoMethod::{IoUring, Mmap, Pread, Preadv, Seek, Worker};
    let one = [(Read(Pread), BLOCK, 1)];
    // A queue of four workers is not deeper for more requests: these are so many threads, as a server's workers.
    let (workers, depths): (&[u32], &[u32]) = match quick {
        true => (&[4, 16], &[4, 16, 64]),
        false => (&[4, 8, 16, 32], &[1, 2, 4, 8, 16, 32, 64]),
    };
    let random = one.into_iter().chain(deep(ReadByThreads, BLOCK, workers));
    let random = random.chain(deep(Read(IoUring), BLOCK, depths)).collect();
    let title = "8 kB blocks read in random order, past the page cache";
    let mut groups = vec![(Kind::direct("random-read", title, Order::Random), random, 16)];

    let depths: &[u32] = if quick { &[4] } else { &[2, 4, 16] };
    let mut in_order: Vec<Row> =
        plain(Read(Pread), sizes(quick)).chain(deep(Read(IoUring), MB, depths)).collect();
    if !quick {
        let queues = [(Worker, MB, 4), (IoUring, 128 * KB, 16), (Worker, 128 * KB, 16)];
        in_order.extend(queues.map(|(method, block, depth)| (Read(method), block, depth)));
    }
    let title = "Blocks read in order, past the page cache";
    groups.push((Kind::direct("sequential-read", title, Order::Around), in_order, 13));

    let methods: &[IoMethod] = if quick { &[Pread, Mmap] } else { &[Seek, Pread, Preadv, Mmap] };
    let calls = |block| methods.iter().map(move |method| (Read(*method), block, 1));
    let queues = |block| [Worker, IoUring].map(|method| (Read(method), block, 16));
    // Servers of 18 combine up to a megabyte.
    let sizes: &[usize] = if quick { &[MB] } else { &[MB, BLOCK] };
    let cold = calls(128 * KB).chain(queues(128 * KB)).chain(plain(Read(Pread), sizes)).collect();
    let title = "Blocks read in order, through the page cache";
    groups.push((Kind::cold("sequential-read-cold", title, Order::Once), cold, 11));
    if !quick {
        let rows = calls(BLOCK).chain(queues(BLOCK)).collect();
        let title = "8 kB blocks read in random order, through the page cache";
        groups.push((Kind::cold("random-read-cold", title, Order::Random), rows, 7));
    }
    groups
}

/// All groups of a run that move blocks. No setting follows from how they are written.
fn block_groups(scale: &Scale) -> Vec<Group> {
    let writes = (!scale.only_advice).then(|| write_groups(scale.quick));
    read_groups(scale.quick).into_iter().chain(writes.into_iter().flatten()).collect()
}

fn write_groups(quick: bool) -> Vec<Group> {
    use WriteMethod::{IoUring, Mmap, Pwrite, Pwritev, Worker};
    let random = [(Write(Pwrite), BLOCK, 1), (Write(Worker), BLOCK, 16)];
    let depths: &[u32] = if quick { &[16] } else { &[1, 4, 16, 64] };
    let random = random.into_iter().chain(deep(Write(IoUring), BLOCK, depths)).collect();
    let title = "8 kB blocks written in random order, past the page cache";
    let mut groups = vec![(Kind::direct("random-write", title, Order::Random), random, 8)];

    let depths: &[u32] = if quick { &[4] } else { &[2, 4, 16] };
    let mut in_order: Vec<Row> =
        plain(Write(Pwrite), sizes(quick)).chain(deep(Write(IoUring), MB, depths)).collect();
    if !quick {
        in_order.push((Write(Worker), MB, 4));
    }
    let title = "Blocks written in order, past the page cache";
    groups.push((Kind::direct("sequential-write", title, Order::Around), in_order, 10));

    let mut synced: Vec<Row> =
        [Pwrite, Pwritev, Mmap].map(|method| (Write(method), 128 * KB, 1)).into();
    if !quick {
        synced.extend([Worker, IoUring].map(|method| (Write(method), 128 * KB, 16)));
    }
    let title = "Blocks written in order through the page cache, then fdatasync";
    let kind = Kind {
        synced: true,
        cache: CacheState::Cold,
        caching: Caching::Buffered,
        ..Kind::direct("sequential-write-synced", title, Order::Once)
    };
    groups.push((kind, synced, 9));
    groups
}

/// Rounds that a full run is planned to have: its groups end when their time is over.
const PLANNED_ROUNDS: u32 = 10;
/// What a turn takes beside its least time, in hundredths of that: files brought to their state, rates that do not stand yet.
const BESIDE: u32 = 30;

/// The time of the experiment: each of its turns has a length.
pub(crate) fn planned_time(scale: &Scale) -> Duration {
    let blocks: usize = block_groups(scale).iter().map(|(_, rows, _)| rows.len()).sum();
    let syncs: usize = sync_groups(scale.quick).iter().map(|group| group.contestants()).sum();
    let cells = blocks + syncs + 2 * flush_after(scale.quick).len();
    let rounds = if scale.quick { LEAST_ROUNDS } else { PLANNED_ROUNDS };
    let turns = u32::try_from(cells).unwrap_or(u32::MAX).saturating_mul(rounds);
    scale.device_turn.saturating_mul(turns) * (100 + BESIDE) / 100
}

impl Trial {
    fn blocks(&self, session: &mut Session<'_>) -> Result<()> {
        for (kind, rows, percent) in block_groups(&session.scale()) {
            self.group(session, &kind, &rows, percent)?;
        }
        Ok(())
    }

    fn group(
        &self,
        session: &mut Session<'_>,
        kind: &Kind,
        rows: &[Row],
        percent: u32,
    ) -> Result<()> {
        let time = session.scale().device_turn;
        let contestant = |row: &Row| self.contestant(kind, *row, time);
        let baseline = rows.first().map(name).unwrap_or_default();
        let plan = GroupPlan::new(kind.name, kind.title)
            .figure(if kind.order == Order::Random { Figure::Rate } else { Figure::Throughput })
            .cache(kind.cache, vec![self.file.clone()])
            .baseline(&baseline)
            .without_warm_up()
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
        ReadByThreads => IoMethod::Worker.name(),
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
        true => &[128 * KB, 256 * KB, MB],
        false => &[8 * KB, 16 * KB, 32 * KB, 64 * KB, 128 * KB, 256 * KB, 512 * KB, MB],
    }
}

/// A group of writes that are made to last.
struct Syncs {
    name: &'static str,
    title: &'static str,
    baseline: &'static str,
    work: SyncWork,
    percent: u32,
}

/// What such a group does.
#[derive(Clone, Copy)]
enum SyncWork {
    /// So many writes an operation, by these methods.
    Methods(usize, &'static [sync_methods::Named]),
    /// Writes of several sizes.
    Sizes,
}

impl Syncs {
    fn contestants(&self) -> usize {
        match self.work {
            SyncWork::Methods(_, methods) => methods.len(),
            SyncWork::Sizes => sync_methods::SIZES.len(),
        }
    }
}

fn sync_groups(quick: bool) -> Vec<Syncs> {
    let methods = if quick { sync_methods::OF_SERVERS } else { sync_methods::ALL };
    let group = |name, title, writes, percent| Syncs {
        name,
        title,
        baseline: "fdatasync",
        work: SyncWork::Methods(writes, methods),
        percent,
    };
    let mut groups = vec![
        group("sync-one-write", "One 8 kB write made to last", 1, 8),
        group("sync-two-writes", "Two 8 kB writes made to last", 2, 4),
    ];
    if !quick {
        groups.push(Syncs {
            name: "open-sync-sizes",
            title: "16 kB made to last by writes that are each synced (open_sync)",
            baseline: "1 x 16 kB",
            work: SyncWork::Sizes,
            percent: 4,
        });
    }
    groups
}

fn syncs(session: &mut Session<'_>, segment: &std::path::Path) -> Result<()> {
    let time = session.scale().device_turn;
    for Syncs { name, title, baseline, work, percent } in sync_groups(session.scale().quick) {
        let contestants = match work {
            SyncWork::Methods(writes, methods) => {
                sync_methods::methods(segment, writes, time, methods)
            }
            SyncWork::Sizes => sync_methods::sizes(segment, time),
        };
        let plan = GroupPlan::new(name, title).figure(Figure::Rate).baseline(baseline);
        session.group(plan.without_warm_up().contestants(contestants), percent)?;
    }
    Ok(())
}

/// Values of `checkpoint_flush_after` and `backend_flush_after`, in kB.
fn flush_after(quick: bool) -> &'static [u64] {
    if quick { &[0, 256, 1024] } else { &[0, 128, 256, 512, 1024, 2048] }
}

/// Transactions beside a checkpoint, and beside a session that writes much; they read `read` and write to `commit`.
fn write_backs(session: &mut Session<'_>, read: PathBuf, commit: PathBuf) -> Result<()> {
    session.preparing("writing a file to be dirtied");
    let dirty = session.directory().join("dirty");
    test_file::make(&dirty, dirtied(&session.scale()), session.seed(), session.cancel())?;
    let paths = FilePaths { dirty: dirty.clone(), read, commit };
    let ground = PreparedFiles::new(paths, session.seed(), session.cancel())?;
    let scale = session.scale();
    let bytes: Vec<u64> =
        flush_after(scale.quick).iter().map(|kilobytes| kilobytes << 10).collect();
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
            .without_warm_up()
            .contestants(ground.contestants(writer, &bytes, scale.device_turn));
        session.group(plan, 5)?;
    }
    Ok(())
}
