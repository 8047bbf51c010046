//! Mappings of files that grow, shrink and fail: what is read, and which faults are caught.
//! Every file is made here, and is no longer than some pages.

use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::sync::Barrier;

use super::*;
use crate::own_process;

const BLOCK: usize = 8192;

/// A file whose every byte tells where it is, never zero.
fn file_of(len: usize) -> (File, Vec<u8>) {
    let content: Vec<u8> = (0..len).map(|i| (i / 4096 % 127 + i % 127 + 1) as u8).collect();
    let file = tempfile::tempfile().unwrap();
    file.write_all_at(&content, 0).unwrap();
    (file, content)
}

fn mapping_of(file: &File, len: usize) -> Mapping {
    Mapping::new(file.as_fd(), len).unwrap()
}

#[test]
fn what_was_let_go_of_reads_as_before_and_what_could_not_be_read_as_lost() {
    let (file, content) = file_of(4 * BLOCK);
    let mapping = mapping_of(&file, content.len());
    assert_eq!(mapping.bytes(0..content.len()), content);
    mapping.release(BLOCK..3 * BLOCK).unwrap();
    assert_eq!(mapping.bytes(0..content.len()), content);
    file.set_len(BLOCK as u64).unwrap();
    assert!(mapping.touch(BLOCK..2 * BLOCK, 4096).is_err());
    mapping.release(0..content.len()).unwrap();
    assert_eq!(mapping.bytes(0..BLOCK), &content[..BLOCK]);
    assert!(mapping.touch(BLOCK..2 * BLOCK, 4096).is_err());
    assert!(mapping.release(0..content.len() + 1).is_err());
}

#[test]
fn the_bytes_are_those_of_the_file_even_when_it_is_closed() {
    let (file, content) = file_of(10 * BLOCK + 100);
    let mapping = mapping_of(&file, content.len());
    drop(file);
    assert_eq!(mapping.len(), content.len());
    assert_eq!(mapping.bytes(0..content.len()), content);
    assert_eq!(mapping.bytes(5000..5010), &content[5000..5010]);
    assert_eq!(mapping.touch(0..content.len(), BLOCK), Ok(()));
    assert_eq!(mapping.faulted(0..content.len()), None);
}

#[test]
fn nothing_is_mapped_for_no_bytes() {
    let (file, _) = file_of(0);
    let mapping = mapping_of(&file, 0);
    assert!(mapping.is_empty());
    assert_eq!(mapping.bytes(0..0), b"");
    assert_eq!(mapping.touch(0..0, BLOCK), Ok(()));
    assert!(mapping.advise(0..0, MapAdvice::WillNeed).is_ok());
    assert_eq!(mapping.resident(0..0).unwrap(), [false; 0]);
}

#[test]
fn advice_is_taken_and_populated_pages_are_resident() {
    let (file, content) = file_of(4 * BLOCK);
    let mapping = mapping_of(&file, content.len());
    for advice in [
        MapAdvice::Normal,
        MapAdvice::Sequential,
        MapAdvice::Random,
        MapAdvice::WillNeed,
        MapAdvice::PopulateRead,
    ] {
        mapping.advise(BLOCK + 1..3 * BLOCK, advice).unwrap();
    }
    let pages = 2 * BLOCK / sigbus::page_size().min(2 * BLOCK);
    assert_eq!(mapping.resident(BLOCK + 1..3 * BLOCK).unwrap(), vec![true; pages]);
    let beyond = mapping.advise(0..4 * BLOCK + 1, MapAdvice::Normal).unwrap_err();
    assert_eq!(beyond.kind(), io::ErrorKind::InvalidInput);
}

