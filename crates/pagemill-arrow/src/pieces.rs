//! Values of variable length in the making: texts, bytes, maps and vectors, as ends and what lies before them.
//!
//! Invariant: an end is never before the one before it; what lies behind the last one is of a value that failed, and is cut
//! off with it.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, FixedSizeListArray, Float32Array, ListArray, MapArray, StringArray, StructArray,
};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::DataType;
use pagemill_format::Error as FormatError;
use pagemill_types::decode::payload;
use pagemill_types::extension::geometry::WkbForm;
use pagemill_types::extension::{geometry, hstore, vector};

use crate::conversion::{Context, Fault, unfit};
use crate::error::Remedy;
use crate::plan::entry_fields;

/// Bytes of values, one after the other.
#[derive(Default)]
pub(crate) struct Pieces {
    /// Where each ends.
    pub(crate) ends: Vec<i32>,
    pub(crate) data: Vec<u8>,
}

impl Pieces {
    pub(crate) fn end_value(&mut self) -> Result<(), Fault> {
        match i32::try_from(self.data.len()) {
            Ok(end) => self.ends.push(end),
            Err(_) => return unfit("the text or array is longer than 2 GiB", Remedy::Columns),
        }
        Ok(())
    }

    pub(crate) fn truncate(&mut self, len: usize) {
        self.ends.truncate(len);
        self.data.truncate(self.ends.last().map_or(0, |end| *end as usize));
    }

    /// Its offsets and bytes; it is empty afterwards.
    pub(crate) fn take(&mut self) -> (OffsetBuffer<i32>, Buffer) {
        (offsets(std::mem::take(&mut self.ends)), Buffer::from_vec(std::mem::take(&mut self.data)))
    }
}

/// Offsets are ends behind a zero.
pub(crate) fn offsets(mut ends: Vec<i32>) -> OffsetBuffer<i32> {
    ends.insert(0, 0);
    OffsetBuffer::new(ScalarBuffer::from(ends))
}

/// A text that is not UTF-8: which value it is in.
pub(crate) struct NotUtf8 {
    pub(crate) at: usize,
}

pub(crate) fn repeat_last(ends: &mut Vec<i32>) {
    ends.push(ends.last().copied().unwrap_or(0));
}

pub(crate) fn push_vector(
    bytes: &[u8],
    numbers: &mut Vec<f32>,
    width: Option<i32>,
) -> Result<(), Fault> {
    let found = vector::numbers(bytes)?;
    if width.is_some_and(|width| width as usize != found.len()) {
        let what = format!("{} numbers, where its type has {}", found.len(), width.unwrap_or(0));
        return Err(Fault::Damaged(FormatError::corrupt("vector", 0, what)));
    }
    numbers.extend(found.iter().map(|number| f32::from_le_bytes(*number)));
    Ok(())
}

pub(crate) fn push_wkb(bytes: &[u8], srid: Option<i32>, pieces: &mut Pieces) -> Result<(), Fault> {
    let form = if srid.is_some() { WkbForm::Iso } else { WkbForm::Extended };
    let own = geometry::srid(bytes)?;
    if let Some(declared) = srid
        && own != declared
    {
        let what = format!("a shape with the SRID {own}, where the column has {declared}");
        return unfit(what, Remedy::Columns);
    }
    geometry::write_wkb(bytes, form, &mut pieces.data)?;
    pieces.end_value()
}

pub(crate) fn vector_array(
    numbers: &mut Vec<f32>,
    ends: Vec<i32>,
    data_type: &DataType,
    nulls: Option<NullBuffer>,
) -> ArrayRef {
    let numbers = Float32Array::from(std::mem::take(numbers));
    match data_type {
        DataType::FixedSizeList(field, width) => {
            Arc::new(FixedSizeListArray::new(field.clone(), *width, Arc::new(numbers), nulls))
        }
        DataType::List(field) => {
            Arc::new(ListArray::new(field.clone(), offsets(ends), Arc::new(numbers), nulls))
        }
        _ => unreachable!("vectors are planned as lists"),
    }
}

/// Keys and values of maps.
#[derive(Default)]
pub(crate) struct Pairs {
    /// Where each map ends, in pairs.
    pub(crate) ends: Vec<i32>,
    keys: Pieces,
    values: Pieces,
    is_value: Vec<bool>,
}

impl Pairs {
    /// Bytes of its texts.
    pub(crate) fn bytes(&self) -> usize {
        self.keys.data.len() + self.values.data.len()
    }

    pub(crate) fn push(
        &mut self,
        raw: &[u8],
        len: i16,
        context: &mut Context,
    ) -> Result<(), Fault> {
        let Context { lookups, transcoder, buffer, .. } = context;
        let bytes = payload(lookups, len, raw, buffer)?;
        let mut add = |text: &[u8], pieces: &mut Pieces| {
            match transcoder {
                None => pieces.data.extend_from_slice(text),
                Some(transcoder) => {
                    transcoder.convert(text, &mut pieces.data).map_err(FormatError::lookup)?;
                }
            }
            pieces.end_value()
        };
        for pair in hstore::pairs(bytes)? {
            let (key, value) = pair?;
            add(key, &mut self.keys)?;
            add(value.unwrap_or_default(), &mut self.values)?;
            self.is_value.push(value.is_some());
        }
        match i32::try_from(self.is_value.len()) {
            Ok(end) => self.ends.push(end),
            Err(_) => return unfit("maps of more than 2^31 pairs", Remedy::Columns),
        }
        Ok(())
    }

    pub(crate) fn truncate(&mut self, len: usize) {
        self.ends.truncate(len);
        let pairs = self.ends.last().map_or(0, |end| *end as usize);
        self.keys.truncate(pairs);
        self.values.truncate(pairs);
        self.is_value.truncate(pairs);
    }

    pub(crate) fn finish(
        &mut self,
        data_type: &DataType,
        nulls: Option<NullBuffer>,
    ) -> Result<ArrayRef, NotUtf8> {
        let DataType::Map(field, _) = data_type else { unreachable!("pairs are planned as a map") };
        let ends = std::mem::take(&mut self.ends);
        let of_map =
            |fault: NotUtf8| NotUtf8 { at: ends.partition_point(|end| *end as usize <= fault.at) };
        let keys = text_array(&mut self.keys, None).map_err(of_map)?;
        let valid = NullBuffer::from(std::mem::take(&mut self.is_value));
        let values = text_array(&mut self.values, Some(valid)).map_err(of_map)?;
        let entries = StructArray::new(entry_fields(), vec![keys, values], None);
        Ok(Arc::new(MapArray::new(field.clone(), offsets(ends), entries, nulls, false)))
    }
}

pub(crate) fn text_array(
    pieces: &mut Pieces,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef, NotUtf8> {
    let (offsets, buffer) = pieces.take();
    match StringArray::try_new(offsets.clone(), buffer.clone(), nulls) {
        Ok(array) => Ok(Arc::new(array)),
        Err(_) => {
            let is_bad = |pair: &[i32]| {
                let text = &buffer[pair[0] as usize..pair[1] as usize];
                simdutf8::basic::from_utf8(text).is_err()
            };
            let at = offsets.windows(2).position(is_bad);
            Err(NotUtf8 { at: at.unwrap_or_default() })
        }
    }
}

#[cfg(test)]
#[path = "pieces_tests.rs"]
mod tests;
