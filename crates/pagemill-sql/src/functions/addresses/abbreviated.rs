//! Networks as short as they can be told: `10.1/16`, `::/0`.
//!
//! Invariant: zeros are left out of IPv6 as the server leaves them out. Its search for the most of them together goes on
//! counting where a run that was not longer than the best one ended.
//!
//! Source: `inet_cidr_ntop_ipv4`, `inet_cidr_ntop_ipv6` in `src/backend/utils/adt/inet_cidr_ntop.c`, PostgreSQL 14 to 18.

use std::fmt::Write as _;
use std::ops::Range;

/// The bytes that the prefix reaches into.
pub(super) fn of_v4(address: [u8; 4], bits: u8) -> String {
    let told = address.iter().take(usize::from(bits).div_ceil(8));
    let told: Vec<String> = told.map(u8::to_string).collect();
    match told.is_empty() {
        true => format!("0/{bits}"),
        false => format!("{}/{bits}", told.join(".")),
    }
}

/// The words that the prefix reaches into, but two at least.
pub(super) fn of_v6(address: [u8; 16], bits: u8) -> String {
    if bits == 0 {
        return "::/0".to_owned();
    }
    let words = address.as_chunks::<2>().0;
    let told = &words[..usize::from(bits).div_ceil(16).max(2)];
    let zeros = zeros(told);
    let is_v4 = embeds_v4(words, told.len(), &zeros);
    let mut text = String::new();
    for (place, [high, low]) in told.iter().enumerate() {
        if zeros.contains(&place) {
            text.push_str(if place == zeros.start { ":" } else { "" });
            text.push_str(if place + 1 == told.len() { ":" } else { "" });
            continue;
        }
        // Writing to a text does not fail.
        let _ = match (is_v4, place) {
            (true, 6) => write!(text, ":{high}.{low}"),
            // The last byte may be behind the prefix.
            (true, 7) if bits > 120 => write!(text, ".{high}.{low}"),
            (true, 7) => write!(text, ".{high}"),
            _ => {
                text.push_str(if text.is_empty() { "" } else { ":" });
                write!(text, "{:x}", u16::from_be_bytes([*high, *low]))
            }
        };
    }
    format!("{text}/{bits}")
}

/// Where the most zeros stand together.
fn zeros(words: &[[u8; 2]]) -> Range<usize> {
    let (mut best, mut run) = (0..0, 0..0);
    for (place, word) in words.iter().enumerate() {
        match *word == [0, 0] {
            true if run.is_empty() => run = place..place + 1,
            true => run.end += 1,
            // A run that was not longer than the best one goes on behind other words.
            false if run.len() > best.len() => best = std::mem::take(&mut run),
            false => {}
        }
    }
    if run.len() > best.len() { run } else { best }
}

/// True for an address of IPv4 in one of IPv6.
fn embeds_v4(words: &[[u8; 2]], told: usize, zeros: &Range<usize>) -> bool {
    zeros.start == 0
        && zeros.len() != told
        && match zeros.len() {
            5 => words[5] == [0xFF, 0xFF],
            6 => true,
            7 => words[7][0] != 0 && words[7][1] != 1,
            _ => false,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v6(words: [u16; 8], bits: u8) -> String {
        let mut address = [0; 16];
        for (bytes, word) in address.as_chunks_mut::<2>().0.iter_mut().zip(words) {
            *bytes = word.to_be_bytes();
        }
        of_v6(address, bits)
    }

    #[test]
    fn only_what_the_prefix_reaches_is_told() {
        assert_eq!(of_v4([10, 1, 0, 0], 16), "10.1/16");
        assert_eq!(of_v4([0, 0, 0, 0], 0), "0/0");
        assert_eq!(of_v4([10, 0, 0, 0], 7), "10/7");
        assert_eq!(v6([0x1234, 0, 0, 0, 0, 0, 0, 0], 16), "1234::/16");
        assert_eq!(v6([0; 8], 0), "::/0");
        assert_eq!(v6([0, 0, 0, 0, 0, 0xFFFF, 0x102, 0x300], 120), "::ffff:1.2.3/120");
    }
}
