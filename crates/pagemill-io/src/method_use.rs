//! Which methods fetched the blocks of a storage, what those that `auto` chooses between were measured
//! to cost, and the reasons of its choices.
//!
//! Why here: a choice is made for each stretch of each stream, and what one stream found out about the
//! machine holds for the next.
//!
//! Invariant: reasons are few and short: each is kept once, and only the first [`MOST_REASONS`].

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::read_settings::IoMethod;

const MOST_REASONS: usize = 8;

/// The methods for blocks that are in the page cache, in the order they are tried.
const CACHED: [IoMethod; 2] = [IoMethod::Mmap, IoMethod::Pread];
/// After so many cached stretches the dearer method is tried again.
const TRY_AGAIN: u64 = 256;

/// Shared by all threads that read through the storage.
#[derive(Debug, Default)]
pub struct MethodUse {
    blocks: [AtomicU64; IoMethod::ALL.len()],
    /// Picoseconds for one cached block, the pages' use included; 0 when never measured.
    costs: [AtomicU64; IoMethod::ALL.len()],
    cached_stretches: AtomicU64,
    ring_refused: AtomicBool,
    reasons: Mutex<Vec<String>>,
}

impl MethodUse {
    /// Adds blocks that a method fetched.
    pub fn record(&self, method: IoMethod, blocks: u64) {
        self.blocks[method as usize].fetch_add(blocks, Relaxed);
    }

    /// Blocks that a method fetched so far.
    pub fn blocks(&self, method: IoMethod) -> u64 {
        self.blocks[method as usize].load(Relaxed)
    }

    /// The method that fetched the most blocks; `None` when none were fetched.
    pub fn most_used(&self) -> Option<IoMethod> {
        let most = IoMethod::ALL.into_iter().max_by_key(|method| self.blocks(*method))?;
        (self.blocks(most) > 0).then_some(most)
    }

    /// Keeps why a method was chosen.
    pub fn explain(&self, reason: String) {
        let mut reasons = self.reasons.lock().unwrap_or_else(PoisonError::into_inner);
        if reasons.len() < MOST_REASONS && !reasons.contains(&reason) {
            reasons.push(reason);
        }
    }

    /// Why methods were chosen, in the order of the choices.
    pub fn reasons(&self) -> Vec<String> {
        let mut reasons = self.reasons.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let measured = CACHED.map(|method| (method, self.cost(method)));
        if let [(one, Some(cost)), (other, Some(more))] = measured {
            reasons.push(format!(
                "cached: {one} {} ns a block, {other} {} ns",
                cost / 1000,
                more / 1000
            ));
        }
        reasons
    }

    /// The method to read a cached stretch with: the cheapest one, once each was tried.
    pub fn cached_choice(&self, may_map: bool) -> IoMethod {
        if !may_map {
            return IoMethod::Pread;
        }
        let stretch = self.cached_stretches.fetch_add(1, Relaxed);
        if let Some(untried) = CACHED.into_iter().find(|method| self.cost(*method).is_none()) {
            return untried;
        }
        let [one, other] = CACHED;
        let (best, dearer) =
            if self.cost(one) <= self.cost(other) { (one, other) } else { (other, one) };
        if stretch % TRY_AGAIN == TRY_AGAIN - 1 { dearer } else { best }
    }

    /// Takes note of the time that a cached stretch took.
    pub fn measured(&self, method: IoMethod, blocks: u32, took: Duration) {
        let picoseconds = took.as_nanos().saturating_mul(1000) / u128::from(blocks.max(1));
        let now = u64::try_from(picoseconds).unwrap_or(u64::MAX).max(1);
        let cost = &self.costs[method as usize];
        let before = cost.load(Relaxed);
        // One slow stretch does not decide.
        let kept = if before == 0 { now } else { before - before / 4 + now / 4 };
        cost.store(kept, Relaxed);
    }

    fn cost(&self, method: IoMethod) -> Option<u64> {
        Some(self.costs[method as usize].load(Relaxed)).filter(|cost| *cost > 0)
    }

    /// The method to keep several reads in flight with.
    pub fn queued_choice(&self) -> IoMethod {
        if self.ring_refused.load(Relaxed) { IoMethod::Worker } else { IoMethod::IoUring }
    }

    /// Takes note of a method that the platform refused, and why.
    pub fn refuse(&self, method: IoMethod, why: &str) {
        if method == IoMethod::IoUring {
            self.ring_refused.store(true, Relaxed);
        }
        self.explain(format!("not {method}: {why}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_method_of_most_blocks_is_told_and_reasons_are_told_once() {
        let used = MethodUse::default();
        assert_eq!(used.most_used(), None);
        used.record(IoMethod::Pread, 3);
        used.record(IoMethod::Mmap, 4);
        assert_eq!((used.most_used(), used.blocks(IoMethod::Pread)), (Some(IoMethod::Mmap), 3));
        used.explain("all cached".into());
        used.explain("all cached".into());
        assert_eq!(used.reasons(), ["all cached"]);
    }
}
