//! The read stream on the simulated disk: every method on every volume in every order gives the right
//! blocks, and takes the time that the device allows.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use pagemill_format::{BLOCK_SIZE, BlockNumber, Fork};
use pagemill_io::{CountersSnapshot, ForkFiles, IoMethod, ReadSettings, Readahead, Storage};
use pagemill_sim::seed::Random;
use pagemill_sim::{
    Balance, CloudSheet, DriveSheet, HardDiskSheet, KernelSettings, NvmeSheet, SimulatedDisk,
    VolumeModel,
};
use pagemill_stream::{ReadStream, ReadStreamOptions};

const RELATION: &str = "/data/base/5/16384";

const HARD_DISK: DriveSheet = DriveSheet::HardDisk(HardDiskSheet {
    capacity: 1_000_000_000_000,
    rpm: 7200,
    media_rate: 150_000_000,
    track_seek: Duration::from_micros(1000),
    average_seek: Duration::from_micros(8500),
    full_seek: Duration::from_micros(18_000),
    command_time: Duration::from_micros(50),
    interface_rate: 550_000_000,
    cache: 64 << 20,
    segments: 32,
    queue_depth: 31,
});

fn hard_disk() -> VolumeModel {
    VolumeModel::One(HARD_DISK)
}

fn nvme() -> VolumeModel {
    VolumeModel::One(DriveSheet::Nvme(NvmeSheet::common()))
}

/// A volume bought with enough reads a second to be bound by its latency.
fn fast_cloud() -> VolumeModel {
    let bought = CloudSheet { iops: 40_000, rate: 1_000_000_000, ..CloudSheet::general_purpose() };
    VolumeModel::One(DriveSheet::Cloud(bought))
}

fn volumes() -> [VolumeModel; 7] {
    [
        hard_disk(),
        VolumeModel::Mirror { drive: HARD_DISK, count: 2, balance: Balance::Linux26 },
        VolumeModel::Mirror { drive: HARD_DISK, count: 2, balance: Balance::Linux5 },
        VolumeModel::Mirror { drive: HARD_DISK, count: 2, balance: Balance::ByThread },
        VolumeModel::Stripe { drive: HARD_DISK, count: 3, chunk: 64 << 10 },
        nvme(),
        VolumeModel::One(DriveSheet::Cloud(CloudSheet::general_purpose())),
    ]
}

const METHODS: [Option<IoMethod>; 6] = [
    Some(IoMethod::Seek),
    Some(IoMethod::Pread),
    Some(IoMethod::Preadv),
    Some(IoMethod::Worker),
    Some(IoMethod::IoUring),
    None,
];

fn shuffled(blocks: u32, seed: u64) -> Vec<u32> {
    let mut random = Random::new(seed);
    let mut order: Vec<u32> = (0..blocks).collect();
    for last in (1..order.len()).rev() {
        order.swap(last, random.below(last as u64 + 1) as usize);
    }
    order
}

struct Scan {
    disk: SimulatedDisk,
    took: Duration,
    counted: CountersSnapshot,
    stamps: Vec<u32>,
}

fn settings(io_method: Option<IoMethod>) -> ReadSettings {
    ReadSettings { io_method, may_map: false, ..ReadSettings::default() }
}

fn new_disk(volume: VolumeModel, blocks: u32) -> SimulatedDisk {
    let disk = SimulatedDisk::new(volume, KernelSettings::linux_6());
    disk.add_relation(Path::new(RELATION), blocks, true);
    disk
}

fn scan(disk: SimulatedDisk, settings: ReadSettings, order: &[u32], page: Duration) -> Scan {
    let storage = Storage::with_settings(Arc::new(disk.clone()), settings);
    let files = ForkFiles::open(&storage, Path::new(RELATION), Fork::Main).unwrap().unwrap();
    let blocks = order.iter().copied().map(BlockNumber);
    let mut stream = ReadStream::new(&files, blocks, ReadStreamOptions::default());
    let (before, begin) = (storage.counters().snapshot(), storage.now());
    let mut stamps = Vec::with_capacity(order.len());
    while let Some(next) = stream.next() {
        let (block, bytes) = next.unwrap();
        let stamp = u32::from_le_bytes(*bytes.first_chunk().unwrap());
        assert_eq!(stamp, block.0);
        assert_eq!(bytes[..4], bytes[BLOCK_SIZE - 4..]);
        stamps.push(stamp);
        disk.spend(page);
    }
    let took = storage.now() - begin;
    drop(stream);
    let counted = storage.counters().snapshot().since(&before);
    Scan { disk, took, counted, stamps }
}

fn cold(volume: VolumeModel, method: Option<IoMethod>, order: &[u32]) -> Scan {
    let blocks = order.iter().max().unwrap() + 1;
    scan(new_disk(volume, blocks), settings(method), order, Duration::from_micros(1))
}

