//! SHA-384 and SHA-512.
//!
//! The constants are the fractions of roots of primes, as the standard has them, computed by whole numbers.
//!
//! Source: FIPS 180-4.

use std::sync::LazyLock;

const ROUNDS: usize = 80;

/// What the rounds add, and what both digests begin with.
struct Constants {
    rounds: [u64; ROUNDS],
    sha512: [u64; 8],
    sha384: [u64; 8],
}

static CONSTANTS: LazyLock<Constants> = LazyLock::new(|| {
    let primes: Vec<u64> = (2..)
        .filter(|n| (2..*n).take_while(|d| d * d <= *n).all(|d| n % d != 0))
        .take(ROUNDS)
        .collect();
    Constants {
        rounds: std::array::from_fn(|at| fraction_of_root(primes[at], 3)),
        sha512: std::array::from_fn(|at| fraction_of_root(primes[at], 2)),
        sha384: std::array::from_fn(|at| fraction_of_root(primes[8 + at], 2)),
    }
});

/// The first 64 bits behind the point of a square or cube root of a number below 512.
fn fraction_of_root(number: u64, degree: usize) -> u64 {
    let mut root = 0u128;
    // The root with 64 bits behind the point, bit by bit from the highest.
    for bit in (0..70).rev() {
        let candidate = root | 1 << bit;
        if !exceeds(candidate, degree, number) {
            root = candidate;
        }
    }
    root as u64
}

/// True where the power of a number with 64 bits behind the point is greater than a whole number.
fn exceeds(root: u128, degree: usize, number: u64) -> bool {
    // In digits of 32 bits, the lowest first: a power has no more than seven.
    let digits: [u64; 3] = std::array::from_fn(|at| (root >> (32 * at)) as u64 & 0xFFFF_FFFF);
    let mut power = vec![1u64];
    for _ in 0..degree {
        let mut product = vec![0u64; power.len() + digits.len() + 1];
        for (at, a) in power.iter().enumerate() {
            let mut carry = 0;
            for (more, b) in digits.iter().chain(&[0]).enumerate() {
                let sum = a * b + product[at + more] + carry;
                product[at + more] = sum & 0xFFFF_FFFF;
                carry = sum >> 32;
            }
        }
        power = product;
    }
    let whole = power
        .iter()
        .skip(2 * degree)
        .rev()
        .fold(0u128, |whole, digit| whole << 32 | u128::from(*digit));
    let has_fraction = power.iter().take(2 * degree).any(|digit| *digit != 0);
    whole > number.into() || (whole == number.into() && has_fraction)
}

/// The message in blocks of 128 bytes: with a bit behind it, zeros and its length in bits.
fn padded(message: &[u8]) -> Vec<u8> {
    let mut padded = message.to_vec();
    padded.push(0x80);
    while padded.len() % 128 != 112 {
        padded.push(0);
    }
    padded.extend((message.len() as u128 * 8).to_be_bytes());
    padded
}

fn digest(message: &[u8], mut state: [u64; 8]) -> Vec<u8> {
    for block in padded(message).as_chunks::<128>().0 {
        let mut words = [0u64; ROUNDS];
        for (word, bytes) in words.iter_mut().zip(block.as_chunks::<8>().0) {
            *word = u64::from_be_bytes(*bytes);
        }
        for at in 16..ROUNDS {
            let (x, y) = (words[at - 15], words[at - 2]);
            let x = x.rotate_right(1) ^ x.rotate_right(8) ^ (x >> 7);
            let y = y.rotate_right(19) ^ y.rotate_right(61) ^ (y >> 6);
            words[at] = words[at - 16].wrapping_add(x).wrapping_add(words[at - 7]).wrapping_add(y);
        }
        let after = words
            .iter()
            .zip(&CONSTANTS.rounds)
            .fold(state, |state, (word, constant)| round(state, word.wrapping_add(*constant)));
        for (word, add) in state.iter_mut().zip(after) {
            *word = word.wrapping_add(add);
        }
    }
    state.iter().flat_map(|word| word.to_be_bytes()).collect()
}

fn round([a, b, c, d, e, f, g, h]: [u64; 8], added: u64) -> [u64; 8] {
    let turned = e.rotate_right(14) ^ e.rotate_right(18) ^ e.rotate_right(41);
    let first = h.wrapping_add(turned).wrapping_add((e & f) ^ (!e & g)).wrapping_add(added);
    let turned = a.rotate_right(28) ^ a.rotate_right(34) ^ a.rotate_right(39);
    let second = turned.wrapping_add((a & b) ^ (a & c) ^ (b & c));
    [first.wrapping_add(second), a, b, c, d.wrapping_add(first), e, f, g]
}

/// The SHA-512 of a message.
pub(super) fn sha512(message: &[u8]) -> Vec<u8> {
    digest(message, CONSTANTS.sha512)
}

/// The SHA-384 of a message.
pub(super) fn sha384(message: &[u8]) -> Vec<u8> {
    let mut digest = digest(message, CONSTANTS.sha384);
    digest.truncate(48);
    digest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_those_of_the_standard() {
        assert_eq!(CONSTANTS.sha512[0], 0x6a09_e667_f3bc_c908);
        assert_eq!(CONSTANTS.sha384[0], 0xcbbb_9d5d_c105_9ed8);
        assert_eq!(CONSTANTS.rounds[0], 0x428a_2f98_d728_ae22);
        assert_eq!(CONSTANTS.rounds[79], 0x6c44_198c_4a47_5817);
    }

    #[test]
    fn digests_are_those_of_the_standard() {
        assert_eq!(sha512(b"abc")[..8], [0xdd, 0xaf, 0x35, 0xa1, 0x93, 0x61, 0x7a, 0xba]);
        assert_eq!(sha384(b"abc")[..8], [0xcb, 0x00, 0x75, 0x3f, 0x45, 0xa3, 0x5e, 0x8b]);
        assert_eq!(sha384(b"").len(), 48);
    }
}
