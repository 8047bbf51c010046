//! Faults at every single call of a scan, and faults by chance: the right page or the right error, for
//! every method, and always an end.
//!
//! A failure prints the command that repeats it; the seed of the runs by chance is in `PAGEMILL_SIM_SEED`.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use pagemill_format::{BLOCK_SIZE, BlockNumber, Fork};
use pagemill_io::{Error, ErrorKind, ForkFiles, IoMethod, ReadSettings, Storage};
use pagemill_sim::seed::{Random, replay_command, seed_or};
use pagemill_sim::{
    CloudSheet, DriveSheet, Fault, Faults, HardDiskSheet, KernelSettings, NvmeSheet, SimulatedDisk,
    VolumeModel,
};
use pagemill_stream::{ReadStream, ReadStreamOptions};

const RELATION: &str = "/data/base/5/16384";
const BLOCKS: u32 = 400;

const METHODS: [Option<IoMethod>; 6] = [
    Some(IoMethod::Seek),
    Some(IoMethod::Pread),
    Some(IoMethod::Preadv),
    Some(IoMethod::Worker),
    Some(IoMethod::IoUring),
    None,
];

const FAULTS: [Fault; 5] = [
    Fault::Short(1),
    Fault::Short(5000),
    Fault::Interrupted,
    Fault::Failed,
    Fault::Slow(Duration::from_millis(100)),
];

/// What repeats the runs that have no seed.
const REPEAT: &str = "cargo test -p pagemill-sim --test faults a_fault_at_any_call";

/// Runs of neighbours up and down, and single blocks: 200 in all.
fn order() -> Vec<u32> {
    let mut random = Random::new(4);
    let mut order: Vec<u32> = (0..60).chain((100..150).rev()).collect();
    order.extend((0..40).map(|_| random.below(u64::from(BLOCKS)) as u32));
    order.extend(300..350);
    order
}

/// What came out of a scan: each block, or why not.
type ScanResult = Result<Vec<Result<u32, (u32, bool)>>, Error>;

fn is_io_error(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Io(error) if error.raw_os_error() == Some(5))
        || error.to_string().contains("Input/output error")
}

fn scan(disk: &SimulatedDisk, method: Option<IoMethod>) -> ScanResult {
    let settings = ReadSettings {
        io_method: method,
        may_map: false,
        effective_io_concurrency: Some(6),
        ..ReadSettings::default()
    };
    let storage = Storage::with_settings(Arc::new(disk.clone()), settings);
    let opened = ForkFiles::open(&storage, Path::new(RELATION), Fork::Main)?;
    let files = opened.expect("the relation is there");
    let blocks = order().into_iter().map(BlockNumber);
    let mut stream = ReadStream::new(&files, blocks, ReadStreamOptions::default());
    let mut all = Vec::new();
    while let Some(next) = stream.next() {
        all.push(match next {
            Ok((block, page)) => {
                let stamp = block.0.to_le_bytes();
                assert_eq!((&page[..4], &page[BLOCK_SIZE - 4..]), (&stamp[..], &stamp[..]));
                Ok(block.0)
            }
            Err(error) => Err((error.block().expect("names the block").0, is_io_error(&error))),
        });
    }
    Ok(all)
}

fn new_disk(volume: VolumeModel) -> SimulatedDisk {
    let disk = SimulatedDisk::new(volume, KernelSettings::linux_6());
    disk.add_relation(Path::new(RELATION), BLOCKS, true);
    disk
}

fn nvme() -> VolumeModel {
    VolumeModel::One(DriveSheet::Nvme(NvmeSheet::common()))
}

/// Checks what a scan with one fault gave.
fn check(outcome: &ScanResult, fault: Fault) -> Result<(), String> {
    let harmless = !matches!(fault, Fault::Failed);
    let blocks = match outcome {
        Ok(blocks) => blocks,
        Err(error) if !harmless && is_io_error(error) => return Ok(()),
        Err(error) => return Err(format!("the scan did not begin: {error}")),
    };
    let order = order();
    if blocks.len() != order.len() {
        return Err(format!("{} blocks, not {}", blocks.len(), order.len()));
    }
    for (place, (came, wanted)) in blocks.iter().zip(&order).enumerate() {
        match came {
            Ok(block) if block == wanted => {}
            Err((block, true)) if block == wanted && !harmless => {}
            other => return Err(format!("at place {place}: {other:?} for block {wanted}")),
        }
    }
    Ok(())
}

/// Fails if the work does not end, instead of waiting for it.
fn within_a_minute(what: &str, work: impl FnOnce() + Send + 'static) {
    let (sender, receiver) = channel();
    let thread = std::thread::spawn(move || {
        work();
        let _ = sender.send(());
    });
    match receiver.recv_timeout(Duration::from_secs(60)) {
        Err(RecvTimeoutError::Timeout) => panic!("{what} does not end"),
        _ => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
    }
}

#[test]
fn a_fault_at_any_call_of_a_scan_gives_the_right_blocks_or_the_right_error() {
    for method in METHODS {
        within_a_minute(&format!("{method:?}"), move || {
            let whole = new_disk(nvme());
            check(&scan(&whole, method), Fault::Short(1)).unwrap();
            let calls = whole.calls();
            assert!(calls > 10, "{calls}");
            for (fault, call) in FAULTS.iter().flat_map(|f| (1..=calls).map(move |n| (*f, n))) {
                let disk = new_disk(nvme());
                disk.set_faults(Faults::at(call, fault));
                let found = check(&scan(&disk, method), fault);
                found.unwrap_or_else(|why| {
                    panic!("{method:?}, {fault:?} at call {call}: {why}\nrepeat: {REPEAT}")
                });
            }
        });
    }
}

#[test]
fn a_block_that_cannot_be_read_is_one_error_and_no_more() {
    let bad = 17..18_u32;
    let range = u64::from(bad.start) * 8192 + 4096..u64::from(bad.end) * 8192;
    for method in METHODS {
        let disk = new_disk(nvme());
        disk.set_faults(Faults::none().and_unreadable(Path::new(RELATION), range.clone()));
        let found = scan(&disk, method).unwrap();
        for (came, wanted) in found.iter().zip(order()) {
            let expected = if wanted == 17 { Err((17, true)) } else { Ok(wanted) };
            assert_eq!(*came, expected, "{method:?}");
        }
    }
}

#[test]
fn faults_by_chance_on_every_volume_change_nothing() {
    let first = seed_or(1);
    let volumes = [
        nvme(),
        VolumeModel::One(DriveSheet::HardDisk(HardDiskSheet::sata_2008())),
        VolumeModel::One(DriveSheet::Cloud(CloudSheet::general_purpose())),
        pagemill_sim::seq_scan_2009::mirror(),
    ];
    for seed in first..first + 20 {
        for (volume, method) in volumes.iter().flat_map(|v| METHODS.map(|method| (*v, method))) {
            let replay = replay_command("pagemill-sim", "faults_by_chance", seed);
            within_a_minute(&replay.clone(), move || {
                let disk = new_disk(volume);
                disk.set_faults(Faults::by_chance(seed, 200));
                let found = check(&scan(&disk, method), Fault::Interrupted);
                found.unwrap_or_else(|why| panic!("{method:?}: {why}\nrepeat: {replay}"));
            });
        }
    }
}
