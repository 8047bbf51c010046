//! The simulator of power cuts, proved on small programs: those that sync enough survive every cut, those that
//! forget a sync are caught, and what a write stream finished is there whatever the loss.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pagemill_format::{BLOCK_SIZE, BlockNumber, Fork};
use pagemill_io::{
    Create, ErrorKind, FileExtension, OpenForWrite, Result, Storage, WritableFork, WriteMethod,
};
use pagemill_sim::{Loss, PowerCutFileSystem, WriteFault};
use pagemill_stream::{WriteStream, WriteStreamOptions};
use rustix::io::Errno;

const LOSSES: [Loss; 8] = [
    Loss::All,
    Loss::None,
    Loss::Torn(1),
    Loss::Torn(2),
    Loss::Torn(3),
    Loss::Ordered(1),
    Loss::Ordered(2),
    Loss::Ordered(3),
];

/// A directory that is recorded, and room for its images.
struct Bench {
    room: tempfile::TempDir,
    files: PowerCutFileSystem,
    storage: Storage,
}

impl Bench {
    /// Begins with these files.
    fn with(files: &[(&str, &[u8])]) -> Self {
        let room = tempfile::tempdir().unwrap();
        let directory = room.path().join("data");
        std::fs::create_dir(&directory).unwrap();
        for (name, contents) in files {
            std::fs::write(directory.join(name), contents).unwrap();
        }
        let files = PowerCutFileSystem::record(&directory, &room.path().join("before")).unwrap();
        let storage = Storage::new(Arc::new(files.clone()));
        Self { room, files, storage }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.room.path().join("data").join(name)
    }

    /// What `look` sees in the image of one cut.
    fn after<T>(&self, call: usize, loss: Loss, look: impl FnOnce(&Path) -> T) -> T {
        let image = self.room.path().join("image");
        self.files.image(call, loss, &image).unwrap();
        let seen = look(&image);
        std::fs::remove_dir_all(&image).unwrap();
        seen
    }

    /// What is seen after every cut, and many losses.
    fn after_all<T: Ord>(&self, look: impl Fn(&Path) -> T) -> BTreeSet<T> {
        let calls = 0..=self.files.calls();
        let seeds = (10..40).flat_map(|seed| [Loss::Torn(seed), Loss::Ordered(seed)]);
        let losses: Vec<Loss> = LOSSES.into_iter().chain(seeds).collect();
        calls
            .flat_map(|call| losses.iter().map(move |loss| (call, *loss)))
            .map(|(call, loss)| self.after(call, loss, &look))
            .collect()
    }

    /// What is seen once everything was called.
    fn at_the_end<T: Ord>(&self, look: impl Fn(&Path) -> T) -> BTreeSet<T> {
        LOSSES.into_iter().map(|loss| self.after(self.files.calls(), loss, &look)).collect()
    }
}

fn contents(name: &'static str) -> impl Fn(&Path) -> Option<Vec<u8>> {
    move |image| std::fs::read(image.join(name)).ok()
}

fn new_file() -> OpenForWrite {
    OpenForWrite { create: Create::New, ..OpenForWrite::default() }
}

/// Replaces the file `map`, with or without each of the two syncs it takes.
fn replace(bench: &Bench, new: &[u8], sync_file: bool, sync_dir: bool) {
    let (path, temporary) = (bench.path("map"), bench.path("map.tmp"));
    let file = bench.storage.open_for_write(&temporary, new_file()).unwrap();
    file.write_all_at(new, 0).unwrap();
    if sync_file {
        file.sync_all().unwrap();
    }
    bench.storage.rename(&temporary, &path).unwrap();
    if sync_dir {
        bench.storage.sync_dir_of(&path).unwrap();
    }
}

const OLD: &[u8] = &[1; 1024];
const NEW: &[u8] = &[2; 1024];

fn some(contents: &[u8]) -> Option<Vec<u8>> {
    Some(contents.to_vec())
}

#[test]
fn a_file_replaced_with_both_syncs_is_the_old_or_the_new_one_at_every_cut() {
    let bench = Bench::with(&[("map", OLD)]);
    bench.storage.replace_file(&bench.path("map"), &bench.path("map.tmp"), NEW).unwrap();
    assert_eq!(bench.after_all(contents("map")), BTreeSet::from([some(OLD), some(NEW)]));
    assert_eq!(bench.at_the_end(contents("map")), BTreeSet::from([some(NEW)]));
}

