//! Trying direct I/O: the alignment it asks for, a read, and whether it really passes the page cache by;
//! and writes that the device promises not to tear.
//!
//! statx tells alignments since Linux 6.1, and the units of atomic writes since 6.11. Some file systems
//! accept O_DIRECT and read through the page cache all the same; that is found out by looking at
//! the cache after a direct read.

use std::fs::File;
use std::io::IoSlice;

use pagemill_sys::{ALIGNMENT, AlignedBuffer};
use rustix::fs::{AtFlags, OFlags, Statx, StatxFlags};
use rustix::io::{Errno, ReadWriteFlags};

use super::finding::{Call, Fact, Finding, State};
use super::kernel::Kernel;
use super::trial_file::{TRIAL_BYTES, TrialFile, noise};

/// Bytes of a trial: a block.
const BLOCK: usize = 8192;

/// `STATX_WRITE_ATOMIC`, `STATX_DIO_READ_ALIGN` and `RWF_ATOMIC` (Linux `include/uapi/linux/stat.h` and
/// `fs.h`, 6.18), which rustix has no names for.
const WRITE_ATOMIC: StatxFlags = StatxFlags::from_bits_retain(0x0001_0000);
const DIO_READ_ALIGN: StatxFlags = StatxFlags::from_bits_retain(0x0002_0000);
const ATOMIC: ReadWriteFlags = ReadWriteFlags::from_bits_retain(0x40);

const ALIGNMENTS: Call = Call {
    name: "statx_dioalign",
    label: "statx DIOALIGN",
    since: (6, 1),
    remedy: Some("align memory and offsets to 4096 bytes; ext4, XFS and f2fs tell it"),
};
const DIRECT: Call = Call {
    name: "o_direct",
    label: "O_DIRECT",
    since: (2, 4),
    remedy: Some(
        "ext4, XFS and btrfs offer it, for files that are neither compressed nor encrypted",
    ),
};
const ATOMIC_WRITE: Call = Call {
    name: "pwritev2_atomic",
    label: "pwritev2 RWF_ATOMIC",
    since: (6, 11),
    remedy: Some(
        "XFS made with reflink=1 offers it on Linux 6.16, ext4 on devices with atomic writes",
    ),
};

/// The findings about direct I/O.
pub(super) fn findings(trial: &TrialFile, kernel: &Kernel) -> Vec<Finding> {
    let mask = StatxFlags::DIOALIGN | WRITE_ATOMIC | DIO_READ_ALIGN;
    let stat = rustix::fs::statx(&trial.file, "", AtFlags::EMPTY_PATH, mask);
    vec![
        alignments(stat.as_ref(), kernel),
        direct_read(trial, stat.as_ref(), kernel),
        atomic_write(trial, stat.as_ref(), kernel),
    ]
}

fn tells(stat: &Statx, what: StatxFlags) -> bool {
    stat.stx_mask & what.bits() != 0
}

fn alignments(stat: Result<&Statx, &Errno>, kernel: &Kernel) -> Finding {
    let stat = match stat {
        Ok(stat) if tells(stat, StatxFlags::DIOALIGN) => stat,
        Ok(_) => return ALIGNMENTS.untold("statx does not tell it for this file", kernel),
        Err(error) => return ALIGNMENTS.refused(*error, kernel),
    };
    let (memory, offset) = (stat.stx_dio_mem_align, stat.stx_dio_offset_align);
    if offset == 0 {
        return ALIGNMENTS.found(State::Missing, "direct I/O is not supported on this file");
    }
    let mut facts = vec![
        ("memory_alignment_bytes", Fact::Number(memory.into())),
        ("offset_alignment_bytes", Fact::Number(offset.into())),
    ];
    let mut seen = format!("memory at multiples of {memory} bytes, offsets of {offset}");
    if tells(stat, DIO_READ_ALIGN) && stat.stx_dio_read_offset_align != 0 {
        let reading = stat.stx_dio_read_offset_align;
        facts.push(("read_offset_alignment_bytes", Fact::Number(reading.into())));
        seen.push_str(&format!(" (reads: {reading})"));
    }
    ALIGNMENTS.works(seen).with_facts(facts)
}

fn direct_read(trial: &TrialFile, stat: Result<&Statx, &Errno>, kernel: &Kernel) -> Finding {
    let file = match trial.reopened(OFlags::DIRECT) {
        Ok(file) => file,
        Err(error) => return DIRECT.refused(error, kernel),
    };
    let dropped = trial.drop_cached();
    // The buffer is aligned to 4096 bytes; only its length may have to be larger than a block.
    let unit = stat.map_or(0, |stat| stat.stx_dio_offset_align).max(1) as usize;
    let mut buf = AlignedBuffer::zeroed(BLOCK.next_multiple_of(unit).min(TRIAL_BYTES));
    let count = match rustix::io::pread(&file, &mut buf[..], 0) {
        Ok(count) => count,
        Err(error) => return DIRECT.refused(error, kernel),
    };
    if trial.is_own() && noise().get(..count) != buf.get(..count) {
        return DIRECT.refused(Errno::IO, kernel);
    }
    match (dropped, trial.cached_pages()) {
        (Some(0), Some(0)) => DIRECT.works(format!("{count} bytes read past the page cache")),
        (Some(0), Some(cached)) => {
            let seen =
                format!("accepted, but the read went through the page cache ({cached} pages)");
            DIRECT.found(State::NoEffect, seen)
        }
        (Some(_), _) => DIRECT.found(State::NoEffect, "accepted, but the file stays in memory"),
        (None, _) => DIRECT.found(
            State::Accepted,
            format!("{count} bytes read; whether past the page cache cannot be seen here"),
        ),
    }
}

