//! The server's sort, which is not stable: where equal items lie afterwards decides which of them an extension keeps.
//!
//! Bentley and McIlroy's quicksort: few items by insertion, more by a partition in three parts around the median of three, or of three
//! medians. Parts that are in order already stay as they are.
//!
//! Invariant: items end in the same places as those that `pg_qsort` sorts; the stack is logarithmic in their number.
//! Source: `src/include/lib/sort_template.h`, `src/port/qsort.c`, PostgreSQL 14 to 18.

use std::cmp::Ordering;

const BY_INSERTION: usize = 7;
const BY_MEDIAN_OF_MEDIANS: usize = 41;

/// Sorts items as the server's `qsort` does.
pub fn sort<T>(items: &mut [T], compare: &impl Fn(&T, &T) -> Ordering) {
    let mut rest = items;
    while rest.len() >= BY_INSERTION && !rest.is_sorted_by(|a, b| compare(a, b).is_le()) {
        let (lower, higher) = partition(rest, compare);
        let (left, others) = std::mem::take(&mut rest).split_at_mut(lower);
        let middle = others.len() - higher;
        let (_, right) = others.split_at_mut(middle);
        let (smaller, larger) = if lower <= higher { (left, right) } else { (right, left) };
        sort(smaller, compare);
        rest = larger;
    }
    for sorted in 1..rest.len() {
        let mut at = sorted;
        while at > 0 && compare(&rest[at - 1], &rest[at]).is_gt() {
            rest.swap(at - 1, at);
            at -= 1;
        }
    }
}

/// Moves lower items to the front and higher ones to the back: how many they are of each.
fn partition<T>(items: &mut [T], compare: &impl Fn(&T, &T) -> Ordering) -> (usize, usize) {
    let len = items.len();
    items.swap(0, pivot(items, compare));
    let (mut equal_front, mut low) = (1, 1);
    let (mut high, mut equal_back) = (len - 1, len - 1);
    loop {
        while low <= high && compare(&items[low], &items[0]).is_le() {
            if compare(&items[low], &items[0]).is_eq() {
                items.swap(equal_front, low);
                equal_front += 1;
            }
            low += 1;
        }
        while low <= high && compare(&items[high], &items[0]).is_ge() {
            if compare(&items[high], &items[0]).is_eq() {
                items.swap(high, equal_back);
                equal_back -= 1;
            }
            high -= 1;
        }
        if low > high {
            break;
        }
        items.swap(low, high);
        (low, high) = (low + 1, high - 1);
    }
    let front = equal_front.min(low - equal_front);
    swap_runs(items, 0, low - front, front);
    let back = (equal_back - high).min(len - equal_back - 1);
    swap_runs(items, low, len - back, back);
    (low - equal_front, equal_back - high)
}

fn swap_runs<T>(items: &mut [T], first: usize, second: usize, len: usize) {
    (0..len).for_each(|at| items.swap(first + at, second + at));
}

fn pivot<T>(items: &[T], compare: &impl Fn(&T, &T) -> Ordering) -> usize {
    let (middle, last) = (items.len() / 2, items.len() - 1);
    let median = |places| median(items, places, compare);
    if items.len() == BY_INSERTION {
        return middle;
    }
    if items.len() < BY_MEDIAN_OF_MEDIANS {
        return median([0, middle, last]);
    }
    let step = items.len() / 8;
    let low = median([0, step, 2 * step]);
    let center = median([middle - step, middle, middle + step]);
    median([low, center, median([last - 2 * step, last - step, last])])
}

/// The place of the median of three items. Which one, of equal items, is as the server has it.
fn median<T>(items: &[T], [a, b, c]: [usize; 3], compare: &impl Fn(&T, &T) -> Ordering) -> usize {
    let order = |x: usize, y: usize| compare(&items[x], &items[y]);
    match (order(a, b).is_lt(), order(b, c)) {
        (true, Ordering::Less) | (false, Ordering::Greater) => b,
        (true, _) if order(a, c).is_lt() => c,
        (false, _) if order(a, c).is_ge() => c,
        _ => a,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Places of equal keys after a PostgreSQL 15 server's sort, seen by which value of a key hstore's input kept.
    #[test]
    fn equal_items_end_where_the_server_puts_them() {
        let kept = |keys: &str| {
            let mut items: Vec<(u8, usize)> = keys.bytes().zip(0..).collect();
            sort(&mut items, &|a, b| a.0.cmp(&b.0));
            items.dedup_by_key(|item| item.0);
            items.into_iter().map(|(key, at)| format!("{}{at} ", key as char)).collect::<String>()
        };
        assert_eq!(kept("baa"), "a1 b0 ");
        assert_eq!(kept("aabbccdd"), "a0 b2 c4 d6 ");
        for (keys, places) in KNOWN {
            assert_eq!(kept(keys), *places, "{keys}");
        }
    }

    const KNOWN: &[(&str, &str)] = &[
        ("babaaab", "a3 b6 "),
        ("cacaaabb", "a4 b7 c0 "),
        ("abadaabadababcdbacba", "a0 b6 c13 d8 "),
        ("eebcaeaeaebdedcdedccbbbaecedcdceaaedbcbdd", "a6 b20 c19 d40 e16 "),
        ("acaccbbcbcbcbaabbccaaccbcccbbcbcbabbacaba", "a36 b35 c25 "),
        (
            "decdgghbchgiecgiegfgdcbccddahceeacgiffciahiggggbhgadbdhcbfab",
            "a50 b52 c2 d0 e31 f36 g44 h48 i35 ",
        ),
        (
            "ajcibfjabdjgckefjfhbbhhhhebcblflehlciadifcliaiekbleifcfdiiifkdjddglddihflaaehedljfhlffbdbdhdfdhjjahk",
            "a44 b48 c12 d89 e75 f85 g65 h33 i57 j16 k99 l42 ",
        ),
    ];

    proptest! {
        #[test]
        fn items_are_sorted(mut items in prop::collection::vec(0u8..20, 0..200)) {
            let mut expected = items.clone();
            expected.sort_unstable();
            sort(&mut items, &|a, b| a.cmp(b));
            prop_assert_eq!(items, expected);
        }

        #[test]
        fn distinct_items_are_sorted(mut items in prop::collection::vec(any::<u32>(), 0..200)) {
            let mut expected = items.clone();
            expected.sort_unstable();
            sort(&mut items, &|a, b| a.cmp(b));
            prop_assert_eq!(items, expected);
        }
    }
}
