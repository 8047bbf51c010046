//! Where a stretch of input can be cut between two rows, and how many lines it has.
//!
//! Rows themselves are read later, by several threads; what is found here takes a fraction of
//! that time, because only quotes and ends of lines are counted:
//! - in CSV format with quotes doubled, an end of line is the end of a row if an even number of quotes
//!   comes before it;
//! - with another escape character, quotes and escapes are followed from the beginning;
//! - in text format, if an even number of backslashes stands directly before it.
//!
//! Invariant: the stretch starts where a row starts. In one whose lines end as they should, the cuts
//! are the ends of rows; in one with an error, reading the rows before the cut finds it.

use memchr::{memchr_iter, memchr3_iter, memmem, memrchr, memrchr2};

use super::options::CopyRules;
use super::row_reader::Newline;
use crate::copy::Format;

/// Where the last row ends that ends in this stretch.
pub(super) fn last_row_end(rules: &CopyRules, newline: Newline, bytes: &[u8]) -> Option<usize> {
    let end = if newline == Newline::Cr { b'\r' } else { b'\n' };
    match rules.format {
        Format::Text => last_text_end(end, bytes),
        Format::Csv if rules.quote == rules.escape => last_csv_end(rules.quote, end, bytes),
        Format::Csv => last_escaped_csv_end(rules, end, bytes),
    }
}

fn last_text_end(end: u8, bytes: &[u8]) -> Option<usize> {
    let mut rest = bytes;
    while let Some(at) = memrchr(end, rest) {
        rest = rest.get(..at).unwrap_or_default();
        if !ends_in_escape(rest) {
            return Some(at + 1);
        }
    }
    None
}

/// Whether what follows is escaped.
fn ends_in_escape(bytes: &[u8]) -> bool {
    bytes.iter().rev().take_while(|&&byte| byte == b'\\').count() % 2 == 1
}

fn last_csv_end(quote: u8, end: u8, bytes: &[u8]) -> Option<usize> {
    // The number of quotes before the place looked at, as far as it is odd or even.
    let mut quotes = memchr_iter(quote, bytes).count();
    let mut rest = bytes;
    while let Some(at) = memrchr2(quote, end, rest) {
        if rest.get(at) == Some(&quote) {
            quotes -= 1;
        } else if quotes.is_multiple_of(2) {
            return Some(at + 1);
        }
        rest = rest.get(..at).unwrap_or_default();
    }
    None
}

fn last_escaped_csv_end(rules: &CopyRules, end: u8, bytes: &[u8]) -> Option<usize> {
    let (mut in_quote, mut escaped, mut last) = (false, None, None);
    for at in memchr3_iter(rules.quote, rules.escape, end, bytes) {
        let byte = bytes.get(at).copied();
        if byte == Some(end) {
            last = if in_quote { last } else { Some(at + 1) };
        } else if escaped != Some(at) {
            if byte == Some(rules.quote) {
                in_quote = !in_quote;
            } else if in_quote {
                escaped = Some(at + 1);
            }
        }
    }
    last
}

/// How many lines these rows have, as COPY counts them.
pub(super) fn line_count(rules: &CopyRules, newline: Newline, bytes: &[u8]) -> u64 {
    let lines = match (rules.format, newline) {
        (Format::Csv, Newline::Lf) => memchr_iter(b'\n', bytes).count(),
        (Format::Csv, Newline::Cr | Newline::CrLf) => memchr_iter(b'\r', bytes).count(),
        (Format::Text, Newline::Lf | Newline::CrLf) => text_line_count(b'\n', bytes),
        (Format::Text, Newline::Cr) => text_line_count(b'\r', bytes),
    };
    lines as u64
}

/// Ends of lines behind a backslash are data, and not counted.
fn text_line_count(end: u8, bytes: &[u8]) -> usize {
    let behind_backslash = [b'\\', end];
    let candidates = memmem::find_iter(bytes, &behind_backslash);
    let is_escaped = |at: &usize| bytes.get(..=*at).is_some_and(ends_in_escape);
    memchr_iter(end, bytes).count() - candidates.filter(is_escaped).count()
}