#[test]
fn a_file_cut_to_nothing_is_faulted_from_the_first_byte_asked_for() {
    let (file, content) = file_of(300 * BLOCK);
    let mapping = mapping_of(&file, content.len());
    assert_eq!(mapping.touch(0..content.len(), BLOCK), Ok(()));
    file.set_len(0).unwrap();
    let asked = 7 * BLOCK + 3..8 * BLOCK;
    assert_eq!(mapping.touch(asked, 4096), Err(Faulted { offset: 7 * BLOCK as u64 + 3 }));
    assert_eq!(mapping.faulted(0..7 * BLOCK), None, "what nobody read is not known to be lost");
    assert_eq!(mapping.touch(0..content.len(), 4096), Err(Faulted { offset: 0 }));
    assert!(mapping.bytes(0..content.len()).iter().all(|&byte| byte == 0));
}

#[test]
fn a_file_cut_in_the_middle_keeps_the_bytes_before_the_cut() {
    let (file, content) = file_of(64 * BLOCK);
    let mapping = mapping_of(&file, content.len());
    let cut = 32 * BLOCK; // a multiple of every machine's page size
    file.set_len(cut as u64).unwrap();
    assert_eq!(mapping.touch(0..cut, BLOCK), Ok(()));
    assert_eq!(mapping.bytes(0..cut), &content[..cut]);
    let lost = Err(Faulted { offset: cut as u64 });
    assert_eq!(mapping.touch(0..content.len(), 4096), lost);
    assert_eq!(mapping.touch(0..cut, BLOCK), Ok(()));
}

#[test]
fn a_fault_in_use_is_found_after_use() {
    let (file, content) = file_of(16 * BLOCK);
    let mapping = mapping_of(&file, content.len());
    file.set_len(8 * BLOCK as u64).unwrap();
    let sum: u64 = mapping.bytes(8 * BLOCK..9 * BLOCK).iter().map(|&byte| byte as u64).sum();
    assert_eq!(sum, 0);
    assert_eq!(mapping.faulted(0..content.len()), Some(8 * BLOCK as u64));
}

#[test]
fn a_faulted_mapping_stays_faulted_and_a_new_one_does_not() {
    let (file, content) = file_of(16 * BLOCK);
    let mapping = mapping_of(&file, content.len());
    file.set_len(0).unwrap();
    assert!(mapping.touch(0..1, 1).is_err());
    file.write_all_at(&content, 0).unwrap();
    assert_eq!(mapping.touch(0..1, 1), Err(Faulted { offset: 0 }));
    let new = mapping_of(&file, content.len());
    assert_eq!(new.touch(0..content.len(), 4096), Ok(()));
    assert_eq!(new.bytes(0..content.len()), content);
}

#[test]
fn bytes_behind_the_end_of_the_file_are_faulted() {
    let (file, content) = file_of(16 * BLOCK);
    let mapping = mapping_of(&file, 1 << 24);
    assert_eq!(mapping.touch(0..content.len(), 4096), Ok(()));
    let end = content.len() as u64;
    assert_eq!(mapping.touch(0..1 << 24, 4096), Err(Faulted { offset: end }));
    let error = mapping.advise(0..1 << 24, MapAdvice::PopulateRead);
    assert!(error.is_ok() || error.is_err(), "an answer, and no signal");
}

#[test]
fn many_threads_survive_faults_in_the_same_pages() {
    const THREADS: usize = 8;
    let (file, content) = file_of(256 * BLOCK);
    let mapping = mapping_of(&file, content.len());
    let cut = 128 * BLOCK;
    file.set_len(cut as u64).unwrap();
    let start = Barrier::new(THREADS);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (mapping, start, content) = (&mapping, &start, &content);
            scope.spawn(move || {
                start.wait();
                for number in 0..256 {
                    let block = (number * 37 + thread) % 256;
                    let range = block * BLOCK..(block + 1) * BLOCK;
                    let touched = mapping.touch(range.clone(), 4096);
                    if range.start >= cut {
                        assert_eq!(touched, Err(Faulted { offset: range.start as u64 }));
                    } else {
                        assert_eq!(touched, Ok(()));
                        assert_eq!(mapping.bytes(range.clone()), &content[range]);
                    }
                }
            });
        }
    });
}

