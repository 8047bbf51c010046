//! Values of fixed length, many at once: the loops that most columns of most tables go through.
//!
//! Invariant: each loop gives its values and the nulls one entry for each cell; after one that fails, both are to be cut
//! back.

use arrow_buffer::NullBufferBuilder;
use pagemill_format::Error as FormatError;

use crate::conversion::{Cell, Fault};

/// Appends values of fixed length one by one, by a function that says whether they are valid.
#[inline]
pub(crate) fn fixed<'c, const N: usize>(
    cells: impl Iterator<Item = Cell<'c>>,
    nulls: &mut NullBufferBuilder,
    mut push: impl FnMut(Option<[u8; N]>) -> Result<bool, Fault>,
) -> Result<(), (usize, Fault)> {
    // Valid values that the nulls have not been told of: most are, and many at once are one addition.
    let mut valid = 0;
    for (at, cell) in cells.enumerate() {
        let bytes = match cell {
            None => None,
            Some(raw) => Some(<[u8; N]>::try_from(raw).map_err(|_| (at, wrong_length(raw, N)))?),
        };
        let is_valid = push(bytes).map_err(|fault| (at, fault))?;
        if is_valid && bytes.is_some() {
            valid += 1;
            continue;
        }
        nulls.append_n_non_nulls(std::mem::take(&mut valid));
        nulls.append_null();
    }
    nulls.append_n_non_nulls(valid);
    Ok(())
}

#[cold]
pub(crate) fn wrong_length(raw: &[u8], wanted: usize) -> Fault {
    let what = format!("{} bytes, where a value has {wanted}", raw.len());
    Fault::Damaged(FormatError::corrupt("value", 0, what))
}

/// Appends values that are numbers as they lie there.
#[inline]
pub(crate) fn plain<'c, const N: usize, T: Default>(
    cells: impl Iterator<Item = Cell<'c>>,
    nulls: &mut NullBufferBuilder,
    values: &mut Vec<T>,
    number: impl Fn([u8; N]) -> T,
) -> Result<(), (usize, Fault)> {
    fixed(cells, nulls, |found: Option<[u8; N]>| {
        values.push(found.map(&number).unwrap_or_default());
        Ok(true)
    })
}

/// Appends values that may have no place in the array, or become NULL there.
#[inline]
pub(crate) fn checked<'c, const N: usize, T: Default>(
    cells: impl Iterator<Item = Cell<'c>>,
    nulls: &mut NullBufferBuilder,
    values: &mut Vec<T>,
    convert: impl Fn([u8; N]) -> Result<Option<T>, Fault>,
) -> Result<(), (usize, Fault)> {
    fixed(cells, nulls, |found: Option<[u8; N]>| {
        let value = found.map(&convert).transpose()?.flatten();
        let is_valid = value.is_some();
        values.push(value.unwrap_or_default());
        Ok(is_valid)
    })
}