fn atomic_write(trial: &TrialFile, stat: Result<&Statx, &Errno>, kernel: &Kernel) -> Finding {
    let (least, most) = match stat {
        Ok(stat) if tells(stat, WRITE_ATOMIC) && stat.stx_atomic_write_unit_max != 0 => {
            (stat.stx_atomic_write_unit_min, stat.stx_atomic_write_unit_max)
        }
        Ok(_) => return ATOMIC_WRITE.untold("statx tells no unit of atomic writes", kernel),
        Err(error) => return ATOMIC_WRITE.refused(*error, kernel),
    };
    let facts = [
        ("unit_min_bytes", Fact::Number(least.into())),
        ("unit_max_bytes", Fact::Number(most.into())),
    ];
    let units = format!("units of {least} to {most} bytes");
    let block = u32::try_from(BLOCK).unwrap_or(u32::MAX);
    let finding = if !(least..=most).contains(&block) {
        let seen = format!("{units}: a block of {BLOCK} bytes is not among them");
        ATOMIC_WRITE.found(State::Missing, seen)
    } else if !trial.is_own() {
        ATOMIC_WRITE.untried(format!("{units}, but nothing may be written here"))
    } else {
        match write_untorn(trial) {
            Ok(_) => ATOMIC_WRITE.works(format!("{units}: a block is written whole or not at all")),
            Err(error) => ATOMIC_WRITE.refused(error, kernel),
        }
    };
    finding.with_facts(facts)
}

/// Writes the file's first block as it is.
fn write_untorn(trial: &TrialFile) -> Result<usize, Errno> {
    const _: () = assert!(BLOCK.is_multiple_of(ALIGNMENT));
    let file: File = trial.reopened(OFlags::DIRECT)?;
    let mut buf = AlignedBuffer::zeroed(BLOCK);
    for (byte, original) in buf.iter_mut().zip(noise()) {
        *byte = original;
    }
    let written = rustix::io::pwritev2(&file, &[IoSlice::new(&buf)], 0, ATOMIC)?;
    // Whatever was not written whole was not written as promised.
    if written == BLOCK { Ok(written) } else { Err(Errno::IO) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_statx_does_not_tell_is_the_kernels_age_or_the_file_system() {
        let dir = tempfile::tempdir().unwrap();
        let trial = TrialFile::make(dir.path()).unwrap();
        let mask = StatxFlags::BASIC_STATS;
        let mut stat = rustix::fs::statx(&trial.file, "", AtFlags::EMPTY_PATH, mask).unwrap();
        stat.stx_mask = 0;
        let remedy = |release: &str| {
            let finding = alignments(Ok(&stat), &Kernel::of(release, 0));
            assert_eq!(finding.state, State::Missing);
            finding.remedy.unwrap()
        };
        assert_eq!(remedy("5.15.0"), "run Linux 6.1 or newer");
        assert!(remedy("6.18.0").contains("XFS"));
        let atomic = atomic_write(&trial, Ok(&stat), &Kernel::of("6.18.0", 0));
        assert!(atomic.detail.contains("no unit"), "{}", atomic.detail);
    }

    #[test]
    fn alignments_are_told_as_statx_tells_them() {
        let dir = tempfile::tempdir().unwrap();
        let trial = TrialFile::make(dir.path()).unwrap();
        let mask = StatxFlags::BASIC_STATS;
        let mut stat = rustix::fs::statx(&trial.file, "", AtFlags::EMPTY_PATH, mask).unwrap();
        stat.stx_mask = (StatxFlags::DIOALIGN | WRITE_ATOMIC).bits();
        (stat.stx_dio_mem_align, stat.stx_dio_offset_align) = (4, 512);
        (stat.stx_atomic_write_unit_min, stat.stx_atomic_write_unit_max) = (512, 4096);
        let kernel = Kernel::of("6.18.0", 0);
        let found = alignments(Ok(&stat), &kernel);
        let expected = [
            ("memory_alignment_bytes", Fact::Number(4)),
            ("offset_alignment_bytes", Fact::Number(512)),
        ];
        assert_eq!((found.state, &*found.facts), (State::Works, &expected[..]));
        let atomic = atomic_write(&trial, Ok(&stat), &kernel);
        assert_eq!(atomic.state, State::Missing);
        assert!(atomic.detail.contains("512 to 4096"), "{}", atomic.detail);
    }
}
