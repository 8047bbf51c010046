//! What large objects hold: `lo_get`.
//!
//! ```text
//! (OID, range of bytes) ─► pages of pg_largeobject, by its index ─► bytes, with zeros where no page is
//! ```
//!
//! Invariant: an object that is not, or that the session's role may not read, is an error; no range is longer than the object.
//!
//! Source: `be_lo_get` and `be_lo_get_fragment` in `src/backend/libpq/be-fsstubs.c`, `inv_read` in
//! `src/backend/storage/large_object/inv_api.c`, `LOBLKSIZE` in `src/include/storage/large_object.h`, PostgreSQL 14 to 18.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array as _, ArrayRef, AsArray as _};
use arrow::datatypes::{Int32Type, Int64Type, UInt32Type};
use pagemill_format::Oid;
use pagemill_types::index_key_range::{KeyBound, KeyRange, ValueBounds};

use super::rows::{Made, Outcome};
use super::system::statement_error;
use super::{Implementation, KernelCall};
use crate::catalog::Catalog;
use crate::error::{Result, SqlState, StatementError};
use crate::rights::{LARGE_OBJECTS, Wanted, bits};
use crate::system_search::SystemSearch;

/// Bytes of a page of an object.
const PAGE_BYTES: i64 = 2048;
/// What the server can hold of one value.
const MOST_BYTES: i64 = 0x3fff_ffff - 4;

pub(crate) fn find(key: &str) -> Option<Implementation> {
    Some(Implementation::Kernel(match key {
        "be_lo_get" => whole_objects,
        "be_lo_get_fragment" => fragments,
        _ => return None,
    }))
}

/// The pages of an object, by number.
type Pages = BTreeMap<i32, Vec<u8>>;

/// The objects of a database, open to be read.
struct LargeObjects<'c> {
    catalog: &'c Catalog,
    search: SystemSearch,
}

fn open(catalog: &Arc<Catalog>) -> Outcome<LargeObjects<'_>> {
    let columns = ["loid", "pageno", "data"];
    let search = SystemSearch::open(catalog, "pg_largeobject", &columns);
    Ok(LargeObjects { catalog, search: search.map_err(statement_error)? })
}

/// So many bytes of an object from one on; fewer at its end.
///
/// # Errors
/// When there is no such object, or it must not or cannot be read.
pub(crate) fn part_of_object(
    catalog: &Arc<Catalog>,
    object: Oid,
    part: (i64, i32),
) -> Outcome<Vec<u8>> {
    open(catalog)?.fragment(object, part)
}

fn whole_objects(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let mut objects = open(&call.catalog)?;
    let numbers = arguments[0].as_primitive::<UInt32Type>();
    let mut one = |number: Option<u32>| number.map(|oid| objects.whole(Oid(oid))).transpose();
    Made::column(numbers.iter().map(&mut one).collect::<Outcome<Vec<Option<Vec<u8>>>>>()?)
}

fn fragments(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let mut objects = open(&call.catalog)?;
    let numbers = arguments[0].as_primitive::<UInt32Type>();
    let starts = arguments[1].as_primitive::<Int64Type>();
    let lengths = arguments[2].as_primitive::<Int32Type>();
    let mut one = |row: usize| {
        if arguments.iter().any(|argument| argument.is_null(row)) {
            return Ok(None);
        }
        let part = (starts.value(row), lengths.value(row));
        objects.fragment(Oid(numbers.value(row)), part).map(Some)
    };
    Made::column((0..numbers.len()).map(&mut one).collect::<Outcome<Vec<Option<Vec<u8>>>>>()?)
}

