//! Writing on real file systems, each on a small device of its own: what was written is there by every method, and
//! the end of the space is told before anything depends on it. Where this machine cannot make devices the tests say
//! so loudly.

use std::path::Path;
use std::sync::Arc;

use pagemill_format::{BLOCK_SIZE, BlockNumber, Fork};
use pagemill_io::{
    Caching, Create, ErrorKind, FileExtendMethod, FileExtension, OpenForWrite, Result, Storage,
    WritableFork, WriteMethod,
};
use pagemill_stream::{WriteStream, WriteStreamOptions, create_fork};
use pagemill_testkit::devices::or_skip;
use pagemill_testkit::{FileSystem, Volume};

/// mkfs.xfs wants no less.
const DEVICE_BYTES: u64 = 320 << 20;

fn volume(kind: FileSystem) -> Option<Volume> {
    // Beside the build, since the temporary directory may be memory.
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR"));
    or_skip(kind.name(), Volume::create(kind, dir, DEVICE_BYTES)).unwrap()
}

fn new_fork(volume: &Volume, name: &str, caching: Caching) -> Result<Arc<WritableFork>> {
    let how = OpenForWrite { create: Create::New, caching };
    WritableFork::open(&Storage::real(), &volume.path().join(name), Fork::Main, how).map(Arc::new)
}

fn page(block: u32) -> [u8; BLOCK_SIZE] {
    // Not to be compressed to nothing.
    let mut state = block | 1;
    let mut page = [0; BLOCK_SIZE];
    for word in page.chunks_mut(4) {
        state = state.wrapping_mul(0x9E37_79B1).rotate_left(13) ^ block;
        word.copy_from_slice(&state.to_le_bytes());
    }
    page
}

fn fill(space: Arc<FileExtension>, method: Option<WriteMethod>, blocks: u32) -> Result<()> {
    let options = WriteStreamOptions { io_method: method, ..WriteStreamOptions::default() };
    let mut stream = WriteStream::new(space, options, None)?;
    for block in 0..blocks {
        stream.write_page(BlockNumber(block), &page(block))?;
    }
    stream.finish()
}

#[test]
fn what_is_written_is_there_on_every_file_system_by_every_method() {
    for kind in FileSystem::ALL {
        let Some(volume) = volume(kind) else { continue };
        let methods = WriteMethod::ALL.map(Some).into_iter().chain([None]);
        let ways =
            methods.flat_map(|method| [Caching::Buffered, Caching::Direct].map(|c| (method, c)));
        // A mapping goes through the page cache.
        let ways = ways.filter(|way| *way != (Some(WriteMethod::Mmap), Caching::Direct));
        for (method, caching) in ways {
            let name = format!("{} {method:?} {caching:?}", kind.name());
            let outcome = new_fork(&volume, "16384", caching)
                .and_then(|fork| fill(Arc::new(FileExtension::new(fork, 0, None)), method, 1500));
            match outcome {
                Err(error) if matches!(error.kind(), ErrorKind::Refused(_)) => {
                    println!("SKIPPED: {name}: {error}");
                }
                outcome => {
                    outcome.unwrap();
                    let written = std::fs::read(volume.path().join("16384")).unwrap();
                    let (pages, _) = written.as_chunks::<BLOCK_SIZE>();
                    assert_eq!(pages.len(), 1500, "{name}");
                    assert!((0..).zip(pages).all(|(block, bytes)| *bytes == page(block)), "{name}");
                }
            }
            let _ = std::fs::remove_file(volume.path().join("16384"));
        }
    }
}

#[test]
fn the_end_of_a_devices_space_is_told_when_extending_and_everything_granted_can_be_filled() {
    for kind in [FileSystem::Ext4, FileSystem::Xfs, FileSystem::Btrfs] {
        for method in [None, Some(FileExtendMethod::PosixFallocate)] {
            let Some(volume) = volume(kind) else { continue };
            let fork = new_fork(&volume, "16384", Caching::Buffered).unwrap();
            let space = FileExtension::new(fork.clone(), 0, method);
            let error = loop {
                if let Err(error) = space.extend(100) {
                    break error;
                }
                assert!(u64::from(space.granted()) * 8192 < DEVICE_BYTES, "{}", kind.name());
            };
            assert!(error.is_no_space(), "{}: {error}", kind.name());
            space.cut_back().unwrap();
            let len = std::fs::metadata(volume.path().join("16384")).unwrap().len();
            assert_eq!(len, u64::from(space.granted()) * 8192, "{}", kind.name());
            // btrfs promises nothing; the others hold what they granted.
            if kind != FileSystem::Btrfs {
                let last = space.granted() - 1;
                for block in (0..last).step_by(997).chain([last]) {
                    fork.write_blocks(BlockNumber(block), &page(block)).unwrap();
                }
                fork.sync().unwrap();
            }
            fork.remove_made().unwrap();
            let again = new_fork(&volume, "16385", Caching::Buffered).unwrap();
            FileExtension::new(again, 0, method).extend(1000).unwrap();
        }
    }
}

#[test]
fn a_stream_that_fills_a_device_fails_with_no_space_by_every_method() {
    let Some(volume) = volume(FileSystem::Ext4) else { return };
    for method in WriteMethod::ALL {
        let fork = new_fork(&volume, "16384", Caching::Buffered).unwrap();
        let space = Arc::new(FileExtension::new(fork.clone(), 0, None));
        // Most of the device is taken, so that little is written.
        let taken = new_fork(&volume, "taken", Caching::Buffered).unwrap();
        let rest = FileExtension::new(taken.clone(), 0, None);
        while rest.extend(1000).is_ok() {}
        taken.cut(rest.granted() - 500).unwrap();
        let error = fill(space, Some(method), 100_000).unwrap_err();
        assert!(error.is_no_space(), "{method}: {error}");
        fork.remove_made().unwrap();
        taken.remove_made().unwrap();
    }
}

#[test]
fn compression_is_not_turned_off_by_what_is_chosen() {
    let Some(volume) = volume(FileSystem::BtrfsCompressed) else { return };
    let fork = new_fork(&volume, "16384", Caching::Buffered).unwrap();
    let (method, reason) = FileExtension::new(fork, 0, None).method();
    assert_eq!(method, FileExtendMethod::WriteZeros, "{reason}");
    assert!(reason.contains("compress"), "{reason}");
    let path = volume.path().join("16385");
    let large = create_fork(&Storage::real(), &path, Fork::Main, 1 << 20).unwrap();
    assert_eq!(large.how().caching, Caching::Buffered);
}