#[test]
fn a_program_that_forgets_to_sync_the_file_is_caught() {
    let bench = Bench::with(&[("map", OLD)]);
    replace(&bench, NEW, false, true);
    let seen = bench.after_all(contents("map"));
    assert!(seen.contains(&Some(Vec::new())), "nobody saw the empty file");
    let is_torn = |seen: &Option<Vec<u8>>| {
        seen.as_ref().is_some_and(|bytes| bytes.contains(&0) && bytes.contains(&2))
    };
    assert!(seen.iter().any(is_torn), "nobody saw half a file");
}

#[test]
fn a_program_that_forgets_to_sync_the_directory_is_caught() {
    let bench = Bench::with(&[("map", OLD)]);
    replace(&bench, NEW, true, false);
    assert!(bench.at_the_end(contents("map")).contains(&some(OLD)));
}

#[test]
fn a_program_that_tries_again_after_a_failed_sync_is_caught() {
    let bench = Bench::with(&[("map", OLD)]);
    let how = OpenForWrite::default();
    let file = bench.storage.open_for_write(&bench.path("map"), how).unwrap();
    file.write_all_at(NEW, 0).unwrap();
    bench.files.fail(bench.files.calls(), WriteFault::Failed);
    // Past the storage, which would not let it.
    assert!(file.file().sync_all().is_err());
    file.file().sync_all().unwrap();
    assert!(bench.at_the_end(contents("map")).contains(&some(OLD)));
}

#[test]
fn an_overwritten_page_is_torn_at_sectors_of_512_bytes_and_nowhere_else() {
    let bench = Bench::with(&[("page", &[1; 8192])]);
    let file = bench.storage.open_for_write(&bench.path("page"), OpenForWrite::default()).unwrap();
    file.write_all_at(&[2; 8192], 0).unwrap();
    let seen = bench.after_all(contents("page"));
    for bytes in seen.iter().flatten() {
        assert!(bytes.chunks(512).all(|sector| sector.iter().all(|byte| *byte == sector[0])));
    }
    assert!(seen.len() > 10, "only {} outcomes", seen.len());
}

#[test]
fn names_made_moved_and_removed_last_only_when_their_directory_was_synced() {
    let bench = Bench::with(&[("a", b"a"), ("b", b"b")]);
    bench.storage.create_dir(&bench.path("d")).unwrap();
    bench.storage.rename(&bench.path("a"), &bench.path("c")).unwrap();
    bench.storage.remove(&bench.path("b")).unwrap();
    let names = |image: &Path| {
        let mut names: Vec<_> = std::fs::read_dir(image)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names.concat()
    };
    let seen = bench.after_all(names);
    for expected in ["ab", "abd", "bcd", "cd", "bc", "a", "c"] {
        assert!(seen.contains(expected), "{expected} is not among {seen:?}");
    }
    bench.storage.sync_dir(&bench.path("")).unwrap();
    assert_eq!(bench.at_the_end(names), BTreeSet::from(["cd".to_owned()]));
}

#[test]
fn what_lies_outside_is_refused_and_a_link_leads_inside() {
    let bench = Bench::with(&[]);
    let outside = bench.room.path().join("outside");
    let error = bench.storage.open_for_write(&outside, new_file()).unwrap_err();
    assert!(error.to_string().contains("outside of the directory"), "{error}");
    assert!(!outside.exists());

    let link = bench.room.path().join("link");
    std::os::unix::fs::symlink(bench.path(""), &link).unwrap();
    bench.storage.create_file(&link.join("a"), &link.join("b"), b"a").unwrap();
    assert_eq!(bench.at_the_end(contents("a")), BTreeSet::from([some(b"a")]));
    assert_eq!(bench.after_all(contents("a")), BTreeSet::from([None, some(b"a")]));
    let calls: Vec<String> = (0..=7).map(|call| bench.files.describe(call)).collect();
    let expected = [
        "call 0: remove b (failed)",
        "call 1: create b",
        "call 2: write 1 bytes of b at 0",
        "call 3: sync b",
        "call 4: create a",
        "call 5: remove b",
        "call 6: sync directory ",
    ];
    assert_eq!(calls[..7], expected);
    assert_eq!(calls[7], "after call 7");
}

