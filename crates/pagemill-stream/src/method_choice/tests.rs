//! What `auto` chooses where nothing is cached, on a place whose kernel reads far ahead: a mapping, once a stretch was read
//! without gaps, and reads before that; and past a page cache that cannot hold it what the kernel does not read ahead. The
//! files are made up, so that the machine the tests run on does not matter.

use super::*;
use pagemill_format::{BLOCK_SIZE, Fork};
use pagemill_io::{
    Capabilities, DirEntry, File, FileCapabilities, FileSystem, Metadata, ReadSettings, Storage,
};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Sparse files whose kernel reads far ahead; of the page cache nothing is known.
#[derive(Debug, Clone, Copy)]
struct FarReading {
    may_map: bool,
    /// Files called `1` can be mapped and given to the ring, as far as they say.
    able: bool,
    distant: bool,
    has_direct: bool,
    cache_bytes: u64,
    /// What making one of the first 4096 blocks takes.
    making: Duration,
}

const LEN: u64 = 8 * STRETCH as u64 * BLOCK_SIZE as u64;
const PLAIN: FarReading = FarReading {
    may_map: true,
    able: true,
    distant: false,
    has_direct: true,
    cache_bytes: LEN,
    making: Duration::ZERO,
};

impl FileSystem for FarReading {
    fn open(&self, path: &Path, caching: Caching) -> io::Result<Box<dyn File>> {
        match caching {
            Caching::Direct if !self.has_direct => Err(io::ErrorKind::Unsupported.into()),
            _ => {
                let able = self.able || !path.ends_with("1");
                Ok(Box::new(Zeros { able, making: self.making }))
            }
        }
    }

    fn read_dir(&self, _: &Path) -> io::Result<Vec<DirEntry>> {
        Ok(vec![DirEntry::named("1"), DirEntry::named("2")])
    }

    fn metadata(&self, _: &Path) -> io::Result<Metadata> {
        Ok(Metadata { len: LEN, is_dir: false })
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { distant: self.distant, ..Capabilities::default() }
    }

    fn place(&self, _: &Path) -> StorageTraits {
        let cache_bytes = self.cache_bytes;
        let read_ahead_kb = Some(LARGE_READ_AHEAD_KB);
        StorageTraits { read_ahead_kb, cache_bytes, ..StorageTraits::default() }
    }
}

#[derive(Debug)]
struct Zeros {
    able: bool,
    making: Duration,
}

impl File for Zeros {
    fn read_at(&self, buf: &mut [u8], _: u64) -> io::Result<usize> {
        buf.fill(0);
        Ok(buf.len())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(LEN)
    }

    fn making_time(&self, range: std::ops::Range<u64>) -> Duration {
        let block = |at: u64| (at / BLOCK_SIZE as u64).min(4096) as u32;
        self.making * (block(range.end) - block(range.start))
    }

    fn capabilities(&self) -> FileCapabilities {
        if self.able { FileCapabilities::ALL } else { FileCapabilities::default() }
    }
}

/// What is chosen for each of the blocks, read one by one, and whether it is read past the page cache.
fn choices(place: FarReading, order: &[u32]) -> Vec<(IoMethod, bool)> {
    let settings =
        ReadSettings { io_method: None, may_map: place.may_map, ..ReadSettings::default() };
    choices_in(&Storage::with_settings(Arc::new(place), settings), "/1", order)
}

fn choices_in(storage: &Storage, path: &str, order: &[u32]) -> Vec<(IoMethod, bool)> {
    let files = ForkFiles::open(storage, Path::new(path), Fork::Main).unwrap().unwrap();
    let mut choice = MethodChoice::new(&files);
    let mut chosen = Vec::new();
    for (at, block) in order.iter().enumerate() {
        let then = order.get(at + 1).copied().map(BlockNumber);
        let MethodChoice::Auto(auto) = &mut choice else { panic!("nobody asked for a method") };
        let method = auto.method_for(BlockNumber(*block), then, &files);
        chosen.push((method, choice.source(&files).caching() == Caching::Direct));
        choice.begun(BlockNumber(*block), 1);
    }
    chosen
}

#[test]
fn what_is_not_cached_is_mapped_after_a_stretch_without_gaps() {
    let order: Vec<u32> = (0..3 * STRETCH).collect();
    let chosen = choices(PLAIN, &order);
    let first = STRETCH as usize;
    assert_eq!(chosen[..first], vec![(IoMethod::Pread, false); first]);
    assert_eq!(chosen[first..], vec![(IoMethod::Mmap, false); 2 * first]);
    let unmapped = choices(FarReading { may_map: false, ..PLAIN }, &order);
    assert_eq!(unmapped, vec![(IoMethod::Pread, false); 3 * first]);
}