#[test]
fn faults_in_one_mapping_are_not_those_of_another() {
    let (file, content) = file_of(16 * BLOCK);
    let (other, _) = file_of(16 * BLOCK);
    let first = mapping_of(&file, content.len());
    let second = mapping_of(&other, content.len());
    file.set_len(0).unwrap();
    assert!(first.touch(0..content.len(), 4096).is_err());
    assert_eq!(second.touch(0..content.len(), 4096), Ok(()));
}

#[test]
fn what_cannot_be_mapped_is_an_error_with_its_errno() {
    let directory = File::open("/").unwrap();
    let error = Mapping::new(directory.as_fd(), BLOCK).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::ENODEV));
    let too_long = Mapping::new(directory.as_fd(), usize::MAX).unwrap_err();
    assert_eq!(too_long.kind(), io::ErrorKind::InvalidInput);
}

/// Reads a page that its file has lost, through a mapping that Pagemill knows nothing of.
fn fault_elsewhere() {
    let no_core = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    let (file, _) = file_of(BLOCK);
    let wild = map(file.as_fd(), BLOCK).unwrap();
    file.set_len(0).unwrap();
    // SAFETY: the limit is initialized; the page was just mapped, and the fault that its load
    // raises is what this process is started for.
    unsafe {
        libc::setrlimit(libc::RLIMIT_CORE, &no_core);
        std::ptr::read_volatile(wild.as_ptr());
    }
}

#[test]
fn a_fault_outside_every_mapping_still_kills_the_process() {
    let status = own_process::run("mapping::tests::dies_of_a_fault_elsewhere").unwrap();
    assert_eq!(status.signal(), Some(libc::SIGBUS));
}

#[test]
fn dies_of_a_fault_elsewhere() {
    if !own_process::is_alone() {
        return;
    }
    let (file, content) = file_of(BLOCK);
    let mapping = mapping_of(&file, content.len());
    file.set_len(0).unwrap();
    assert!(mapping.touch(0..BLOCK, 4096).is_err(), "a fault of ours is survived");
    drop(mapping);
    fault_elsewhere();
}

const HANDLED: i32 = 42;

extern "C" fn exit_handled(_: libc::c_int) {
    // SAFETY: _exit is async-signal-safe and does not return.
    unsafe { libc::_exit(HANDLED) }
}

#[test]
fn a_handler_installed_before_gets_what_is_not_ours() {
    assert_eq!(
        own_process::run("mapping::tests::exits_in_the_handler_installed_before").unwrap().code(),
        Some(HANDLED)
    );
}

#[test]
fn exits_in_the_handler_installed_before() {
    if !own_process::is_alone() {
        return;
    }
    let handler = exit_handled as extern "C" fn(libc::c_int);
    // SAFETY: the handler has the signature of a plain handler, and does only what one may.
    unsafe { libc::signal(libc::SIGBUS, handler as usize) };
    let (file, content) = file_of(BLOCK);
    let mapping = mapping_of(&file, content.len());
    file.set_len(0).unwrap();
    assert!(mapping.touch(0..BLOCK, 4096).is_err());
    fault_elsewhere();
}

#[test]
fn one_mapping_too_many_is_refused() {
    assert_eq!(own_process::run("mapping::tests::takes_every_place").unwrap().code(), Some(0));
}

#[test]
fn takes_every_place() {
    if !own_process::is_alone() {
        return;
    }
    let (file, content) = file_of(BLOCK);
    let mut all: Vec<_> = (0..MAX_MAPPINGS).map(|_| mapping_of(&file, BLOCK)).collect();
    let error = Mapping::new(file.as_fd(), BLOCK).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::QuotaExceeded);
    all.pop();
    assert_eq!(mapping_of(&file, BLOCK).bytes(0..BLOCK), content);
}
