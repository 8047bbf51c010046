//! Trying the calls that read: pread, preadv, and preadv2 with its flags.
//!
//! A C library may emulate pread with two moves of the file position around a read; such a pread moves
//! what it must not, and "works" on a pipe. The calls here go to the kernel directly, so what is
//! tried is what the kernel has.

use std::io::{IoSliceMut, Seek as _, SeekFrom};

use rustix::io::{Errno, ReadWriteFlags};

use super::errno;
use super::finding::{Call, Finding, State};
use super::kernel::Kernel;
use super::trial_file::{TrialFile, noise};
use pagemill_sys::AlignedBuffer;

/// Bytes that a trial reads: a block.
const BLOCK: usize = 8192;

/// `RWF_DONTCACHE` (Linux `include/uapi/linux/fs.h`, since 6.14), which rustix has no name for.
const DONTCACHE: ReadWriteFlags = ReadWriteFlags::from_bits_retain(0x80);

const PREAD: Call = Call { name: "pread", label: "pread", since: (2, 2), remedy: None };
const PREADV: Call = Call { name: "preadv", label: "preadv", since: (2, 6), remedy: None };
const PREADV2: Call = Call { name: "preadv2", label: "preadv2", since: (4, 6), remedy: None };
const NOWAIT: Call = Call {
    name: "preadv2_nowait",
    label: "preadv2 RWF_NOWAIT",
    since: (4, 14),
    remedy: Some("ext4, XFS and btrfs offer it"),
};
const HIPRI: Call =
    Call { name: "preadv2_hipri", label: "preadv2 RWF_HIPRI", since: (4, 6), remedy: None };
const UNCACHED: Call = Call {
    name: "preadv2_dontcache",
    label: "preadv2 RWF_DONTCACHE",
    since: (6, 14),
    remedy: Some("ext4 and XFS offer it since Linux 6.14, other file systems later or not at all"),
};

/// The findings about reading. `polled` says whether a device below can be polled, if there is one.
pub(super) fn findings(trial: &TrialFile, kernel: &Kernel, polled: Option<bool>) -> Vec<Finding> {
    vec![
        pread(trial, kernel),
        judged(&PREADV, kernel, vectored(trial)),
        judged(&PREADV2, kernel, flagged(trial, ReadWriteFlags::empty()).map(bytes_read)),
        nowait(trial, kernel),
        hipri(trial, kernel, polled),
        dontcache(trial, kernel),
    ]
}

fn judged(call: &Call, kernel: &Kernel, outcome: Result<String, Errno>) -> Finding {
    match outcome {
        Ok(seen) => call.works(seen),
        Err(error) => call.refused(error, kernel),
    }
}

fn bytes_read(count: usize) -> String {
    format!("{count} bytes read")
}

fn pread(trial: &TrialFile, kernel: &Kernel) -> Finding {
    let moved = match position_after_pread(trial) {
        Ok(position) => position != 0,
        Err(error) => return PREAD.refused(error, kernel),
    };
    let on_pipe = pread_of_pipe();
    match (moved, on_pipe) {
        (false, Err(Errno::SPIPE)) => {
            PREAD.works("the kernel's own: the file position stays, a pipe gives ESPIPE")
        }
        (false, Err(Errno::MFILE | Errno::NFILE)) => {
            PREAD.works("the file position stays; there is no descriptor left to try a pipe")
        }
        (true, _) => PREAD.found(State::Emulated, "it moves the file position"),
        (false, Err(error)) => {
            let seen = format!("the file position stays, but a pipe gives {}", errno::name(error));
            PREAD.found(State::Emulated, seen)
        }
        (false, Ok(_)) => {
            PREAD.found(State::Emulated, "it reads from a pipe, which has no offsets")
        }
    }
}

/// Reads at an offset and checks what came; the file position, at 0 before, should be there still.
fn position_after_pread(trial: &TrialFile) -> Result<u64, Errno> {
    let mut file = &trial.file;
    file.seek(SeekFrom::Start(0)).map_err(|error| errno::of(&error))?;
    let mut buf = vec![0; BLOCK.min(trial.len)];
    let offset = (trial.len - buf.len()) as u64;
    let count = rustix::io::pread(file, &mut buf, offset)?;
    check(trial, buf.get(..count).unwrap_or_default(), offset)?;
    file.stream_position().map_err(|error| errno::of(&error))
}

fn pread_of_pipe() -> Result<usize, Errno> {
    let (reader, _writer) = std::io::pipe().map_err(|error| errno::of(&error))?;
    rustix::io::pread(&reader, &mut [0_u8; 1], 0)
}

