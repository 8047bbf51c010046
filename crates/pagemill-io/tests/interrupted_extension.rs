//! A signal while zeros are written ahead of a fork. In a process of its own, since a signal that came stays.
//!
//! Invariant: the signal is raised by the test itself, before the first byte, so that no run depends on time.

use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pagemill_format::Fork;
use pagemill_io::{
    Create, ErrorKind, FileExtendMethod, FileExtension, OpenForWrite, Storage, WritableFork,
    check_interrupt, watch_interrupts,
};

/// `generate` wrote the zeros of its next step, up to 256 MiB, before it looked.
#[test]
fn zeros_of_a_new_file_are_not_written_on_after_a_signal() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("16384");
    let how = OpenForWrite { create: Create::New, ..OpenForWrite::default() };
    let fork = WritableFork::open(&Storage::real(), &path, Fork::Main, how).unwrap();
    let method = Some(FileExtendMethod::WriteZeros);
    let fork = Arc::new(fork);
    let extension = FileExtension::new(fork.clone(), 0, method).interruptible();
    extension.expect_blocks(1024);
    let _ = watch_interrupts();
    let own = std::process::id().to_string();
    assert!(Command::new("kill").args(["-TERM", &own]).status().unwrap().success());
    let start = Instant::now();
    while check_interrupt(&path).is_ok() {
        assert!(start.elapsed() < Duration::from_secs(60), "the signal did not come");
        std::thread::sleep(Duration::from_millis(1));
    }
    let error = extension.ensure(1).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Interrupted), "{error}");
    assert_eq!(std::fs::metadata(&path).unwrap().len(), 0, "what was begun is cut off");
    // Files that live on grow all the same: they are changed behind the decision too.
    FileExtension::new(fork, 0, method).ensure(1).unwrap();
}
