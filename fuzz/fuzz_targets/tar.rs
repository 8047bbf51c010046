//! An archive of any contents, its checksums made right so that what lies behind them is reached, and the header of a file of an
//! incremental backup.
//!
//! What is listed lies below the root, and can be read to its end.
#![no_main]

use std::path::Path;
use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use pagemill_format::backup::{IncrementalHeader, TAR_BLOCK};
use pagemill_io::{MemoryFiles, Storage, TarFiles};

/// Makes each block's checksum that of a header.
fn seal(archive: &mut [u8]) {
    for block in archive.chunks_exact_mut(TAR_BLOCK).filter(|block| block.iter().any(|&b| b != 0)) {
        block[148..156].fill(b' ');
        block[257..265].copy_from_slice(b"ustar\x0000");
        let sum: u64 = block.iter().map(|&byte| u64::from(byte)).sum();
        block[148..156].copy_from_slice(format!("{sum:07o} ").as_bytes());
    }
}

fuzz_target!(|data: &[u8]| {
    if let Ok(header) = IncrementalHeader::parse(data) {
        assert!(header.next(0).is_none_or(|block| header.position(block).is_some()));
    }
    let mut archive = data.to_vec();
    if data.first().is_some_and(|first| first % 2 == 0) {
        seal(&mut archive);
    }
    let (root, path) = (Path::new("/backup"), Path::new("/backup/base.tar"));
    let mut files = MemoryFiles::new();
    files.insert(path, archive);
    let below = Storage::new(Arc::new(files));
    let mut tar = TarFiles::new(&below, root).expect("the root is there");
    if tar.add(&below, path, Path::new("")).is_ok() {
        let storage = below.over(|_| Arc::new(tar));
        for entry in storage.read_dir(root).expect("the root is there") {
            let path = root.join(entry.name);
            let file = storage.metadata(&path).ok().filter(|found| !found.is_dir);
            if let Some(found) = file {
                let read = storage.read_file(&path, u64::MAX).expect("it lies there");
                assert_eq!(read.len() as u64, found.len);
            }
        }
    }
});
