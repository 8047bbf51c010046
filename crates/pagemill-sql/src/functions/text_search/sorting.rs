//! The server's sort, which has its own order of what is equal.
//!
//! Up to six elements, and those that are in order already, keep theirs. Others are parted around one in the middle, with
//! the equal ones put aside at both ends until all are parted, then brought between the parts. Which of several equal words
//! comes first decides about ranks and how queries look.
//!
//! Source: `pg_qsort` made of `src/include/lib/sort_template.h`, PostgreSQL 14 to 18, after J. L. Bentley and M. D. McIlroy,
//! "Engineering a Sort Function".

use std::cmp::Ordering;

/// Fewer are sorted by exchanging neighbors.
const FEW: usize = 7;
/// Of more the one in the middle is the median of nine.
const MANY: usize = 40;

/// Sorts as the server does.
pub(super) fn sort<T>(mut all: &mut [T], order: &impl Fn(&T, &T) -> Ordering) {
    loop {
        if all.len() < FEW {
            return exchange(all, order);
        }
        if all.is_sorted_by(|a, b| order(a, b).is_le()) {
            return;
        }
        let (below, above) = part(all, order);
        let start = all.len() - above;
        let (first, rest) = std::mem::take(&mut all).split_at_mut(start);
        let (lower, upper) = (&mut first[..below], rest);
        // The shorter part first.
        let (shorter, longer) = if below <= above { (lower, upper) } else { (upper, lower) };
        if shorter.len() > 1 {
            sort(shorter, order);
        }
        if longer.len() <= 1 {
            return;
        }
        all = longer;
    }
}

/// Every element goes down as far as those before it are above it.
fn exchange<T>(all: &mut [T], order: &impl Fn(&T, &T) -> Ordering) {
    for end in 1..all.len() {
        let mut at = end;
        while at > 0 && order(&all[at - 1], &all[at]).is_gt() {
            all.swap(at - 1, at);
            at -= 1;
        }
    }
}

/// Parts elements into those below the one in the middle, those like it and those above it; how many are below and above.
fn part<T>(all: &mut [T], order: &impl Fn(&T, &T) -> Ordering) -> (usize, usize) {
    let len = all.len();
    all.swap(0, middle(all, order));
    // Like it: those before `low_equal` and behind `high_equal`. Both ends of what is not parted yet: `low` and `high`, the
    // latter behind the last one.
    let (mut low_equal, mut low, mut high, mut high_equal) = (1, 1, len, len);
    loop {
        while low < high && order(&all[low], &all[0]).is_le() {
            if order(&all[low], &all[0]).is_eq() {
                all.swap(low_equal, low);
                low_equal += 1;
            }
            low += 1;
        }
        while low < high && order(&all[high - 1], &all[0]).is_ge() {
            if order(&all[high - 1], &all[0]).is_eq() {
                all.swap(high - 1, high_equal - 1);
                high_equal -= 1;
            }
            high -= 1;
        }
        if low >= high {
            break;
        }
        all.swap(low, high - 1);
        low += 1;
        high -= 1;
    }
    let (below, above) = (low - low_equal, high_equal - high);
    let moved = low_equal.min(below);
    (0..moved).for_each(|at| all.swap(at, low - moved + at));
    let moved = above.min(len - high_equal);
    (0..moved).for_each(|at| all.swap(low + at, len - moved + at));
    (below, above)
}

/// The place of the element that others are held against.
fn middle<T>(all: &[T], order: &impl Fn(&T, &T) -> Ordering) -> usize {
    let (len, median) = (all.len(), |a, b, c| median(all, [a, b, c], order));
    if len == FEW {
        return len / 2;
    }
    let (mut first, mut middle, mut last) = (0, len / 2, len - 1);
    if len > MANY {
        let step = len / 8;
        first = median(first, first + step, first + 2 * step);
        middle = median(middle - step, middle, middle + step);
        last = median(last - 2 * step, last - step, last);
    }
    median(first, middle, last)
}

/// The place of the one in the middle of three.
fn median<T>(all: &[T], [a, b, c]: [usize; 3], order: &impl Fn(&T, &T) -> Ordering) -> usize {
    let is_below = |x: usize, y: usize| order(&all[x], &all[y]).is_lt();
    match is_below(a, b) {
        true if is_below(b, c) => b,
        true if is_below(a, c) => c,
        true => a,
        false if is_below(c, b) => b,
        false if is_below(a, c) => a,
        false => c,
    }
}
