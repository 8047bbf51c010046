//! The read stream against reading block by block: any order, any method and strategy, any volume, any
//! faults, with reads that come back in the order of the device.

use std::path::Path;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use pagemill_format::{BLOCK_SIZE, BlockNumber, Fork};
use pagemill_io::{Caching, ForkFiles, IoMethod, ReadSettings, Readahead, Storage};
use pagemill_sim::seed::{replay_command, seed_or};
use pagemill_sim::{
    Balance, CloudSheet, DriveSheet, Faults, HardDiskSheet, KernelSettings, NvmeSheet,
    SimulatedDisk, VolumeModel,
};
use pagemill_stream::{ReadStream, ReadStreamOptions, Run};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

const RELATION: &str = "/data/base/5/16384";
const BLOCKS: u32 = 600;

fn orders() -> impl Strategy<Value = Vec<u32>> {
    let run = (0..BLOCKS + 5, 1_u32..60, any::<bool>()).prop_map(|(at, len, down)| {
        let run = at..at + len;
        if down { run.rev().collect() } else { run.collect::<Vec<_>>() }
    });
    prop::collection::vec(run, 0..15).prop_map(|runs| runs.concat())
}

fn volumes() -> impl Strategy<Value = VolumeModel> {
    let disk = DriveSheet::HardDisk(HardDiskSheet::sata_2008());
    prop::sample::select(vec![
        VolumeModel::One(disk),
        VolumeModel::One(DriveSheet::Nvme(NvmeSheet::common())),
        VolumeModel::One(DriveSheet::Cloud(CloudSheet::general_purpose())),
        VolumeModel::Mirror { drive: disk, count: 2, balance: Balance::Linux26 },
        VolumeModel::Mirror { drive: disk, count: 3, balance: Balance::Linux5 },
        VolumeModel::Mirror { drive: disk, count: 2, balance: Balance::ByThread },
        VolumeModel::Stripe { drive: disk, count: 3, chunk: 4096 },
    ])
}

fn kernels() -> impl Strategy<Value = KernelSettings> {
    let kernel =
        prop::sample::select(vec![KernelSettings::linux_2_6_30(), KernelSettings::linux_6()]);
    (
        kernel,
        prop::sample::select(vec![0, 4096, 32 << 10, 128 << 10, 1 << 20]),
        1_usize..200,
        any::<bool>(),
    )
        .prop_map(|(kernel, read_ahead, nr_requests, small)| KernelSettings {
            read_ahead,
            nr_requests,
            // 4 MB: the smallest cache there is.
            memory: if small { 0 } else { kernel.memory },
            ..kernel
        })
}

fn settings() -> impl Strategy<Value = ReadSettings> {
    let methods = vec![
        None,
        Some(IoMethod::Seek),
        Some(IoMethod::Pread),
        Some(IoMethod::Preadv),
        Some(IoMethod::Worker),
        Some(IoMethod::IoUring),
    ];
    let readahead = vec![
        Readahead::None,
        Readahead::EveryPage,
        Readahead::Window,
        Readahead::DoubleWindow,
        Readahead::Auto,
    ];
    let choices = (prop::sample::select(methods), prop::sample::select(readahead));
    (choices, 1_u32..200, 1_u32..40, any::<bool>()).prop_map(|(choices, distance, most, direct)| {
        ReadSettings {
            io_method: choices.0,
            readahead: choices.1,
            readahead_distance: distance,
            effective_io_concurrency: Some(most),
            may_map: false,
            caching: if direct { Caching::Direct } else { Caching::Buffered },
            max_open_files: 1,
            ..ReadSettings::default()
        }
    })
}

/// Another one in each run, unless the environment tells it.
static SEED: LazyLock<u64> = LazyLock::new(|| {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    seed_or(now.as_nanos() as u64)
});

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 400,
        rng_seed: RngSeed::Fixed(*SEED),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_stream_yields_what_reading_block_by_block_would(
        order in orders(),
        (volume, kernel, settings) in (volumes(), kernels(), settings()),
        combine in 1_u32..=128,
        ramp_up: bool,
        by_run in prop::collection::vec(any::<bool>(), 1..5),
        bad in prop::collection::vec(0..BLOCKS, 0..4),
        (seed, of_a_thousand) in (any::<u64>(), 0_u64..400),
        page_us in 0_u64..200,
        (cached, may_map) in any::<(bool, bool)>(),
    ) {
        let path = Path::new(RELATION);
        let disk = SimulatedDisk::new(volume, kernel);
        disk.add_relation(path, BLOCKS, true);
        let mut faults = Faults::by_chance(seed, of_a_thousand);
        for block in &bad {
            let at = u64::from(*block) * BLOCK_SIZE as u64;
            faults = faults.and_unreadable(path, at + 100..at + 101);
        }
        disk.set_faults(faults);
        if cached {
            disk.cache_file(path);
        }
        let settings = ReadSettings { may_map, ..settings };
        let storage = Storage::with_settings(Arc::new(disk.clone()), settings);
        let files = ForkFiles::open(&storage, path, Fork::Main).unwrap().unwrap();
        let options = ReadStreamOptions { io_combine_limit: combine, ramp_up, ..ReadStreamOptions::default() };
        let mut stream = ReadStream::new(&files, order.iter().copied().map(BlockNumber), options);
        let mut found: Vec<Result<(u32, u32), u32>> = Vec::new();
        let stamp = |page: &[u8; BLOCK_SIZE]| u32::from_le_bytes(*page.first_chunk().unwrap());
        for by_run in by_run.iter().copied().cycle() {
            let before = found.len();
            if by_run {
                match stream.next_run() {
                    Some(Ok(Run { first, pages, .. })) => {
                        found.extend((first.0..).zip(pages).map(|(block, page)| Ok((block, stamp(page)))));
                    }
                    Some(Err(error)) => found.push(Err(error.block().unwrap().0)),
                    None => break,
                }
            } else {
                match stream.next() {
                    Some(Ok((block, page))) => found.push(Ok((block.0, stamp(page)))),
                    Some(Err(error)) => found.push(Err(error.block().unwrap().0)),
                    None => break,
                }
            }
            disk.spend(Duration::from_micros(page_us) * (found.len() - before) as u32);
        }
        let expected: Vec<_> = order
            .iter()
            .map(|&n| if n >= BLOCKS || bad.contains(&n) { Err(n) } else { Ok((n, n)) })
            .collect();
        prop_assert_eq!(found, expected, "repeat: {}", replay_command("pagemill-sim", "a_stream_yields", *SEED));
    }
}
