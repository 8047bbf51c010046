//! Decompression of pglz, PostgreSQL's own format for values and, as an option, WAL images.
//!
//! A control byte says for each of the next eight items, lowest bit first, whether it is a
//! literal byte (0) or a match (1): two bytes with length - 3 in four bits and the distance back
//! in twelve, and a third byte that adds to the length when the four bits are all set. Matches
//! may overlap what they write: a distance of 1 repeats one byte.
//!
//! Invariants: nothing outside of the input is read and nothing before the value is copied, the
//! output grows by exactly `raw_size` bytes or not at all, and no memory is taken before the
//! input is long enough to fill it. The output is zeroed first, so that copies can be made in
//! whole chunks that reach past a match; what they put there is overwritten by the next item.
//!
//! Source: `src/common/pg_lzcompress.c`, PostgreSQL 14 to 18.

use crate::error::{Error, Result};

const STRUCTURE: &str = "pglz";
/// A match of 3 bytes writes at most 18 + 255, and no other item does better.
const MAX_EXPANSION: usize = (18 + 255) / 3;
/// What the four bits of the length can say at most, with the 3 that is always added.
const LONGEST_SHORT_MATCH: usize = 18;
/// Copied at once where the output has room.
const CHUNK: usize = 16;

/// Appends the `raw_size` bytes that `data` stands for to `out`; leaves `out` as it was on error.
///
/// # Errors
/// Corrupt: the input ends inside an item, reaches back before the value, or does not come out at
/// `raw_size` with its last byte.
pub fn decompress(data: &[u8], raw_size: usize, out: &mut Vec<u8>) -> Result<()> {
    if raw_size > data.len().saturating_mul(MAX_EXPANSION) {
        let what = format!("{} bytes cannot become {raw_size}", data.len());
        return Err(Error::corrupt(STRUCTURE, 0, what));
    }
    let start = out.len();
    out.resize(start.saturating_add(raw_size), 0);
    let value = out.get_mut(start..).unwrap_or_default();
    let result = Decoder { data, read: 0, value, written: 0 }.run();
    if result.is_err() {
        out.truncate(start);
    }
    result
}

struct Decoder<'a> {
    data: &'a [u8],
    read: usize,
    value: &'a mut [u8],
    written: usize,
}

