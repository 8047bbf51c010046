//! What was called, how often, for how many bytes and how long: the numbers behind `--stats`.
//!
//! Counted where the call is made, failed and interrupted calls included, so that the numbers are
//! those of `strace -c`. Each number is exact; a snapshot taken while other threads read is not one
//! instant, as each number is loaded on its own.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Running totals, shared by all that reads or writes through one `Storage`.
        #[derive(Debug, Default)]
        pub struct Counters {
            $($name: AtomicU64,)*
        }

        /// The totals at one moment.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct CountersSnapshot {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Counters {
            /// The totals so far.
            pub fn snapshot(&self) -> CountersSnapshot {
                CountersSnapshot { $($name: self.$name.load(Relaxed),)* }
            }
        }

        impl CountersSnapshot {
            /// What was added since `earlier`.
            #[must_use]
            pub fn since(&self, earlier: &Self) -> Self {
                Self { $($name: self.$name.saturating_sub(earlier.$name),)* }
            }
        }
    };
}

counters! {
    /// Calls that read data.
    read_calls,
    /// Bytes those calls returned.
    bytes_read,
    /// Calls that only moved a file position.
    seek_calls,
    /// Calls that handed reads to a ring, or waited for it.
    ring_calls,
    /// Calls that mapped a file.
    map_calls,
    /// Calls that only advised the kernel, of reads to come or to write back.
    advice_calls,
    /// Calls that wrote data.
    write_calls,
    /// Bytes those calls wrote.
    bytes_written,
    /// Calls that copied from file to file within the kernel, or let files share blocks.
    copy_calls,
    /// Bytes those calls copied or shared.
    bytes_copied,
    /// Calls that took space for a file without data.
    extend_calls,
    /// Calls that waited for a device to hold the data.
    sync_calls,
    /// Nanoseconds spent inside reading, writing and syncing calls, added over all threads; 0 where
    /// the storage is [untimed](crate::Storage::untimed).
    io_wait_ns,
}

impl Counters {
    /// Adds one read call that returned `bytes` (0 when it failed) after `waited`.
    pub(crate) fn record_read(&self, bytes: usize, waited: Duration) {
        self.read_calls.fetch_add(1, Relaxed);
        self.bytes_read.fetch_add(bytes as u64, Relaxed);
        self.record_wait(waited);
    }

    /// Adds one call that moved a file position.
    pub(crate) fn record_seek(&self) {
        self.seek_calls.fetch_add(1, Relaxed);
    }

    /// Adds calls on a ring, and what was waited for in them.
    pub(crate) fn record_ring(&self, calls: u64) {
        self.ring_calls.fetch_add(calls, Relaxed);
    }

    /// Adds one call that mapped a file.
    pub(crate) fn record_map(&self) {
        self.map_calls.fetch_add(1, Relaxed);
    }

    /// Adds one call that advised the kernel.
    pub(crate) fn record_advice(&self) {
        self.advice_calls.fetch_add(1, Relaxed);
    }

    /// Adds one write call that took `bytes` (0 when it failed) after `waited`.
    pub(crate) fn record_write(&self, bytes: usize, waited: Duration) {
        self.write_calls.fetch_add(1, Relaxed);
        self.bytes_written.fetch_add(bytes as u64, Relaxed);
        self.record_wait(waited);
    }

    /// Adds one call that copied `bytes` from file to file (0 when it failed) after `waited`.
    pub(crate) fn record_copy(&self, bytes: u64, waited: Duration) {
        self.copy_calls.fetch_add(1, Relaxed);
        self.bytes_copied.fetch_add(bytes, Relaxed);
        self.record_wait(waited);
    }

    /// Adds one call that took space for a file after `waited`.
    pub(crate) fn record_extend(&self, waited: Duration) {
        self.extend_calls.fetch_add(1, Relaxed);
        self.record_wait(waited);
    }

    /// Adds one call that waited for a device to hold the data for `waited`.
    pub(crate) fn record_sync(&self, waited: Duration) {
        self.sync_calls.fetch_add(1, Relaxed);
        self.record_wait(waited);
    }

    pub(crate) fn record_wait(&self, waited: Duration) {
        let nanoseconds = u64::try_from(waited.as_nanos()).unwrap_or(u64::MAX);
        self.io_wait_ns.fetch_add(nanoseconds, Relaxed);
    }
}

impl CountersSnapshot {
    /// [`io_wait_ns`](Self::io_wait_ns) as a duration.
    pub fn io_wait(&self) -> Duration {
        Duration::from_nanos(self.io_wait_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_tells_what_was_added_since_an_earlier_one() {
        let counters = Counters::default();
        counters.record_read(100, Duration::from_nanos(5));
        let earlier = counters.snapshot();
        counters.record_read(0, Duration::from_nanos(7));
        let added = counters.snapshot().since(&earlier);
        assert_eq!((added.read_calls, added.bytes_read), (1, 0));
        assert_eq!(added.io_wait(), Duration::from_nanos(7));
    }
}
