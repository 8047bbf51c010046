//! What `auto` chooses where nothing is cached, on a place whose kernel reads far ahead: a mapping, once a stretch was read
//! without gaps, and reads before that. The files are made up, so that the machine the tests run on does not matter.

use super::*;
use pagemill_format::{BLOCK_SIZE, Fork};
use pagemill_io::{DirEntry, File, FileSystem, Metadata, ReadSettings, Storage};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Sparse files whose kernel reads far ahead; of the page cache nothing is known.
#[derive(Debug)]
struct FarReading {
    len: u64,
}

impl FileSystem for FarReading {
    fn open(&self, _: &Path, _: Caching) -> io::Result<Box<dyn File>> {
        Ok(Box::new(Zeros(self.len)))
    }

    fn read_dir(&self, _: &Path) -> io::Result<Vec<DirEntry>> {
        Ok(vec![DirEntry { name: "1".into() }])
    }

    fn metadata(&self, _: &Path) -> io::Result<Metadata> {
        Ok(Metadata { len: self.len, is_dir: false })
    }

    fn place(&self, _: &Path) -> Place {
        Place { reads_ahead_far: true, ..Place::default() }
    }
}

#[derive(Debug)]
struct Zeros(u64);

impl File for Zeros {
    fn read_at(&self, buf: &mut [u8], _: u64) -> io::Result<usize> {
        buf.fill(0);
        Ok(buf.len())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0)
    }
}

/// What is chosen for each of the blocks, read one by one.
fn methods(may_map: bool, order: &[u32]) -> Vec<IoMethod> {
    let files = FarReading { len: 8 * u64::from(STRETCH) * BLOCK_SIZE as u64 };
    let settings = ReadSettings { io_method: None, may_map, ..ReadSettings::default() };
    let storage = Storage::with_settings(Arc::new(files), settings);
    let files = ForkFiles::open(&storage, Path::new("/1"), Fork::Main).unwrap().unwrap();
    let mut choice = MethodChoice::new(&files);
    let mut chosen = Vec::new();
    for (place, block) in order.iter().enumerate() {
        let then = order.get(place + 1).copied().map(BlockNumber);
        let MethodChoice::Auto(auto) = &mut choice else { panic!("nobody asked for a method") };
        chosen.push(auto.method_for(BlockNumber(*block), then, &files));
        choice.begun(BlockNumber(*block), 1);
    }
    chosen
}

#[test]
fn what_is_not_cached_is_mapped_after_a_stretch_without_gaps() {
    let order: Vec<u32> = (0..3 * STRETCH).collect();
    let chosen = methods(true, &order);
    let first = STRETCH as usize;
    assert_eq!(chosen[..first], vec![IoMethod::Pread; first]);
    assert_eq!(chosen[first..], vec![IoMethod::Mmap; 2 * first]);
    assert!(methods(false, &order).iter().all(|method| *method == IoMethod::Pread));
}

/// A gap now and then is not reading here and there; a mapping waits all the same.
#[test]
fn what_is_not_cached_is_read_where_there_are_gaps() {
    let order: Vec<u32> = (0..6 * STRETCH).filter(|block| block % 64 != 1).collect();
    assert!(methods(true, &order).iter().all(|method| *method == IoMethod::Pread));
}
