//! `select(2)` for any number of descriptors.
//!
//! Why here: the C library's `fd_set` ends at 1024 descriptors, the kernel's call does not. It reads and writes as many bits as it
//! is told to, so the memory has to be as long as the highest descriptor asks for.
//!
//! Invariant: `words` has a bit for each descriptor below `end`.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

/// Bits of a word, as the kernel counts them.
const BITS: usize = libc::c_ulong::BITS as usize;

/// A set of descriptors.
#[derive(Debug, Clone, Default)]
pub struct DescriptorSet {
    words: Vec<libc::c_ulong>,
    /// One more than the highest descriptor.
    end: libc::c_int,
}

impl DescriptorSet {
    /// Puts a descriptor in.
    pub fn insert(&mut self, fd: impl AsFd) {
        let (word, bit) = place(&fd);
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= bit;
        self.end = self.end.max(fd.as_fd().as_raw_fd() + 1);
    }

    /// Whether a descriptor is in.
    pub fn contains(&self, fd: impl AsFd) -> bool {
        let (word, bit) = place(&fd);
        self.words.get(word).is_some_and(|word| word & bit != 0)
    }
}

fn place(fd: &impl AsFd) -> (usize, libc::c_ulong) {
    // A descriptor that is open is not negative.
    let number = fd.as_fd().as_raw_fd() as usize;
    (number / BITS, 1 << (number % BITS))
}

/// Waits until one of the descriptors of `wanted` can be read without waiting, or the time is over, and leaves in `ready` those
/// that can. Returns how many they are.
///
/// # Errors
/// The system's, with its errno: `EBADF` for a descriptor that was closed, `EINTR`.
pub fn select_readable(
    wanted: &DescriptorSet,
    ready: &mut DescriptorSet,
    time: Option<Duration>,
) -> io::Result<usize> {
    ready.clone_from(wanted);
    let mut limit = time.map(|time| libc::timeval {
        tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
        tv_usec: i64::from(time.subsec_micros()),
    });
    let limit = limit.as_mut().map_or(std::ptr::null_mut(), std::ptr::from_mut);
    let (words, none) = (ready.words.as_mut_ptr().cast(), std::ptr::null_mut());
    // SAFETY: the kernel reads and writes the bits below `end`, in whole words, and `words` has a word for each of
    // them (the invariant); without any it touches none. The other sets may be null, and the time is alive.
    let count = unsafe { libc::select(ready.end, words, none, none, limit) };
    usize::try_from(count).map_err(|_| io::Error::last_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn only_what_can_be_read_stays_in_the_set() {
        let pipes: Vec<_> = (0..100).map(|_| io::pipe().unwrap()).collect();
        let mut wanted = DescriptorSet::default();
        pipes.iter().for_each(|(reader, _)| wanted.insert(reader));
        let mut ready = DescriptorSet::default();
        assert_eq!(select_readable(&wanted, &mut ready, Some(Duration::ZERO)).unwrap(), 0);
        (&pipes[70].1).write_all(b"x").unwrap();
        (&pipes[3].1).write_all(b"x").unwrap();
        assert_eq!(select_readable(&wanted, &mut ready, None).unwrap(), 2);
        for (number, (reader, _)) in pipes.iter().enumerate() {
            assert!(wanted.contains(reader));
            assert_eq!(ready.contains(reader), number == 70 || number == 3);
        }
    }

    #[test]
    fn an_empty_set_waits_for_the_time_alone() {
        let mut ready = DescriptorSet::default();
        let time = Some(Duration::from_millis(1));
        assert_eq!(select_readable(&DescriptorSet::default(), &mut ready, time).unwrap(), 0);
    }
}
