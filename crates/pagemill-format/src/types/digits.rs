//! Decimal digits, appended to a buffer: what the numeric and date types print with.
//!
//! Two digits at a time come from a table, longer integers from `itoa`; nothing is allocated.

/// `00` to `99`.
static PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[b'0'; 2]; 100];
    let mut n = 0;
    while n < 100 {
        pairs[n] = [b'0' + (n / 10) as u8, b'0' + (n % 10) as u8];
        n += 1;
    }
    pairs
};

/// The last two decimal digits of `n`.
#[inline]
pub(super) fn pair(n: u32) -> [u8; 2] {
    PAIRS[(n % 100) as usize]
}

/// The last four decimal digits of `n`.
#[inline]
pub(super) fn quad(n: u32) -> [u8; 4] {
    let ([a, b], [c, d]) = (pair(n / 100), pair(n));
    [a, b, c, d]
}

/// Appends `n` without padding.
#[inline]
pub(super) fn push_integer(n: impl itoa::Integer, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(n).as_bytes());
}

/// Appends `n` with at least two digits.
#[inline]
pub(super) fn push_two(n: u64, out: &mut Vec<u8>) {
    match u32::try_from(n) {
        Ok(small @ 0..=99) => out.extend_from_slice(&pair(small)),
        _ => push_integer(n, out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padding_is_a_minimum() {
        let mut out = Vec::new();
        for n in [0, 7, 42, 100] {
            push_two(n, &mut out);
            out.push(b' ');
        }
        assert_eq!(out, b"00 07 42 100 ");
        assert_eq!(quad(44), *b"0044");
    }
}
