//! Which methods fetched the blocks of a storage, what those that `auto` chooses between were measured
//! to cost, and the reasons of its choices.
//!
//! Why with the storage: a choice is made again and again for each stream, and what one stream found out about the
//! machine holds for the next.
//!
//! Invariant: reasons are few and short: each is kept once, and only the first few.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use pagemill_io::{IoMethod, Storage};

const MOST_REASONS: usize = 8;

/// The methods for blocks that are in the page cache, in the order they are tried.
const CACHED: [IoMethod; 2] = [IoMethod::Mmap, IoMethod::Pread];

/// Windows that are mapped before reading is tried: a mapping's first faults are its dearest.
const FIRST_WINDOWS: u64 = 4;

/// No copy of a block is cheaper than this, in picoseconds: 8 kB at 32 GB/s.
const CHEAPER_THAN_A_COPY: u64 = 250_000;

/// How many times as dear a method is that is seldom tried again.
const HOPELESS: u64 = 2;

/// Shared by all threads that read through the storage.
#[derive(Debug, Default)]
pub struct MethodUse {
    blocks: [AtomicU64; IoMethod::COUNT],
    /// Picoseconds for one cached block, the pages' use included; 0 when never measured.
    costs: [AtomicU64; IoMethod::COUNT],
    cached_windows: AtomicU64,
    ring_refused: AtomicBool,
    mapping_refused: AtomicBool,
    reasons: Mutex<Vec<String>>,
}

impl MethodUse {
    /// That of a storage and its clones.
    pub fn of(storage: &Storage) -> &Self {
        storage.kept_above()
    }

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
        let most = IoMethod::ALL
            .into_iter()
            .chain([IoMethod::Own])
            .max_by_key(|method| self.blocks(*method))?;
        (self.blocks(most) > 0).then_some(most)
    }

    /// Keeps why a method was chosen.
    pub fn explain(&self, reason: String) {
        let mut reasons = self.reasons.lock().unwrap_or_else(PoisonError::into_inner);
        if reasons.len() < MOST_REASONS && !reasons.contains(&reason) {
            tracing::debug!(%reason, "method to read");
            reasons.push(reason);
        }
    }

    /// Why methods were chosen, in the order of the choices.
    pub fn reasons(&self) -> Vec<String> {
        let mut reasons = self.reasons.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let measured = CACHED.map(|method| (method, self.cost(method)));
        match measured {
            [(one, Some(cost)), (other, Some(more))] => reasons.push(format!(
                "cached: {one} {} ns a block, {other} {} ns",
                cost / 1000,
                more / 1000
            )),
            [(one, Some(cost)), _] if cost < CHEAPER_THAN_A_COPY => reasons
                .push(format!("cached: {one} {} ns a block, cheaper than any copy", cost / 1000)),
            _ if self.cached_windows.load(Relaxed) > 0 => {
                reasons.push("cached: mmap, too little to compare it with pread".into());
            }
            _ => {}
        }
        reasons
    }

    /// The method to read a window of cached blocks with: the cheapest one, once each was tried.
    pub fn cached_choice(&self, may_map: bool) -> IoMethod {
        if !self.maps(may_map) {
            return IoMethod::Pread;
        }
        let window = self.cached_windows.fetch_add(1, Relaxed);
        if self.cost(IoMethod::Mmap).is_some_and(|cost| cost < CHEAPER_THAN_A_COPY) {
            return IoMethod::Mmap;
        }
        let [one, other] = CACHED;
        if self.cost(one).is_none() || window < FIRST_WINDOWS {
            return one;
        }
        if self.cost(other).is_none() {
            return other;
        }
        let (best, dearer) =
            if self.cost(one) <= self.cost(other) { (one, other) } else { (other, one) };
        let hopeless = self.cost(dearer) > self.cost(best).map(|cost| HOPELESS * cost);
        let again = if hopeless { is_late_trial(window) } else { is_trial(window) };
        if again { dearer } else { best }
    }

    /// Takes note of the time that a window of cached blocks took.
    pub fn measured(&self, method: IoMethod, blocks: u32, took: Duration) {
        let picoseconds = took.as_nanos().saturating_mul(1000) / u128::from(blocks.max(1));
        let now = u64::try_from(picoseconds).unwrap_or(u64::MAX).max(1);
        let cost = &self.costs[method as usize];
        let before = cost.load(Relaxed);
        // What disturbs a measurement only ever makes it longer: the lowest counts, and ages slowly.
        let kept = if before == 0 { now } else { now.min(before + before / 64) };
        cost.store(kept, Relaxed);
    }

    fn cost(&self, method: IoMethod) -> Option<u64> {
        Some(self.costs[method as usize].load(Relaxed)).filter(|cost| *cost > 0)
    }

    /// The method to keep several reads in flight with.
    pub fn queued_choice(&self) -> IoMethod {
        if self.ring_refused.load(Relaxed) { IoMethod::Worker } else { IoMethod::IoUring }
    }

    /// True when files may be mapped and the platform has not refused to.
    pub fn maps(&self, may_map: bool) -> bool {
        may_map && !self.mapping_refused.load(Relaxed)
    }

    /// Takes note of a method that the platform refused, and why.
    pub fn refuse(&self, method: IoMethod, why: &str) {
        match method {
            IoMethod::IoUring => self.ring_refused.store(true, Relaxed),
            IoMethod::Mmap => self.mapping_refused.store(true, Relaxed),
            _ => {}
        }
        self.explain(format!("not {method}: {why}"));
    }
}