fn vectored(trial: &TrialFile) -> Result<String, Errno> {
    let (mut first, mut second) = (vec![0; BLOCK], vec![0; BLOCK]);
    let mut parts = [IoSliceMut::new(&mut first), IoSliceMut::new(&mut second)];
    let count = rustix::io::preadv(&trial.file, &mut parts, 0)?;
    let whole = [first, second].concat();
    check(trial, whole.get(..count).unwrap_or_default(), 0)?;
    Ok(format!("{count} bytes into two buffers by one call"))
}

/// Reads the whole file by one call with these flags.
fn flagged(trial: &TrialFile, flags: ReadWriteFlags) -> Result<usize, Errno> {
    let mut buf = vec![0; trial.len];
    let count = rustix::io::preadv2(&trial.file, &mut [IoSliceMut::new(&mut buf)], 0, flags)?;
    check(trial, buf.get(..count).unwrap_or_default(), 0)?;
    Ok(count)
}

/// What was read of the own file must be what was written to it.
fn check(trial: &TrialFile, found: &[u8], offset: u64) -> Result<(), Errno> {
    let offset = usize::try_from(offset).unwrap_or(usize::MAX);
    let is_right = !trial.is_own() || noise().get(offset..offset + found.len()) == Some(found);
    if is_right { Ok(()) } else { Err(Errno::IO) }
}

fn nowait(trial: &TrialFile, kernel: &Kernel) -> Finding {
    let dropped = trial.drop_cached();
    let uncached = flagged(trial, ReadWriteFlags::NOWAIT);
    let filled = flagged(trial, ReadWriteFlags::empty());
    let cached = flagged(trial, ReadWriteFlags::NOWAIT);
    match (uncached, cached) {
        (Err(Errno::AGAIN), Ok(_)) => {
            NOWAIT.works("cached bytes are read, and EAGAIN tells of others")
        }
        (Ok(_), Ok(_)) if dropped == Some(0) => {
            NOWAIT.found(State::NoEffect, "bytes that are not cached are waited for")
        }
        (_, Ok(_)) => NOWAIT.works("cached bytes are read; others could not be tried"),
        (_, Err(Errno::AGAIN)) if filled.is_ok() => {
            NOWAIT.found(State::NoEffect, "EAGAIN even for bytes that are cached")
        }
        (_, Err(error)) => NOWAIT.refused(error, kernel),
    }
}

fn hipri(trial: &TrialFile, kernel: &Kernel, polled: Option<bool>) -> Finding {
    if let Err(error) = flagged(trial, ReadWriteFlags::HIPRI) {
        return HIPRI.refused(error, kernel);
    }
    match (polled_direct_read(trial), polled) {
        (Ok(_), Some(true)) => HIPRI.works("direct reads poll the device's queue"),
        (Ok(_), None) => HIPRI.found(State::NoEffect, "accepted, and no device is known to poll"),
        (Ok(_), Some(false)) => HIPRI
            .found(State::NoEffect, "accepted, but no device below has queues to be polled")
            .with_remedy("on NVMe, load the driver with nvme.poll_queues=N"),
        (Err(error), _) => {
            let seen =
                format!("accepted; nothing polls without direct I/O ({})", errno::name(error));
            HIPRI.found(State::NoEffect, seen)
        }
    }
}

fn polled_direct_read(trial: &TrialFile) -> Result<usize, Errno> {
    let file = trial.reopened(rustix::fs::OFlags::DIRECT)?;
    let mut buf = AlignedBuffer::zeroed(BLOCK);
    rustix::io::preadv2(&file, &mut [IoSliceMut::new(&mut buf)], 0, ReadWriteFlags::HIPRI)
}

fn dontcache(trial: &TrialFile, kernel: &Kernel) -> Finding {
    let dropped = trial.drop_cached();
    if let Err(error) = flagged(trial, DONTCACHE) {
        return UNCACHED.refused(error, kernel);
    }
    match (dropped, trial.cached_pages()) {
        (Some(0), Some(0)) => UNCACHED.works("nothing stays in the page cache after the read"),
        (Some(0), Some(stayed)) => {
            let seen = format!("accepted, but {stayed} of {} pages stay cached", trial.pages());
            UNCACHED.found(State::NoEffect, seen)
        }
        _ => UNCACHED.found(State::Accepted, "whether pages stay cached cannot be seen here"),
    }
}
