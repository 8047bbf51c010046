//! Prints how long each method takes on each volume in each order, relative to the fastest one, and what `auto`
//! makes of it: the cases where `auto` could do better stand out.
//!
//! `cargo run --release -p pagemill-sim --example methods_compared`

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use pagemill_format::{BlockNumber, Fork};
use pagemill_io::{ForkFiles, IoMethod, ReadSettings, Readahead, Storage};
use pagemill_sim::seed::Random;
use pagemill_sim::{
    Balance, CloudSheet, DriveSheet, HardDiskSheet, KernelSettings, NvmeSheet, SimulatedDisk,
    VolumeModel,
};
use pagemill_stream::{ReadStream, ReadStreamOptions};

const RELATION: &str = "/data/base/5/16384";
const BLOCKS: u32 = 100_000;
const PAGE_TIME: Duration = Duration::from_nanos(700);

const RUNS: [(&str, Option<IoMethod>, Readahead); 7] = [
    ("pread", Some(IoMethod::Pread), Readahead::Auto),
    ("window", Some(IoMethod::Pread), Readahead::Window),
    ("every-page", Some(IoMethod::Pread), Readahead::EveryPage),
    ("seek", Some(IoMethod::Seek), Readahead::Auto),
    ("worker", Some(IoMethod::Worker), Readahead::Auto),
    ("io_uring", Some(IoMethod::IoUring), Readahead::Auto),
    ("auto", None, Readahead::Auto),
];

fn main() -> Result<(), pagemill_io::Error> {
    print!("{:<26}{:<12}{:>9}", "volume", "order", "best");
    RUNS.iter().for_each(|(name, ..)| print!("{name:>11}"));
    println!();
    for (volume_name, volume) in volumes() {
        for (order_name, order) in orders() {
            let times = RUNS.map(|(_, method, readahead)| scan(volume, method, readahead, &order));
            let times = times.into_iter().collect::<Result<Vec<_>, _>>()?;
            let best = times.iter().copied().fold(f64::MAX, f64::min);
            print!("{volume_name:<26}{order_name:<12}{best:>7.3} s");
            times.iter().for_each(|time| print!("{:>11.2}", time / best));
            println!();
        }
    }
    Ok(())
}

fn volumes() -> Vec<(&'static str, VolumeModel)> {
    let disk = DriveSheet::HardDisk(HardDiskSheet {
        media_rate: 150_000_000,
        cache: 64 << 20,
        ..HardDiskSheet::sata_2008()
    });
    let nvme = DriveSheet::Nvme(NvmeSheet::common());
    let cloud = DriveSheet::Cloud(CloudSheet::general_purpose());
    let bought = CloudSheet { iops: 16_000, rate: 1_000_000_000, ..CloudSheet::general_purpose() };
    let mirror = |drive, balance| VolumeModel::Mirror { drive, count: 2, balance };
    vec![
        ("hard disk", VolumeModel::One(disk)),
        ("two hard disks, md", mirror(disk, Balance::Linux5)),
        ("two hard disks, btrfs", mirror(disk, Balance::ByThread)),
        ("stripe of four disks", VolumeModel::Stripe { drive: disk, count: 4, chunk: 512 << 10 }),
        ("nvme", VolumeModel::One(nvme)),
        ("two nvme, btrfs", mirror(nvme, Balance::ByThread)),
        ("cloud, as sold", VolumeModel::One(cloud)),
        ("cloud, more bought", VolumeModel::One(DriveSheet::Cloud(bought))),
    ]
}

fn orders() -> Vec<(&'static str, Vec<u32>)> {
    let mut random = Random::new(1);
    let scattered = (0..2000).map(|_| random.below(u64::from(BLOCKS)) as u32).collect();
    let bitmap = (0..BLOCKS).filter(|_| random.below(100) < 10).collect();
    vec![
        ("sequential", (0..BLOCKS).collect()),
        ("backward", (0..BLOCKS).rev().collect()),
        ("scattered", scattered),
        ("bitmap 10 %", bitmap),
    ]
}

fn scan(
    volume: VolumeModel,
    io_method: Option<IoMethod>,
    readahead: Readahead,
    order: &[u32],
) -> Result<f64, pagemill_io::Error> {
    let disk = SimulatedDisk::new(volume, KernelSettings::linux_6());
    let path = Path::new(RELATION);
    disk.add_relation(path, BLOCKS, false);
    let settings = ReadSettings { io_method, readahead, may_map: false, ..ReadSettings::default() };
    let storage = Storage::with_settings(Arc::new(disk.clone()), settings);
    let Some(files) = ForkFiles::open(&storage, path, Fork::Main)? else { return Ok(0.0) };
    let blocks = order.iter().copied().map(BlockNumber);
    let mut stream = ReadStream::new(&files, blocks, ReadStreamOptions::default());
    let begin = storage.now();
    while let Some(page) = stream.next() {
        page?;
        disk.spend(PAGE_TIME);
    }
    Ok((storage.now() - begin).as_secs_f64())
}