impl Decoder<'_> {
    fn run(mut self) -> Result<()> {
        while let Some(&control) = self.data.get(self.read)
            && self.written < self.value.len()
        {
            self.read += 1;
            if control == 0 && self.eight_literals() {
                continue;
            }
            self.items(control)?;
        }
        if self.read != self.data.len() || self.written != self.value.len() {
            let (left, missing) = (self.data.len() - self.read, self.value.len() - self.written);
            return Err(self.corrupt(format!("{left} bytes left over, {missing} missing")));
        }
        Ok(())
    }

    /// False when input or output has no room for eight bytes.
    #[inline]
    fn eight_literals(&mut self) -> bool {
        let from = self.data.get(self.read..).and_then(|rest| rest.first_chunk::<8>());
        let to = self.value.get_mut(self.written..).and_then(|rest| rest.first_chunk_mut::<8>());
        let (Some(from), Some(to)) = (from, to) else { return false };
        *to = *from;
        self.read += 8;
        self.written += 8;
        true
    }

    #[inline]
    fn items(&mut self, control: u8) -> Result<()> {
        for item in 0..8 {
            if self.read >= self.data.len() || self.written >= self.value.len() {
                break;
            }
            if control >> item & 1 == 1 {
                let (distance, length) = self.match_tag()?;
                self.copy_match(distance, length)?;
            } else if let (Some(to), Some(from)) =
                (self.value.get_mut(self.written), self.data.get(self.read))
            {
                *to = *from;
                self.read += 1;
                self.written += 1;
            }
        }
        Ok(())
    }

    /// Distance back and length of the match whose tag is next.
    #[inline]
    fn match_tag(&mut self) -> Result<(usize, usize)> {
        let Some(&[first, second]) = self.data.get(self.read..).and_then(|r| r.first_chunk())
        else {
            return Err(self.corrupt("the input ends inside a match"));
        };
        self.read += 2;
        let distance = usize::from(first & 0xF0) << 4 | usize::from(second);
        let mut length = usize::from(first & 0x0F) + 3;
        if length == LONGEST_SHORT_MATCH {
            let Some(&more) = self.data.get(self.read) else {
                return Err(self.corrupt("the input ends inside a match"));
            };
            self.read += 1;
            length += usize::from(more);
        }
        Ok((distance, length))
    }

    /// A match that would pass the end of the value is cut there, as PostgreSQL does.
    #[inline]
    fn copy_match(&mut self, distance: usize, length: usize) -> Result<()> {
        let from = match self.written.checked_sub(distance) {
            Some(from) if distance != 0 => from,
            _ => return Err(self.bad_distance(distance)),
        };
        let end = (self.written + length).min(self.value.len());
        if distance >= CHUNK && end + CHUNK <= self.value.len() {
            self.copy_chunks(from, end);
        } else {
            self.copy_exactly(from, end);
        }
        self.written = end;
        Ok(())
    }

    /// Needs a distance of a chunk or more, and room for a chunk after `end`.
    #[inline]
    fn copy_chunks(&mut self, mut from: usize, end: usize) {
        let mut to = self.written;
        while to < end {
            let source = self.value.get(from..).and_then(|rest| rest.first_chunk::<CHUNK>());
            let Some(source) = source.copied() else { return };
            let target = self.value.get_mut(to..).and_then(|rest| rest.first_chunk_mut::<CHUNK>());
            let Some(target) = target else { return };
            *target = source;
            from += CHUNK;
            to += CHUNK;
        }
    }

    /// Each round can copy all that lies between source and target, which doubles.
    fn copy_exactly(&mut self, from: usize, end: usize) {
        let mut to = self.written;
        while to < end {
            let length = (to - from).min(end - to);
            self.value.copy_within(from..from + length, to);
            to += length;
        }
    }

    #[cold]
    fn bad_distance(&self, distance: usize) -> Error {
        self.corrupt(format!("a match reaches {distance} back after {} bytes", self.written))
    }

    #[cold]
    fn corrupt(&self, what: impl Into<std::borrow::Cow<'static, str>>) -> Error {
        Error::corrupt(STRUCTURE, self.read, what)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decompressed(data: &[u8], raw_size: usize) -> Result<Vec<u8>> {
        let mut out = b"before".to_vec();
        match decompress(data, raw_size, &mut out) {
            Ok(()) => assert_eq!(out.len(), 6 + raw_size),
            Err(_) => assert_eq!(out.len(), 6),
        }
        decompress(data, raw_size, &mut out).map(|()| out.split_off(6 + raw_size))
    }

    fn refusal(data: &[u8], raw_size: usize) -> String {
        let mut out = vec![7];
        let error = decompress(data, raw_size, &mut out).unwrap_err();
        assert_eq!(out, [7], "an error leaves the output as it was");
        error.to_string()
    }

    /// The simplest reading of the format: what the fast one has to agree with.
    fn slow(data: &[u8], raw_size: usize) -> Option<Vec<u8>> {
        let (mut out, mut input) = (Vec::new(), data.iter().copied().peekable());
        while out.len() < raw_size
            && let Some(control) = input.next()
        {
            for bit in 0..8 {
                if out.len() >= raw_size || input.peek().is_none() {
                    break;
                }
                if control >> bit & 1 == 0 {
                    out.push(input.next()?);
                    continue;
                }
                let (first, second) = (usize::from(input.next()?), usize::from(input.next()?));
                let extra = if first & 15 == 15 { usize::from(input.next()?) } else { 0 };
                let distance = (first & 0xF0) << 4 | second;
                let from = out.len().checked_sub(distance).filter(|_| distance > 0)?;
                for n in 0..((first & 15) + 3 + extra).min(raw_size - out.len()) {
                    out.push(out[from + n]);
                }
            }
        }
        (out.len() == raw_size && input.next().is_none()).then_some(out)
    }

    #[test]
    fn literals_and_an_overlapping_match() {
        // "11234" and then 16 bytes from 4 back.
        let data = [0b0010_0000, b'1', b'1', b'2', b'3', b'4', 0x0D, 4];
        assert_eq!(decompressed(&data, 21).unwrap(), b"112341234123412341234");
    }

    #[test]
    fn a_distance_of_one_repeats_a_byte() {
        assert_eq!(decompressed(&[0b10, b'a', 0x0F, 1, 255], 274).unwrap(), [b'a'; 274]);
    }

    #[test]
    fn a_match_past_the_end_of_the_value_is_cut() {
        assert_eq!(decompressed(&[0b10, b'a', 0x0F, 1, 255], 100).unwrap(), [b'a'; 100]);
    }

    #[test]
    fn a_servers_value_comes_out_as_it_went_in() {
        let expected: String = (0..200).map(|n| format!("row {n} of two hundred, ")).collect();
        assert_eq!(decompressed(SERVER_VALUE, expected.len()).unwrap(), expected.as_bytes());
    }

    /// What PostgreSQL 15 stored for that text (after the length words).
    const SERVER_VALUE: &[u8] = include_bytes!("../fixtures/compressed/pglz.bin");

    #[test]
    fn damage_is_named() {
        assert!(refusal(&[0b1, 0x00, 1], 3).contains("a match reaches 1 back after 0 bytes"));
        assert!(refusal(&[0b10, b'a', 0x00, 0], 4).contains("a match reaches 0 back"));
        assert!(refusal(&[0b10, b'a', 0x00], 4).contains("ends inside a match"));
        assert!(refusal(&[0b10, b'a', 0x0F, 1], 30).contains("ends inside a match"));
        assert!(refusal(&[0, b'a'], 2).contains("0 bytes left over, 1 missing"));
        assert!(refusal(&[0, b'a', b'b'], 1).contains("1 bytes left over, 0 missing"));
    }

    #[test]
    fn a_huge_size_claimed_by_few_bytes_takes_no_memory() {
        assert!(refusal(&[0; 20], 1 << 30).contains("20 bytes cannot become 1073741824"));
        assert!(refusal(&[], usize::MAX).contains("cannot become"));
    }

    #[test]
    fn nothing_becomes_nothing() {
        assert_eq!(decompressed(&[], 0).unwrap(), b"");
    }

    proptest! {
        #[test]
        fn fast_and_slow_agree_on_arbitrary_bytes(
            data in prop::collection::vec(any::<u8>(), 0..200), raw_size in 0_usize..600,
        ) {
            prop_assert_eq!(decompressed(&data, raw_size).ok(), slow(&data, raw_size));
        }

        #[test]
        fn fast_and_slow_agree_on_sound_values(
            items in prop::collection::vec((any::<bool>(), any::<u8>(), 3_usize..274, any::<u16>()), 1..200),
        ) {
            let (data, raw_size) = encoded(&items);
            let expected = slow(&data, raw_size);
            prop_assert!(expected.is_some());
            prop_assert_eq!(decompressed(&data, raw_size).ok(), expected);
        }
    }

    /// Literals and matches put into the format, with distances that are in bounds.
    fn encoded(items: &[(bool, u8, usize, u16)]) -> (Vec<u8>, usize) {
        let (mut data, mut raw_size) = (Vec::new(), 0);
        for group in items.chunks(8) {
            let control_at = data.len();
            data.push(0);
            for (bit, &(is_match, byte, length, distance)) in group.iter().enumerate() {
                if !is_match || raw_size == 0 {
                    data.push(byte);
                    raw_size += 1;
                    continue;
                }
                let distance = 1 + usize::from(distance) % raw_size.min(4095);
                let nibble = (length - 3).min(15) as u8;
                data[control_at] |= 1 << bit;
                data.extend([(distance >> 4) as u8 & 0xF0 | nibble, distance as u8]);
                data.extend((nibble == 15).then(|| (length - 18) as u8));
                raw_size += length;
            }
        }
        (data, raw_size)
    }
}