/// A gap now and then is not reading in random order; a mapping waits all the same.
#[test]
fn what_is_not_cached_is_read_where_there_are_gaps() {
    let order: Vec<u32> = (0..6 * STRETCH).filter(|block| block % 64 != 1).collect();
    assert!(choices(PLAIN, &order).iter().all(|chosen| *chosen == (IoMethod::Pread, false)));
}

#[test]
fn what_no_cache_can_hold_is_read_past_it_unless_the_kernel_reads_ahead() {
    let little = FarReading { cache_bytes: LEN - 1, ..PLAIN };
    let backward: Vec<u32> = (0..2 * STRETCH).rev().collect();
    let here_and_there: Vec<u32> = (0..STRETCH).map(|n| n * 5 % (2 * STRETCH)).collect();
    for order in [backward, here_and_there] {
        let past = |place| choices(place, &order).iter().filter(|(_, past)| *past).count();
        // The first two blocks of an order do not tell yet that it is random.
        assert!(past(little) >= order.len() - 2, "{} of {}", past(little), order.len());
        assert_eq!(past(PLAIN), 0);
        assert_eq!(past(FarReading { has_direct: false, ..little }), 0);
    }
    let forward: Vec<u32> = (0..3 * STRETCH).collect();
    assert!(choices(little, &forward).iter().all(|(_, past)| !past));
}

/// One file that a redone page lies over made all others be read without mappings, since what it could not do was taken
/// for what the platform could not do.
#[test]
fn a_file_that_can_do_little_changes_nothing_for_the_others() {
    let place = FarReading { able: false, ..PLAIN };
    let storage = Storage::with_settings(Arc::new(place), ReadSettings::default());
    let forward: Vec<u32> = (0..3 * STRETCH).collect();
    let backward: Vec<u32> = (0..2 * STRETCH).rev().collect();
    let is_all = |chosen: &[(IoMethod, bool)], method| chosen.iter().all(|(one, _)| *one == method);
    assert!(is_all(&choices_in(&storage, "/1", &forward), IoMethod::Pread));
    assert!(is_all(&choices_in(&storage, "/1", &backward)[2..], IoMethod::Worker));
    let reasons = MethodUse::of(&storage).reasons();
    assert!(reasons.iter().any(|reason| reason.contains("cannot be mapped")), "{reasons:?}");
    assert!(is_all(&choices_in(&storage, "/2", &forward)[STRETCH as usize..], IoMethod::Mmap));
    assert!(is_all(&choices_in(&storage, "/2", &backward)[2..], IoMethod::IoUring));
}

#[test]
fn where_each_call_takes_long_all_goes_through_a_queue() {
    let place = FarReading { distant: true, ..PLAIN };
    let order: Vec<u32> = (0..2 * STRETCH).collect();
    let expected = vec![(IoMethod::IoUring, false); order.len()];
    assert_eq!(choices(place, &order), expected);
}

#[test]
fn pages_that_take_time_to_make_are_made_by_workers_and_few_of_them_ahead() {
    let order: Vec<u32> = (0..6 * STRETCH).collect();
    let made = 4 * STRETCH as usize;
    let chosen = choices(FarReading { making: Duration::from_micros(20), ..PLAIN }, &order);
    assert_eq!(chosen[..made], vec![(IoMethod::Worker, false); made]);
    assert!(chosen[made..].iter().all(|(method, _)| *method != IoMethod::Worker));
    let little = FarReading { making: WORTH_A_WORKER / 2, ..PLAIN };
    assert!(choices(little, &order).iter().all(|(method, _)| *method != IoMethod::Worker));

    let place = FarReading { making: Duration::from_micros(20), ..PLAIN };
    let storage = Storage::with_settings(Arc::new(place), ReadSettings::default());
    let files = ForkFiles::open(&storage, Path::new("/1"), Fork::Main).unwrap().unwrap();
    let mut choice = MethodChoice::new(&files);
    assert_eq!(choice.most_reads(), usize::MAX);
    if let MethodChoice::Auto(auto) = &mut choice {
        auto.method_for(BlockNumber(0), None, &files);
    }
    assert_eq!(choice.most_reads(), WORKERS);
}
