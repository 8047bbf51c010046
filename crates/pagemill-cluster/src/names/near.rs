//! "Did you mean": the names closest to one that was not found.
//!
//! Close is a typing error or a few (insertion, deletion, substitution, two neighbours swapped:
//! the Damerau-Levenshtein distance in its restricted form, where no stretch is edited twice), or
//! a name that contains the wanted one or is contained in it. Letters are compared without case.

/// A name this long is not measured: no identifier is, and the cost is quadratic.
const LONGEST: usize = 256;

/// At most `max` of `candidates`, the closest first; those equally close by name. Names that are
/// not close at all are left out.
pub fn nearest<'a>(
    wanted: &str,
    candidates: impl IntoIterator<Item = &'a str>,
    max: usize,
) -> Vec<&'a str> {
    let wanted: Vec<char> = folded(wanted);
    let mut found: Vec<(usize, &str)> = candidates
        .into_iter()
        .filter_map(|name| Some((remoteness(&wanted, &folded(name))?, name)))
        .collect();
    found.sort_unstable();
    found.dedup();
    found.into_iter().take(max).map(|(_, name)| name).collect()
}

fn folded(name: &str) -> Vec<char> {
    name.chars().flat_map(char::to_lowercase).take(LONGEST).collect()
}

/// How far `name` is from `wanted`, `None` for too far. Any typing error goes before a prefix,
/// and a prefix before another substring.
fn remoteness(wanted: &[char], name: &[char]) -> Option<usize> {
    let allowed = (wanted.len() / 3).max(2);
    // Two edits make any short word of any other: keep at least half of the letters.
    let allowed = allowed.min(wanted.len().max(name.len()) / 2);
    if wanted.len().abs_diff(name.len()) <= allowed {
        let edits = distance(wanted, name);
        if edits <= allowed {
            return Some(edits);
        }
    }
    let (short, long) = if wanted.len() < name.len() { (wanted, name) } else { (name, wanted) };
    if short.len() < 3 {
        return None;
    }
    let extra = long.len() - short.len();
    if long.starts_with(short) {
        return Some(LONGEST + extra);
    }
    long.windows(short.len()).any(|part| part == short).then_some(2 * LONGEST + extra)
}

/// Edits that turn `a` into `b`. Keeps three rows of the table: the one being filled and the two
/// before it.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = vec![0; b.len() + 1];
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = Vec::with_capacity(b.len() + 1);
        row.push(i);
        for j in 1..=b.len() {
            let substituted = above[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = substituted.min(above[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(before[j - 2] + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut above, row);
    }
    above[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TABLES: [&str; 7] =
        ["orders", "order_lines", "old_orders", "customers", "pgbench_accounts", "t", "Größe"];

    #[test]
    fn a_typing_error_finds_the_name_that_was_meant() {
        assert_eq!(nearest("odrers", TABLES, 1), ["orders"]);
        assert_eq!(nearest("CUSTOMER", TABLES, 1), ["customers"]);
        assert_eq!(nearest("pgbench_acounts", TABLES, 3), ["pgbench_accounts"]);
        assert_eq!(nearest("grösse", TABLES, 3), ["Größe"]);
    }

    #[test]
    fn typing_errors_go_before_prefixes_and_prefixes_before_substrings() {
        assert_eq!(nearest("order", TABLES, 9), ["orders", "order_lines", "old_orders"]);
        assert_eq!(nearest("order", TABLES, 2), ["orders", "order_lines"]);
    }

    #[test]
    fn nothing_close_is_nothing_found() {
        assert!(nearest("invoices", TABLES, 3).is_empty());
        assert!(nearest("x", TABLES, 3).is_empty());
        assert!(nearest("", TABLES, 3).is_empty());
    }

    #[test]
    fn two_swapped_letters_are_one_edit() {
        let chars = |s: &str| s.chars().collect::<Vec<_>>();
        assert_eq!(distance(&chars("ab"), &chars("ba")), 1);
        assert_eq!(distance(&chars("kitten"), &chars("sitting")), 3);
        assert_eq!(distance(&chars(""), &chars("abc")), 3);
    }

    proptest! {
        #[test]
        fn any_names_can_be_compared(a: String, b: Vec<String>) {
            let names = nearest(&a, b.iter().map(String::as_str), 3);
            prop_assert!(names.len() <= 3);
        }

        #[test]
        fn the_distance_is_symmetric_and_zero_only_for_equals(a in "[abc]{0,6}", b in "[abc]{0,6}") {
            let (x, y): (Vec<_>, Vec<_>) = (a.chars().collect(), b.chars().collect());
            prop_assert_eq!(distance(&x, &y), distance(&y, &x));
            prop_assert_eq!(distance(&x, &y) == 0, a == b);
        }
    }
}