#[test]
fn an_ordered_journal_shows_a_later_name_only_with_the_earlier_ones() {
    let bench = Bench::with(&[]);
    for name in ["1", "2", "3"] {
        let file = bench.storage.open_for_write(&bench.path(name), new_file()).unwrap();
        file.write_all_at(name.as_bytes(), 0).unwrap();
    }
    let look = |image: &Path| ["1", "2", "3"].map(|name| contents_of(image, name));
    for seed in 0..100 {
        let seen = bench.after(bench.files.calls(), Loss::Ordered(seed), look);
        let there: Vec<bool> = seen.iter().map(Option::is_some).collect();
        assert!(there.is_sorted_by(|one, next| one >= next), "{seen:?}");
    }
}

fn contents_of(image: &Path, name: &str) -> Option<String> {
    std::fs::read_to_string(image.join(name)).ok()
}

fn page(block: u32) -> [u8; BLOCK_SIZE] {
    let mut page = [7; BLOCK_SIZE];
    page[..4].copy_from_slice(&block.to_le_bytes());
    page
}

/// Writes 40 pages to a new fork.
fn write_fork(bench: &Bench, method: WriteMethod) -> Result<()> {
    let base = bench.path("16384");
    let fork = Arc::new(WritableFork::open(&bench.storage, &base, Fork::Main, new_file())?);
    let options = WriteStreamOptions {
        io_method: Some(method),
        io_combine_limit: 8,
        in_flight: 2,
        ..WriteStreamOptions::default()
    };
    let space = Arc::new(FileExtension::new(fork, 0, None));
    let mut stream = WriteStream::new(space, options, None)?;
    for block in 0..40 {
        stream.write_page(BlockNumber(block), &page(block))?;
    }
    stream.finish()
}

#[test]
fn what_a_write_stream_finished_is_there_whatever_was_lost() {
    for method in
        [WriteMethod::Pwrite, WriteMethod::Pwritev, WriteMethod::Worker, WriteMethod::IoUring]
    {
        let bench = Bench::with(&[]);
        write_fork(&bench, method).unwrap();
        let whole: Vec<u8> = (0..40).flat_map(page).collect();
        assert_eq!(bench.at_the_end(contents("16384")), BTreeSet::from([Some(whole)]), "{method}");
    }
}

#[test]
fn a_fault_at_any_call_of_a_write_stream_is_told_as_what_it_is() {
    let faults = [
        WriteFault::NoSpace,
        WriteFault::NoSpaceFromHere,
        WriteFault::Failed,
        WriteFault::ReadOnlyFromHere,
    ];
    for method in [WriteMethod::Pwrite, WriteMethod::Worker] {
        let calls = {
            let bench = Bench::with(&[]);
            write_fork(&bench, method).unwrap();
            bench.files.calls()
        };
        for (call, fault) in (0..calls).flat_map(|call| faults.map(|fault| (call, fault))) {
            let bench = Bench::with(&[]);
            bench.files.fail(call, fault);
            let outcome = write_fork(&bench, method);
            let what = bench.files.describe(call);
            match outcome {
                // Space may be had otherwise, and a call that needs none is not hurt.
                Ok(()) => assert!(
                    matches!(fault, WriteFault::NoSpace | WriteFault::NoSpaceFromHere),
                    "{method}: {fault:?} at {what}"
                ),
                Err(error) => {
                    assert!(fits(&error, fault), "{method}: {fault:?} at {what}: {error}");
                }
            }
        }
    }
}

fn fits(error: &pagemill_io::Error, fault: WriteFault) -> bool {
    match error.kind() {
        ErrorKind::NoSpace => {
            matches!(fault, WriteFault::NoSpace | WriteFault::NoSpaceFromHere)
        }
        ErrorKind::ReadOnly => fault == WriteFault::ReadOnlyFromHere,
        ErrorKind::SyncFailed { .. } => {
            matches!(fault, WriteFault::Failed | WriteFault::ReadOnlyFromHere)
        }
        ErrorKind::Io(error) => {
            fault == WriteFault::Failed && error.raw_os_error() == Some(Errno::IO.raw_os_error())
        }
        _ => false,
    }
}