impl LargeObjects<'_> {
    fn whole(&mut self, object: Oid) -> Outcome<Vec<u8>> {
        self.check(object)?;
        let pages = self.pages(object, 0..i32::MAX)?;
        let size = end(&pages);
        if size > MOST_BYTES {
            let message = "large object read request is too large";
            return Err(StatementError::new(SqlState("54000"), message));
        }
        Ok(bytes(&pages, 0..size))
    }

    fn fragment(&mut self, object: Oid, (start, length): (i64, i32)) -> Outcome<Vec<u8>> {
        if length < 0 {
            let message = "requested length cannot be negative";
            return Err(StatementError::new(SqlState::INVALID_PARAMETER, message));
        }
        self.check(object)?;
        if start < 0 {
            let message = format!("invalid large object seek target: {start}");
            return Err(StatementError::new(SqlState::INVALID_PARAMETER, message));
        }
        let wanted = start..start.saturating_add(length.into());
        let (first, behind) = (page_of(wanted.start), page_of(wanted.end).saturating_add(1));
        let pages = self.pages(object, first..behind)?;
        // An end that is not among these pages is that of the object, or there is nothing of it in between.
        let size = match end(&pages) {
            size if size >= wanted.end => size,
            size => size.max(end(&self.pages(object, behind..i32::MAX)?)),
        };
        Ok(bytes(&pages, wanted.start.min(size)..wanted.end.min(size)))
    }

    /// Refuses an object that is not, or that must not be read.
    fn check(&self, object: Oid) -> Outcome<()> {
        let missing = || {
            let message = format!("large object {object} does not exist");
            Err(StatementError::new(SqlState::UNDEFINED_OBJECT, message))
        };
        let known = self.catalog.objects(&LARGE_OBJECTS).map_err(statement_error)?;
        let Some(role) = self.catalog.role() else {
            return if known.has(object) { Ok(()) } else { missing() };
        };
        let may = self.catalog.may(role, (&LARGE_OBJECTS, object), Wanted::to(bits("r")));
        match may.map_err(statement_error)? {
            Some(true) => Ok(()),
            None => missing(),
            Some(false) => {
                let message = format!("permission denied for large object {object}");
                Err(StatementError::new(SqlState::DENIED, message))
            }
        }
    }

    /// The pages of these numbers.
    fn pages(&mut self, object: Oid, numbers: Range<i32>) -> Outcome<Pages> {
        self.read_pages(object, numbers).map_err(statement_error)
    }

    fn read_pages(&mut self, object: Oid, numbers: Range<i32>) -> Result<Pages> {
        let bound = |number: i32, inclusive| {
            Some(KeyBound { value: number.to_le_bytes().into(), inclusive })
        };
        let (lower, upper) = (bound(numbers.start, true), bound(numbers.end, false));
        let equal = vec![Some(object.0.to_le_bytes().into())];
        let range = KeyRange { equal, bounds: Some(ValueBounds { lower, upper }) };
        let mut pages = Pages::new();
        self.search.for_each_row(range, |row| {
            let number = row.int4(1);
            if row.oid(0) == object && numbers.contains(&number) {
                pages.insert(number, row.payload(2)?.unwrap_or_default().to_vec());
            }
            Ok(())
        })?;
        Ok(pages)
    }
}

/// The number of the page that a byte is on; none has a greater one than the last.
fn page_of(byte: i64) -> i32 {
    (byte / PAGE_BYTES).try_into().unwrap_or(i32::MAX - 1)
}

/// The number of the byte behind the last.
fn end(pages: &Pages) -> i64 {
    let end =
        |(number, data): (&i32, &Vec<u8>)| i64::from(*number) * PAGE_BYTES + data.len() as i64;
    pages.last_key_value().map_or(0, end)
}

/// Bytes of an object, with zeros where there is no page of them.
fn bytes(pages: &Pages, wanted: Range<i64>) -> Vec<u8> {
    let mut found = vec![0; (wanted.end - wanted.start) as usize];
    for (number, data) in pages {
        let start = i64::from(*number) * PAGE_BYTES;
        let from = wanted.start.max(start);
        let to = wanted.end.min(start + data.len() as i64);
        if from < to {
            let given = &data[(from - start) as usize..(to - start) as usize];
            found[(from - wanted.start) as usize..][..given.len()].copy_from_slice(given);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_page_holds_is_zeros() {
        let pages = Pages::from([(1, vec![7; 10]), (3, vec![8; 2])]);
        assert_eq!(end(&pages), 3 * PAGE_BYTES + 2);
        assert_eq!(bytes(&pages, 2046..2050), [0, 0, 7, 7]);
        assert_eq!(bytes(&pages, 2057..2060), [7, 0, 0]);
        assert_eq!(bytes(&pages, 6143..6146), [0, 8, 8]);
        assert!(bytes(&pages, 5..5).is_empty());
    }

    #[test]
    fn no_byte_is_beyond_the_last_page() {
        assert_eq!(page_of(2047), 0);
        assert_eq!(page_of(2048), 1);
        assert_eq!(page_of(i64::MAX), i32::MAX - 1);
    }
}
