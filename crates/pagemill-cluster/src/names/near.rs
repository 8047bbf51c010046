//! "Did you mean": the names closest to one that was not found.
//!
//! Close is a typing error or a few (insertion, deletion, substitution, two neighbours swapped:
//! the Damerau-Levenshtein distance in its restricted form, where no stretch is edited twice), or
//! a name that contains the wanted one or is contained in it. Letters are compared without case.

use strsim::osa_distance;

/// A name this long is not measured: no identifier is, and the cost is quadratic.
const LONGEST: usize = 256;

/// At most `max` of `candidates`, the closest first; those equally close by name. Names that are
/// not close at all are left out.
pub fn nearest<'a>(
    wanted: &str,
    candidates: impl IntoIterator<Item = &'a str>,
    max: usize,
) -> Vec<&'a str> {
    let wanted = folded(wanted);
    let mut found: Vec<(usize, &str)> = candidates
        .into_iter()
        .filter_map(|name| Some((remoteness(&wanted, &folded(name))?, name)))
        .collect();
    found.sort_unstable();
    found.dedup();
    found.into_iter().take(max).map(|(_, name)| name).collect()
}

fn folded(name: &str) -> String {
    name.chars().flat_map(char::to_lowercase).take(LONGEST).collect()
}

/// How far `name` is from `wanted`, `None` for too far. Any typing error goes before a prefix,
/// and a prefix before another substring.
fn remoteness(wanted: &str, name: &str) -> Option<usize> {
    let (wanted_len, name_len) = (wanted.chars().count(), name.chars().count());
    let extra = wanted_len.abs_diff(name_len);
    // Two edits make any short word of any other: keep at least half of the letters.
    let allowed = (wanted_len / 3).max(2).min(wanted_len.max(name_len) / 2);
    if extra <= allowed {
        let edits = osa_distance(wanted, name);
        if edits <= allowed {
            return Some(edits);
        }
    }
    let (short, long) = if wanted_len < name_len { (wanted, name) } else { (name, wanted) };
    if wanted_len.min(name_len) < 3 {
        return None;
    }
    if long.starts_with(short) {
        return Some(LONGEST + extra);
    }
    long.contains(short).then_some(2 * LONGEST + extra)
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
        let found = |wanted, name| remoteness(&folded(wanted), &folded(name));
        assert_eq!(found("abc", "acb"), Some(1));
        assert_eq!(found("kitten", "Sittin"), Some(2));
        assert_eq!(found("kitten", "sitting"), None);
    }

    proptest! {
        #[test]
        fn any_names_can_be_compared(a: String, b: Vec<String>) {
            let names = nearest(&a, b.iter().map(String::as_str), 3);
            prop_assert!(names.len() <= 3);
        }
    }
}