fn with_depth(volume: VolumeModel, method: IoMethod, order: &[u32], depth: u32) -> Scan {
    let blocks = order.iter().max().unwrap() + 1;
    let settings = ReadSettings { effective_io_concurrency: Some(depth), ..settings(Some(method)) };
    scan(new_disk(volume, blocks), settings, order, Duration::from_micros(1))
}

#[test]
fn every_method_on_every_volume_gives_the_blocks_of_every_order() {
    let sequential: Vec<u32> = (0..700).collect();
    let backward: Vec<u32> = (0..700).rev().collect();
    let wrapped: Vec<u32> = (333..700).chain(0..333).collect();
    let random = shuffled(700, 11);
    for volume in volumes() {
        for method in METHODS {
            for order in [&sequential, &backward, &wrapped, &random] {
                assert_eq!(cold(volume, method, order).stamps, *order, "{method:?} {volume:?}");
            }
        }
    }
}

#[test]
fn the_same_run_takes_the_same_time() {
    let order = shuffled(500, 3);
    for method in METHODS {
        let run = || {
            let scan = cold(fast_cloud(), method, &order);
            (scan.took, scan.disk.calls(), scan.disk.drive_counts())
        };
        assert_eq!(run(), run());
    }
}

#[test]
fn a_sequential_scan_of_a_hard_disk_gets_the_media_rate_by_every_method() {
    let order: Vec<u32> = (0..20_000).collect();
    let ideal = 20_000.0 * BLOCK_SIZE as f64 / 150_000_000.0;
    for method in METHODS {
        let took = cold(hard_disk(), method, &order).took.as_secs_f64();
        assert!((ideal..ideal * 1.03).contains(&took), "{method:?}: {took} s, ideal {ideal} s");
    }
}

#[test]
fn a_stripe_reads_with_all_its_disks_where_enough_is_read_ahead() {
    let stripe = VolumeModel::Stripe { drive: HARD_DISK, count: 3, chunk: 64 << 10 };
    let order: Vec<u32> = (0..20_000).collect();
    let one = cold(hard_disk(), Some(IoMethod::IoUring), &order).took.as_secs_f64();
    let three = cold(stripe, Some(IoMethod::IoUring), &order).took.as_secs_f64();
    assert!(one / three > 2.5, "{one} s, {three} s");
}

#[test]
fn random_reads_with_look_ahead_are_as_fast_as_the_depth_allows() {
    let order: Vec<u32> = shuffled(20_000, 5).into_iter().take(3000).collect();
    // Reads of 8 kB: 80 µs and the bus, or 1 ms on average.
    for (volume, latency) in [(nvme(), 83e-6), (fast_cloud(), 1e-3)] {
        let alone = with_depth(volume, IoMethod::Pread, &order, 1).took.as_secs_f64();
        for (method, depth) in
            [(IoMethod::IoUring, 16), (IoMethod::Worker, 4), (IoMethod::Pread, 16)]
        {
            let ideal = 3000.0 * latency / f64::from(depth);
            let took = with_depth(volume, method, &order, depth).took.as_secs_f64();
            println!("{method} {depth}: {took:.4} s, ideal {ideal:.4} s, alone {alone:.4} s");
            assert!(took < ideal * 1.5, "{method}: {took} s, ideal {ideal} s");
            assert!(alone > took * f64::from(depth) * 0.6, "{method}: {took} s, alone {alone} s");
        }
    }
}

#[test]
fn a_volume_that_sells_few_reads_is_used_up() {
    let order: Vec<u32> = shuffled(20_000, 6).into_iter().take(3000).collect();
    let volume = VolumeModel::One(DriveSheet::Cloud(CloudSheet::general_purpose()));
    let took = with_depth(volume, IoMethod::IoUring, &order, 16).took.as_secs_f64();
    assert!((0.9..1.1).contains(&took), "{took} s for 3000 reads at 3000 a second");
}

#[test]
fn auto_reads_here_and_there_about_as_fast_as_the_best_method() {
    let order: Vec<u32> = shuffled(20_000, 7).into_iter().take(3000).collect();
    for volume in [nvme(), fast_cloud(), hard_disk()] {
        let took = |method| cold(volume, method, &order).took.as_secs_f64();
        let methods = [IoMethod::Pread, IoMethod::Worker, IoMethod::IoUring];
        let best = methods.map(|method| took(Some(method))).into_iter().fold(f64::MAX, f64::min);
        let auto = took(None);
        assert!(auto < best * 1.15, "{auto} s, best {best} s on {volume:?}");
    }
}

#[test]
fn a_hard_disk_serves_scattered_reads_sooner_when_it_knows_several() {
    let order: Vec<u32> = shuffled(100_000, 8).into_iter().take(500).collect();
    let alone = with_depth(hard_disk(), IoMethod::IoUring, &order, 1).took.as_secs_f64();
    let many = with_depth(hard_disk(), IoMethod::IoUring, &order, 16).took.as_secs_f64();
    assert!(alone / many > 1.3, "{alone} s, {many} s");
}

