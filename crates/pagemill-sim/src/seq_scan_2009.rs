//! The experiment of 2009: `count(*)` over a table of 9.3 GB on two mirrored SATA disks, with the readahead
//! strategies 0 to 3 ("Patch : seq scan readahead (WIP)", pgsql-hackers, 8 August 2009).
//!
//! The machine is made of data sheets and of defaults of its kernel; the times that were measured are
//! here only to be printed beside those of the model, and nothing is computed from them. What is
//! assumed, and where the model departs, is in the README.
//!
//! Invariant: the same run takes the same virtual time, always.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use pagemill_format::{BLOCK_SIZE, BlockNumber, Fork};
use pagemill_io::{ForkFiles, IoMethod, ReadSettings, Readahead, Storage};
use pagemill_stream::{ReadStream, ReadStreamOptions};

use crate::hard_disk::HardDiskSheet;
use crate::kernel_settings::KernelSettings;
use crate::request_queue::DriveCount;
use crate::simulated_disk::SimulatedDisk;
use crate::volume::{Balance, DriveSheet, VolumeModel};

/// Blocks of the table: 9.3 GB, as PostgreSQL tells sizes.
pub const TABLE_BLOCKS: u32 = (93 * (1 << 30) / 10 / BLOCK_SIZE as u64) as u32;

/// What counting the rows of a page takes, beside the read: PostgreSQL 8.4's executor on a processor of
/// 2008, some fifty rows at 0.3 µs, and the buffer's management.
pub const PAGE_TIME: Duration = Duration::from_micros(20);

/// How a scan reads.
#[derive(Debug, Clone, Copy)]
pub struct Run {
    /// As printed.
    pub name: &'static str,
    /// The method; `None` for `auto`.
    pub method: Option<IoMethod>,
    /// What the kernel is told.
    pub readahead: Readahead,
    /// The most blocks of one read.
    pub io_combine_limit: u32,
    /// Seconds that were measured in 2009, where they were.
    pub measured: Option<f64>,
}

/// The strategies as they were measured: one `read` for each page.
pub const STRATEGIES: [Run; 4] = [
    strategy("0: nothing", Readahead::None, 162.8),
    strategy("1: every page", Readahead::EveryPage, 152.9),
    strategy("2: every second window", Readahead::Window, 105.2),
    strategy("3: two windows", Readahead::DoubleWindow, 152.3),
];

/// The strategy that won, with the reads of this project.
pub const WINDOW: Run = ours("pread, window", Some(IoMethod::Pread), Readahead::Window);

/// What this project does by itself.
pub const AUTO: Run = ours("auto", None, Readahead::Auto);

/// The same table, read as this project can.
pub const OURS: [Run; 4] = [
    WINDOW,
    AUTO,
    ours("worker", Some(IoMethod::Worker), Readahead::Auto),
    ours("io_uring", Some(IoMethod::IoUring), Readahead::Auto),
];

const fn strategy(name: &'static str, readahead: Readahead, measured: f64) -> Run {
    let measured = Some(measured);
    Run { name, method: Some(IoMethod::Pread), readahead, io_combine_limit: 1, measured }
}

const fn ours(name: &'static str, method: Option<IoMethod>, readahead: Readahead) -> Run {
    Run { name, method, readahead, io_combine_limit: 16, measured: None }
}

/// What a run took.
#[derive(Debug, Clone)]
pub struct ScanTiming {
    /// Virtual seconds.
    pub seconds: f64,
    /// What each disk did.
    pub drives: Vec<DriveCount>,
}

/// Two disks of 2008, mirrored by `md` of Linux 2.6.30.
pub fn mirror() -> VolumeModel {
    let drive = DriveSheet::HardDisk(HardDiskSheet::sata_2008());
    VolumeModel::Mirror { drive, count: 2, balance: Balance::Linux26 }
}

/// Scans a cold table of so many blocks.
///
/// # Errors
/// When a block cannot be read, which nothing here causes.
pub fn scan(
    volume: VolumeModel,
    kernel: KernelSettings,
    blocks: u32,
    run: &Run,
) -> Result<ScanTiming, pagemill_io::Error> {
    let disk = SimulatedDisk::new(volume, kernel);
    let path = Path::new("/data/base/1/16384");
    disk.add_relation(path, blocks, false);
    let settings = ReadSettings {
        io_method: run.method,
        readahead: run.readahead,
        may_map: false,
        ..ReadSettings::default()
    };
    let storage = Storage::with_settings(Arc::new(disk.clone()), settings).untimed();
    let Some(files) = ForkFiles::open(&storage, path, Fork::Main)? else {
        return Ok(ScanTiming { seconds: 0.0, drives: Vec::new() });
    };
    let options = ReadStreamOptions {
        io_combine_limit: run.io_combine_limit,
        ..ReadStreamOptions::default()
    };
    let begin = storage.now();
    let mut stream = ReadStream::new(&files, (0..blocks).map(BlockNumber), options);
    while let Some(page) = stream.next() {
        page?;
        disk.spend(PAGE_TIME);
    }
    let seconds = (storage.now() - begin).as_secs_f64();
    Ok(ScanTiming { seconds, drives: disk.drive_counts() })
}
