//! A cursor over bytes that cannot run past their end: what every parser here reads with.
//!
//! Invariant: `pos <= bytes.len()`. Numbers are little-endian, as PostgreSQL stores them on the
//! machines this project supports. Nothing here panics, whatever the bytes.

use crate::error::{Error, Result};

/// Reads little-endian fields one after another, naming the structure in every error.
#[derive(Debug, Clone)]
pub struct Reader<'a> {
    structure: &'static str,
    bytes: &'a [u8],
    pos: usize,
}

impl<'a> Reader<'a> {
    /// Starts at the first byte of `bytes`, which are (part of) a `structure`.
    pub fn new(structure: &'static str, bytes: &'a [u8]) -> Self {
        Self { structure, bytes, pos: 0 }
    }

    /// Bytes consumed so far.
    pub fn pos(&self) -> usize {
        self.pos
    }

    /// Bytes left.
    pub fn remaining(&self) -> usize {
        self.bytes.len() - self.pos
    }

    /// True when nothing is left.
    pub fn is_empty(&self) -> bool {
        self.remaining() == 0
    }

    /// Goes to byte `pos`.
    ///
    /// # Errors
    /// When `pos` lies past the end.
    pub fn seek(&mut self, pos: usize) -> Result<()> {
        if pos > self.bytes.len() {
            return Err(self.corrupt(format!("offset {pos} lies past the end")));
        }
        self.pos = pos;
        Ok(())
    }

    /// The next `n` bytes.
    ///
    /// # Errors
    /// When fewer are left.
    #[inline]
    pub fn bytes(&mut self, n: usize) -> Result<&'a [u8]> {
        match self.bytes.get(self.pos..self.pos.saturating_add(n)) {
            Some(found) => {
                self.pos += n;
                Ok(found)
            }
            None => Err(self.short(n)),
        }
    }

    /// All that is left.
    pub fn rest(&mut self) -> &'a [u8] {
        let found = &self.bytes[self.pos..];
        self.pos = self.bytes.len();
        found
    }

    /// The bytes up to the next NUL, which is consumed too.
    ///
    /// # Errors
    /// When there is no NUL.
    pub fn cstr(&mut self) -> Result<&'a [u8]> {
        let rest = &self.bytes[self.pos..];
        match rest.iter().position(|&b| b == 0) {
            Some(n) => {
                self.pos += n + 1;
                Ok(&rest[..n])
            }
            None => Err(self.corrupt("a string without its terminating zero")),
        }
    }

    /// Moves up to the next multiple of `to` (a power of two), or to the end if that is nearer.
    pub fn align(&mut self, to: usize) {
        debug_assert!(to.is_power_of_two());
        self.pos = ((self.pos + to - 1) & !(to - 1)).min(self.bytes.len());
    }

    /// An error about the byte the cursor stands on.
    pub fn corrupt(&self, what: impl Into<std::borrow::Cow<'static, str>>) -> Error {
        Error::corrupt(self.structure, self.pos, what)
    }

    #[cold]
    fn short(&self, wanted: usize) -> Error {
        self.corrupt(format!("{wanted} bytes expected, {} left", self.remaining()))
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        match self.bytes.get(self.pos..).and_then(|rest| rest.first_chunk::<N>()) {
            Some(found) => {
                self.pos += N;
                Ok(*found)
            }
            None => Err(self.short(N)),
        }
    }
}

macro_rules! number {
    ($($name:ident -> $ty:ty),* $(,)?) => {
        impl Reader<'_> {
            $(
                #[doc = concat!("The next field, a `", stringify!($ty), "`.\n\n# Errors\nWhen too few bytes are left.")]
                #[inline]
                pub fn $name(&mut self) -> Result<$ty> {
                    Ok(<$ty>::from_le_bytes(self.array()?))
                }
            )*
        }
    };
}

number! {
    u8 -> u8, u16 -> u16, u32 -> u32, u64 -> u64,
    i8 -> i8, i16 -> i16, i32 -> i32, i64 -> i64,
    f32 -> f32, f64 -> f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_in_order_and_the_end_is_an_error() {
        let mut r = Reader::new("test", &[1, 2, 0, 0xFF, 0xFF, 0xFF, 0xFF]);
        assert_eq!(r.u8().unwrap(), 1);
        assert_eq!(r.u16().unwrap(), 2);
        assert_eq!(r.i32().unwrap(), -1);
        assert!(r.is_empty());
        let message = r.u16().unwrap_err().to_string();
        assert_eq!(message, "corrupt test: 2 bytes expected, 0 left (byte 7)");
    }

    #[test]
    fn aligning_never_passes_the_end() {
        let mut r = Reader::new("test", &[0; 5]);
        r.bytes(5).unwrap();
        r.align(8);
        assert_eq!(r.pos(), 5);
    }
}
