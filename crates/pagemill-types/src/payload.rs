//! Payloads of fixed-length types, checked for their length.
//!
//! Invariant: a writer sees exactly `typlen` bytes of its type or fails; a row that was cut short
//! never prints as a shorter value. `typlen` is that of `src/include/catalog/pg_type.dat`,
//! PostgreSQL 14 to 18.

use pagemill_format::error::{Error, Result};

/// The `N` bytes of a fixed-length value.
#[inline]
pub(super) fn fixed<const N: usize>(structure: &'static str, value: &[u8]) -> Result<[u8; N]> {
    match value.try_into() {
        Ok(bytes) => Ok(bytes),
        Err(_) => Err(wrong_length(structure, N, value.len())),
    }
}

#[cold]
fn wrong_length(structure: &'static str, wanted: usize, found: usize) -> Error {
    Error::corrupt(structure, found.min(wanted), format!("{found} bytes, not {wanted}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_of_the_wrong_length_is_corrupt() {
        assert_eq!(fixed::<2>("int2", &[1, 2]).unwrap(), [1, 2]);
        let message = fixed::<2>("int2", &[1]).unwrap_err().to_string();
        assert_eq!(message, "corrupt int2: 1 bytes, not 2 (byte 1)");
    }
}