#[test]
fn sequential_runs_are_not_announced_in_either_direction() {
    let forward: Vec<u32> = (0..2000).collect();
    let backward: Vec<u32> = (0..2000).rev().collect();
    for method in [IoMethod::Seek, IoMethod::Pread, IoMethod::Preadv] {
        for order in [&forward, &backward] {
            let counted = cold(hard_disk(), Some(method), order).counted;
            assert_eq!(counted.advice_calls, 0, "{method}");
        }
    }
}

#[test]
fn look_ahead_shrinks_where_everything_is_cached() {
    let order = shuffled(6000, 9);
    let announced = |cached: bool| {
        let disk = new_disk(nvme(), 6000);
        if cached {
            disk.cache_file(Path::new(RELATION));
        }
        let scan = scan(disk, settings(Some(IoMethod::Pread)), &order, Duration::from_micros(1));
        scan.counted.advice_calls
    };
    let (cold, cached) = (announced(false), announced(true));
    assert!(cold > 5000, "{cold}");
    assert!(cached < 600, "{cached}: the pin limit, and one block less with each read");
}

#[test]
fn direct_reads_pass_the_cache_by() {
    let order: Vec<u32> = (0..4000).collect();
    let direct =
        ReadSettings { caching: pagemill_io::Caching::Direct, ..settings(Some(IoMethod::IoUring)) };
    let disk = new_disk(nvme(), 4000);
    let first = scan(disk.clone(), direct, &order, Duration::ZERO);
    let second = scan(disk, direct, &order, Duration::ZERO);
    assert_eq!(first.stamps, order);
    let ratio = second.took.as_secs_f64() / first.took.as_secs_f64();
    assert!((0.9..1.1).contains(&ratio), "{ratio}");
}

/// A file system that maps no files is no reason for an error where nobody asked for a mapping.
#[test]
fn auto_goes_on_where_cached_files_cannot_be_mapped() {
    for order in [shuffled(3000, 2), (0..3000).collect(), (0..3000).rev().collect()] {
        let disk = new_disk(nvme(), 3000);
        disk.cache_file(Path::new(RELATION));
        let may_map = ReadSettings { may_map: true, ..settings(None) };
        let scan = scan(disk, may_map, &order, Duration::ZERO);
        assert_eq!(scan.stamps, order);
        let maps = scan.counted.map_calls;
        assert!(
            (1..50).contains(&maps),
            "asked once in every look-ahead, and then no more: {maps}"
        );
    }
}

/// Mirrors chosen by the thread, on drives without an arm: several readers use both.
#[test]
fn auto_reads_from_both_of_two_mirrors_chosen_by_thread() {
    let slow = NvmeSheet { rate: 500_000_000, ..NvmeSheet::common() };
    let balance = Balance::ByThread;
    let mirror = VolumeModel::Mirror { drive: DriveSheet::Nvme(slow), count: 2, balance };
    let order: Vec<u32> = (0..60_000).collect();
    let alone = cold(mirror, Some(IoMethod::Pread), &order).took.as_secs_f64();
    let auto = cold(mirror, None, &order).took.as_secs_f64();
    assert!(alone / auto > 1.8, "{alone} s, {auto} s");
}

/// On disks that turn, what one mirror leaves to the other passes under its head all the same:
/// several readers of neighbouring runs gain nothing, and two windows far apart do.
#[test]
fn mirrors_that_turn_want_windows_and_not_readers() {
    let order: Vec<u32> = (0..60_000).collect();
    for balance in [Balance::Linux26, Balance::Linux5] {
        let mirror = VolumeModel::Mirror { drive: HARD_DISK, count: 2, balance };
        let run = |io_method, readahead| {
            let settings = ReadSettings { readahead, ..settings(Some(io_method)) };
            scan(new_disk(mirror, 60_000), settings, &order, Duration::from_micros(1)).took
        };
        let alone = run(IoMethod::Pread, Readahead::None).as_secs_f64();
        let workers = run(IoMethod::Worker, Readahead::Auto).as_secs_f64();
        let windows = run(IoMethod::Pread, Readahead::Window).as_secs_f64();
        assert!(workers > alone * 0.95, "{balance:?}: {alone} s, {workers} s");
        assert!(windows < alone * 0.7, "{balance:?}: {alone} s, {windows} s");
    }
}

/// `auto` begins on mirrors with workers. Once it sees that blocks are wanted in random order, the ring takes
/// over, although reads of the workers are in flight all the time.
#[test]
fn auto_changes_its_queue_while_reads_are_in_flight() {
    let drive = DriveSheet::Nvme(NvmeSheet::common());
    let mirror = VolumeModel::Mirror { drive, count: 2, balance: Balance::ByThread };
    let order: Vec<u32> = shuffled(100_000, 13).into_iter().take(3000).collect();
    let ring = cold(mirror, Some(IoMethod::IoUring), &order).took.as_secs_f64();
    let auto = cold(mirror, None, &order).took.as_secs_f64();
    assert!(auto < ring * 1.2, "auto {auto} s, io_uring {ring} s");
}
