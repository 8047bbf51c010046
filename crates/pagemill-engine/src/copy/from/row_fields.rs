//! The values of one row: where each of them lies.
//!
//! A value that stands in the input as it is stays there; one with escapes or doubled quotes is put
//! together in a buffer that the next row uses again. So nothing is allocated per value.

use super::options::Forced;

/// Where a value lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Field {
    start: u32,
    /// The length, and [`IN_SCRATCH`]; [`NULL`] for a null.
    length: u32,
}

/// Set in the length of a value that lies in the buffer and not in the input. Both are shorter
/// than this: a row is limited as PostgreSQL limits it.
const IN_SCRATCH: u32 = 1 << 31;
const NULL: u32 = u32::MAX;

/// The values of a row that was read last.
#[derive(Clone, Debug, Default)]
pub(super) struct RowFields {
    fields: Vec<Field>,
    scratch: Vec<u8>,
}

impl RowFields {
    pub(super) fn clear(&mut self) {
        self.fields.clear();
        self.scratch.clear();
    }

    pub(super) fn len(&self) -> usize {
        self.fields.len()
    }

    /// The value at this place of the row that was read from `bytes`; null where there is none.
    #[inline]
    pub(super) fn value<'a>(&'a self, bytes: &'a [u8], place: usize) -> Option<&'a [u8]> {
        let field = self.fields.get(place).filter(|field| field.length != NULL)?;
        let source = if field.length & IN_SCRATCH == 0 { bytes } else { &self.scratch };
        let (start, length) = (field.start as usize, (field.length & !IN_SCRATCH) as usize);
        source.get(start..start + length)
    }

    #[inline]
    pub(super) fn push_null(&mut self) {
        self.fields.push(Field { start: 0, length: NULL });
    }

    /// Adds a value that stands in the input.
    #[inline]
    pub(super) fn push_input(&mut self, start: usize, end: usize) {
        self.push(start, end.saturating_sub(start), 0);
    }

    /// Adds a value put together by a function that appends it to the buffer, and gives it back.
    pub(super) fn push_made(&mut self, make: impl FnOnce(&mut Vec<u8>)) -> &[u8] {
        let start = self.scratch.len();
        make(&mut self.scratch);
        self.push(start, self.scratch.len() - start, IN_SCRATCH);
        self.scratch.get(start..).unwrap_or_default()
    }

    #[inline]
    fn push(&mut self, start: usize, length: usize, flag: u32) {
        // Positions are below 2^31, by the limit of a batch.
        self.fields.push(Field { start: start as u32, length: length as u32 | flag });
    }

    /// Turns the value that was added last into a null.
    pub(super) fn last_is_null(&mut self) {
        if let Some(field) = self.fields.last_mut() {
            field.length = NULL;
        }
    }

    /// What FORCE_NULL and FORCE_NOT_NULL say of the value that is added next.
    #[inline]
    pub(super) fn forced_next(&self, forced: Option<&[Forced]>) -> Forced {
        let Some(forced) = forced else { return Forced::default() };
        forced.get(self.fields.len()).copied().unwrap_or_default()
    }
}
