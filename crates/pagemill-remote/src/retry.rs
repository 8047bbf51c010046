//! When a request is made again: waiting times that double and are drawn at random, within a limit of time.
//!
//! Drawn at random, so that many readers that were turned away together do not come back together.
//!
//! Invariant: a try never waits beyond the limit; what cannot get better is not tried again, and whoever asks here has made sure
//! of that.

use std::hash::{BuildHasher as _, RandomState};
use std::time::{Duration, Instant};

/// For how long, and how often.
#[derive(Debug, Clone, Copy)]
pub struct RetryPolicy {
    /// The longest wait before the first retry; each later one is twice as long.
    pub first_wait: Duration,
    /// No wait is longer.
    pub longest_wait: Duration,
    /// After that much time nothing is tried again.
    pub limit: Duration,
    /// How long to wait for the answer of a server to begin, or for more bytes of it.
    pub silence: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            first_wait: Duration::from_millis(200),
            longest_wait: Duration::from_secs(10),
            limit: Duration::from_secs(60),
            silence: Duration::from_secs(30),
        }
    }
}

/// The tries of one request.
#[derive(Debug)]
pub(crate) struct Tries {
    policy: RetryPolicy,
    begun: Instant,
    made: u32,
    /// Retries since something came of one.
    in_vain: u32,
}

impl Tries {
    pub(crate) fn begin(policy: RetryPolicy) -> Self {
        Self { policy, begun: Instant::now(), made: 1, in_vain: 0 }
    }

    /// How many were made.
    pub(crate) fn made(&self) -> u32 {
        self.made
    }

    /// For how long it was tried.
    pub(crate) fn waited(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Something came of the last one: time and waits begin anew.
    pub(crate) fn progressed(&mut self) {
        self.begun = Instant::now();
        self.in_vain = 0;
    }

    /// How long to wait before the next try; `None` when there is none. `asked` is for how long the server wants to be left
    /// alone.
    pub(crate) fn next(&mut self, asked: Option<Duration>) -> Option<Duration> {
        let RetryPolicy { first_wait, longest_wait, limit, .. } = self.policy;
        let longest = first_wait.saturating_mul(1 << self.in_vain.min(16)).min(longest_wait);
        // At least half of it: too short a wait is a request in vain.
        let wait = longest.mul_f64(0.5 + 0.5 * random_share()).max(asked.unwrap_or_default());
        if self.begun.elapsed() + wait > limit {
            return None;
        }
        self.made += 1;
        self.in_vain += 1;
        Some(wait)
    }
}

/// Between 0 and 1. The standard library draws keys for its maps at random: that is good enough here.
fn random_share() -> f64 {
    let drawn = RandomState::new().hash_one(0);
    (drawn >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest_and_end_with_the_time() {
        let policy = RetryPolicy { limit: Duration::from_secs(3600), ..RetryPolicy::default() };
        let mut tries = Tries::begin(policy);
        let waits: Vec<_> = (0..10).map(|_| tries.next(None).unwrap()).collect();
        assert!(waits[0] >= Duration::from_millis(100) && waits[0] <= Duration::from_millis(200));
        assert!(waits[3] >= Duration::from_millis(800) && waits[3] <= Duration::from_millis(1600));
        assert!(waits[9] <= Duration::from_secs(10) && waits[9] >= Duration::from_secs(5));
        assert_eq!(tries.next(Some(Duration::from_secs(30))), Some(Duration::from_secs(30)));
        assert_eq!(tries.next(Some(Duration::from_secs(3601))), None);
        assert_eq!(tries.made(), 12);
    }
}
