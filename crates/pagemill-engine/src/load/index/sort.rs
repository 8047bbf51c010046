//! Sorts the entries of one batch by their abbreviations, a byte at a time, and then those whose abbreviations are the
//! same by their keys.
//!
//! Why not by comparing alone: of keys in no order every other comparison is guessed wrong by the processor, and most
//! abbreviations differ in few of their bytes, so that passes over the others are left out.
//!
//! Invariant: the order is that of [`compare`](super::keys::compare).

use std::cmp::Ordering;

use super::keys::Entry;

/// Fewer entries are sorted by comparing.
const LEAST_ENTRIES: usize = 1024;

/// Puts entries in order; `by_key` compares two whose abbreviations are the same.
pub(in crate::load) fn sort_entries(
    entries: &mut Vec<Entry>,
    by_key: impl Fn(&Entry, &Entry) -> Ordering,
) {
    let by_both =
        |a: &Entry, b: &Entry| a.abbreviation.cmp(&b.abbreviation).then_with(|| by_key(a, b));
    if entries.len() < LEAST_ENTRIES {
        return entries.sort_unstable_by(by_both);
    }
    sort_by_abbreviation(entries);
    for same in entries.chunk_by_mut(|a, b| a.abbreviation == b.abbreviation) {
        if same.len() > 1 {
            same.sort_unstable_by(&by_key);
        }
    }
}

fn sort_by_abbreviation(entries: &mut Vec<Entry>) {
    let first = entries.first().map_or(0, |entry| entry.abbreviation);
    let differing = entries.iter().fold(0, |bits, entry| bits | entry.abbreviation ^ first);
    let mut sorted = vec![Entry { abbreviation: 0, start: 0, len: 0 }; entries.len()];
    for shift in (0..u64::BITS).step_by(8).filter(|shift| differing >> shift & 0xFF != 0) {
        let digit = |entry: &Entry| usize::from((entry.abbreviation >> shift) as u8);
        let mut places = first_places(entries.iter().map(digit));
        for entry in &*entries {
            let place = &mut places[digit(entry)];
            sorted[*place] = *entry;
            *place += 1;
        }
        std::mem::swap(entries, &mut sorted);
    }
}

/// Where the first entry with each digit goes.
fn first_places(digits: impl Iterator<Item = usize>) -> [usize; 256] {
    let mut places = [0; 256];
    digits.for_each(|digit| places[digit] += 1);
    let mut next = 0;
    for place in &mut places {
        next += std::mem::replace(place, next);
    }
    places
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_order_is_that_of_comparing(
            abbreviations in proptest::collection::vec(
                prop_oneof![any::<u64>(), 0_u64..300, Just(u64::MAX), any::<u64>().prop_map(|n| n & 0xFF_0000_FF00)],
                0..3 * LEAST_ENTRIES,
            ),
        ) {
            let made = |(start, &abbreviation)| Entry { abbreviation, start, len: 1 };
            let mut entries: Vec<Entry> = (0..).zip(&abbreviations).map(made).collect();
            let mut expected = entries.clone();
            // The later comes first, so that a pass that happens to be stable is not enough.
            let by_key = |a: &Entry, b: &Entry| b.start.cmp(&a.start);
            expected.sort_by(|a, b| a.abbreviation.cmp(&b.abbreviation).then(by_key(a, b)));
            sort_entries(&mut entries, by_key);
            let places = |entries: &[Entry]| entries.iter().map(|e| e.start).collect::<Vec<_>>();
            prop_assert_eq!(places(&entries), places(&expected));
        }
    }
}