/// True for the windows that try the dearer method once more: the 6th, as a process has its dearest moments in the
/// beginning, and the late ones.
fn is_trial(window: u64) -> bool {
    window == 6 || is_late_trial(window)
}

/// True for the windows that try even a hopeless method once more, as it may have been disturbed: the 8th, the 64th, and
/// every 512th.
fn is_late_trial(window: u64) -> bool {
    matches!(window, 8 | 64) || window > 0 && window.is_multiple_of(512)
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

    #[test]
    fn both_methods_are_tried_and_then_the_cheaper_one_is_taken_but_for_few_trials() {
        let used = MethodUse::default();
        let mut chosen = Vec::new();
        for _ in 0..100 {
            let method = used.cached_choice(true);
            chosen.push(method);
            let nanoseconds = if method == IoMethod::Mmap { 550 } else { 600 };
            used.measured(method, 1000, Duration::from_nanos(nanoseconds * 1000));
        }
        let dear = chosen.iter().filter(|method| **method == IoMethod::Pread).count();
        assert_eq!(chosen[..4], [IoMethod::Mmap; 4]);
        assert_eq!(chosen[4], IoMethod::Pread);
        assert!(dear <= 5, "{dear}");
        assert_eq!(used.reasons(), ["cached: mmap 550 ns a block, pread 600 ns"]);
        assert_eq!(used.cached_choice(false), IoMethod::Pread);
    }

    #[test]
    fn a_method_twice_as_dear_is_tried_again_late_and_seldom() {
        let used = MethodUse::default();
        let mut dear = Vec::new();
        for window in 0..1100 {
            let method = used.cached_choice(true);
            if method == IoMethod::Pread {
                dear.push(window);
            }
            let nanoseconds = if method == IoMethod::Mmap { 300 } else { 900 };
            used.measured(method, 1000, Duration::from_nanos(nanoseconds * 1000));
        }
        assert_eq!(dear, [4, 8, 64, 512, 1024]);
    }

    #[test]
    fn a_mapping_that_is_cheaper_than_any_copy_is_compared_with_none() {
        let used = MethodUse::default();
        for _ in 0..100 {
            assert_eq!(used.cached_choice(true), IoMethod::Mmap);
            used.measured(IoMethod::Mmap, 1000, Duration::from_micros(60));
        }
        assert_eq!(used.reasons(), ["cached: mmap 60 ns a block, cheaper than any copy"]);
    }

    #[test]
    fn one_disturbed_measurement_does_not_decide_for_good() {
        let used = MethodUse::default();
        used.measured(IoMethod::Mmap, 1, Duration::from_nanos(9000));
        used.measured(IoMethod::Pread, 1, Duration::from_nanos(600));
        let choices = (0..100).map(|_| used.cached_choice(true)).skip(FIRST_WINDOWS as usize);
        assert_eq!(choices.filter(|method| *method == IoMethod::Mmap).count(), 2);
    }
}
