//! What was asked of object stores, counted where it is sent, so that the numbers are those of the server's own log.
//!
//! Invariant: each try is a request of its own, and one that was made again is a retry too.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Dollars for a thousand LIST requests of S3 Standard in us-east-1, and for as many GET and HEAD (list prices of 2026).
const LIST_PRICE: f64 = 0.005;
const GET_PRICE: f64 = 0.0004;

/// Running totals.
#[derive(Debug, Default)]
pub(crate) struct RequestCounts {
    lists: AtomicU64,
    gets: AtomicU64,
    heads: AtomicU64,
    others: AtomicU64,
    retries: AtomicU64,
    network_bytes: AtomicU64,
    cache_bytes: AtomicU64,
}

/// The totals at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RequestSnapshot {
    /// Requests that list names.
    pub lists: u64,
    /// Requests for contents.
    pub gets: u64,
    /// Requests for what is known of an object.
    pub heads: u64,
    /// Requests for credentials.
    pub others: u64,
    /// How many of all these were made again.
    pub retries: u64,
    /// Bytes of contents that came over the network.
    pub network_bytes: u64,
    /// Bytes of contents that were in the cache on disk.
    pub cache_bytes: u64,
}

/// What a request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestKind {
    List,
    Get,
    Head,
    Other,
}

impl RequestCounts {
    pub(crate) fn count(&self, kind: RequestKind) {
        let counter = match kind {
            RequestKind::List => &self.lists,
            RequestKind::Get => &self.gets,
            RequestKind::Head => &self.heads,
            RequestKind::Other => &self.others,
        };
        counter.fetch_add(1, Relaxed);
    }

    pub(crate) fn count_retry(&self) {
        self.retries.fetch_add(1, Relaxed);
    }

    pub(crate) fn count_received(&self, bytes: usize) {
        self.network_bytes.fetch_add(bytes as u64, Relaxed);
    }

    pub(crate) fn count_cached(&self, bytes: usize) {
        self.cache_bytes.fetch_add(bytes as u64, Relaxed);
    }

    pub(crate) fn snapshot(&self) -> RequestSnapshot {
        RequestSnapshot {
            lists: self.lists.load(Relaxed),
            gets: self.gets.load(Relaxed),
            heads: self.heads.load(Relaxed),
            others: self.others.load(Relaxed),
            retries: self.retries.load(Relaxed),
            network_bytes: self.network_bytes.load(Relaxed),
            cache_bytes: self.cache_bytes.load(Relaxed),
        }
    }
}

impl RequestSnapshot {
    /// What these requests cost in S3 Standard, in dollars: list prices, and no price for bytes.
    pub fn price(&self) -> f64 {
        let of = |requests: u64, price: f64| requests as f64 / 1000.0 * price;
        of(self.lists, LIST_PRICE) + of(self.gets + self.heads, GET_PRICE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_costs_as_much_as_a_dozen_gets() {
        let counts = RequestCounts::default();
        (0..1000).for_each(|_| counts.count(RequestKind::Get));
        assert_eq!(counts.snapshot().price(), 0.0004);
        (0..1000).for_each(|_| counts.count(RequestKind::List));
        assert!((counts.snapshot().price() - 0.0054).abs() < 1e-9);
    }
}
