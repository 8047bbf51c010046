//! What goes wrong: at calls counted from 1, by script or by chance, and at places that stay bad.
//!
//! Every call of the seam is counted, whatever it does, so that a test can let each one of a scan fail in
//! turn ([`Faults::at`]), and the number of a call in a run without faults is its number in a run
//! with one, up to the fault.
//!
//! Invariant: a fault that makes no sense for a call (a short `open`) does nothing.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::seed::Random;

/// What happens to one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// A read returns at most this many bytes, and at least one.
    Short(usize),
    /// A read fails with EINTR.
    Interrupted,
    /// The call fails with EIO.
    Failed,
    /// The call takes this much longer.
    Slow(Duration),
}

/// The calls that are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Call {
    /// A file is opened.
    Open,
    /// A directory is listed.
    ReadDir,
    /// A file is looked at, open or not.
    Metadata,
    /// Bytes are read, by whatever method.
    Read,
    /// The kernel is told something.
    Advise,
    /// The kernel is asked what it has cached.
    Residency,
    /// A queue is opened.
    OpenQueue,
}

/// All that goes wrong.
#[derive(Debug, Clone, Default)]
pub struct Faults {
    script: BTreeMap<u64, Fault>,
    chance: Option<(Random, u64)>,
    unreadable: Vec<(PathBuf, Range<u64>)>,
}

impl Faults {
    /// Nothing.
    pub fn none() -> Self {
        Self::default()
    }

    /// One fault, at the call of this number.
    pub fn at(call: u64, fault: Fault) -> Self {
        Self { script: BTreeMap::from([(call, fault)]), ..Self::default() }
    }

    /// Faults that a correct reader survives (short reads, interruptions, slow calls), in so many of a thousand
    /// calls.
    pub fn by_chance(seed: u64, of_a_thousand: u64) -> Self {
        Self { chance: Some((Random::new(seed), of_a_thousand)), ..Self::default() }
    }

    /// Adds a fault at the call of this number.
    #[must_use]
    pub fn and_at(mut self, call: u64, fault: Fault) -> Self {
        self.script.insert(call, fault);
        self
    }

    /// Adds bytes of a file that cannot be read, ever: what is read ends before them, or fails.
    #[must_use]
    pub fn and_unreadable(mut self, path: &Path, range: Range<u64>) -> Self {
        self.unreadable.push((path.to_owned(), range));
        self
    }

    /// What happens to the call of this number.
    pub(crate) fn next(&mut self, number: u64) -> Option<Fault> {
        let by_chance = self.chance.as_mut().and_then(|(random, of_a_thousand)| {
            if random.below(1000) >= *of_a_thousand {
                return None;
            }
            Some(match random.below(3) {
                0 => Fault::Short(random.below(40_000) as usize + 1),
                1 => Fault::Interrupted,
                _ => Fault::Slow(Duration::from_micros(random.below(50_000))),
            })
        });
        self.script.remove(&number).or(by_chance)
    }

    /// Where the first bytes of a file that cannot be read begin, within a range.
    pub(crate) fn unreadable_in(&self, path: &Path, range: &Range<u64>) -> Option<u64> {
        let bad = self.unreadable.iter().filter(|(at, _)| at == path);
        let hit = bad.filter(|(_, bad)| bad.start < range.end && range.start < bad.end);
        hit.map(|(_, bad)| bad.start.max(range.start)).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_strikes_once_and_chance_repeats_itself() {
        let mut faults = Faults::at(2, Fault::Failed);
        assert_eq!([1, 2, 2, 3].map(|n| faults.next(n)), [None, Some(Fault::Failed), None, None]);
        let draw = || {
            let mut faults = Faults::by_chance(5, 300);
            (1..100).map(|n| faults.next(n)).collect::<Vec<_>>()
        };
        assert_eq!(draw(), draw());
        assert!((10..60).contains(&draw().iter().flatten().count()));
    }

    #[test]
    fn unreadable_bytes_are_found_where_they_begin() {
        let path = Path::new("/data/1");
        let faults = Faults::none().and_unreadable(path, 100..200);
        assert_eq!(faults.unreadable_in(path, &(0..101)), Some(100));
        assert_eq!(faults.unreadable_in(path, &(150..160)), Some(150));
        assert_eq!(faults.unreadable_in(path, &(200..300)), None);
        assert_eq!(faults.unreadable_in(Path::new("/data/2"), &(0..1000)), None);
    }
}
