//! The values that a path works on: scalars, and containers as they lie in a `jsonb`.
//!
//! Nothing is copied out of a document: a string, a number or a container is a piece of its bytes. Documents that a path
//! makes itself (`.keyvalue()`) are shared by what comes out of them.
//!
//! Invariant: bytes that are no `jsonb` are an error, and nothing is read outside of a container's own bytes.
//!
//! Source: `JsonbContainer`, `getJsonbOffset`, `fillJsonbValue`, `getKeyJsonValueFromContainer` in
//! `src/backend/utils/adt/jsonb_util.c`, `src/include/utils/jsonb.h`, PostgreSQL 14 to 18.

use std::cmp::Ordering;
use std::ops::Range;
use std::rc::Rc;

use super::damaged;
use super::moment::Moment;
use super::path::embedded;
use crate::functions::numeric::value::Value as Number;
use crate::functions::rows::Outcome;

const COUNT_MASK: u32 = 0x0FFF_FFFF;
const SCALAR: u32 = 0x1000_0000;
const OBJECT: u32 = 0x2000_0000;
const ARRAY: u32 = 0x4000_0000;
const ENTRY_END_OR_LENGTH: u32 = 0x0FFF_FFFF;
const ENTRY_HAS_END: u32 = 0x8000_0000;

/// A piece of a document.
#[derive(Debug, Clone)]
pub(super) enum Bytes<'d> {
    Given(&'d [u8]),
    /// Of something that the path made.
    Made(Rc<[u8]>, Range<usize>),
}

impl<'d> Bytes<'d> {
    pub(super) fn made(bytes: Vec<u8>) -> Self {
        let whole = 0..bytes.len();
        Self::Made(bytes.into(), whole)
    }

    pub(super) fn get(&self) -> &[u8] {
        match self {
            Self::Given(bytes) => bytes,
            Self::Made(all, range) => all.get(range.clone()).unwrap_or_default(), // default: `cut` keeps within
        }
    }

    /// A piece of it, if it reaches so far.
    fn cut(&self, piece: Range<usize>) -> Option<Self> {
        Some(match self {
            Self::Given(bytes) => Self::Given(bytes.get(piece)?),
            Self::Made(all, range) => {
                self.get().get(piece.clone())?;
                Self::Made(all.clone(), range.start + piece.start..range.start + piece.end)
            }
        })
    }
}

/// A value.
#[derive(Debug, Clone)]
pub(super) enum Value<'d> {
    Null,
    Bool(bool),
    String(Bytes<'d>),
    /// The payload of a numeric.
    Number(Bytes<'d>),
    Moment(Moment),
    Container(Container<'d>),
}

impl<'d> Value<'d> {
    /// The value of a whole document, whose objects are told apart by `base`.
    pub(super) fn document(document: Bytes<'d>, base: i64) -> Outcome<Self> {
        let header = word(document.get(), 0).ok_or_else(|| damaged("a jsonb without a header"))?;
        if header & !COUNT_MASK == ARRAY | SCALAR {
            let lone = Container { bytes: document, at: 0, base, count: 1, is_object: false };
            return match lone.element(0)? {
                Some(Self::Container(_)) | None => {
                    Err(damaged("a jsonb scalar that is a container"))
                }
                Some(scalar) => Ok(scalar),
            };
        }
        Container::open(document, 0, base).map(Self::Container)
    }

    pub(super) fn number(number: &Number) -> Outcome<Self> {
        Ok(Self::Number(Bytes::made(number.payload()?)))
    }

    pub(super) fn text(text: impl Into<Vec<u8>>) -> Self {
        Self::String(Bytes::made(text.into()))
    }

    pub(super) fn as_array(&self) -> Option<&Container<'d>> {
        match self {
            Self::Container(container) if !container.is_object => Some(container),
            _ => None,
        }
    }

    pub(super) fn as_object(&self) -> Option<&Container<'d>> {
        match self {
            Self::Container(container) if container.is_object => Some(container),
            _ => None,
        }
    }

    pub(super) fn as_number(&self) -> Outcome<Option<Number>> {
        match self {
            Self::Number(payload) => Number::parse(payload.get()).map(Some),
            _ => Ok(None),
        }
    }

    pub(super) fn as_string(&self) -> Option<&[u8]> {
        match self {
            Self::String(text) => Some(text.get()),
            _ => None,
        }
    }

    /// As `.type()` names it.
    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "boolean",
            Self::String(_) => "string",
            Self::Number(_) => "number",
            Self::Moment(moment) => moment.type_name(),
            Self::Container(container) if container.is_object => "object",
            Self::Container(_) => "array",
        }
    }
}

/// An array or object.
#[derive(Debug, Clone)]
pub(super) struct Container<'d> {
    /// Its own, from its header on.
    pub(super) bytes: Bytes<'d>,
    /// Where it begins in its document.
    pub(super) at: usize,
    /// The number of its document.
    pub(super) base: i64,
    /// Elements or pairs.
    pub(super) count: usize,
    pub(super) is_object: bool,
}

impl<'d> Container<'d> {
    fn open(bytes: Bytes<'d>, at: usize, base: i64) -> Outcome<Self> {
        let header =
            word(bytes.get(), 0).ok_or_else(|| damaged("a jsonb container without a header"))?;
        let is_object = match header & !COUNT_MASK {
            ARRAY => false,
            OBJECT => true,
            _ => return Err(damaged(format!("jsonb container header {header:#010x}"))),
        };
        let container = Self { at, base, count: (header & COUNT_MASK) as usize, is_object, bytes };
        if container.children() > container.bytes.get().len() {
            return Err(damaged("a jsonb container of more entries than it has room for"));
        }
        Ok(container)
    }

    /// Where the children's bytes begin.
    fn children(&self) -> usize {
        let entries = if self.is_object { 2 * self.count } else { self.count };
        4 + 4 * entries
    }

    /// The element, or the pair's value, of this number.
    pub(super) fn element(&self, number: usize) -> Outcome<Option<Value<'d>>> {
        if number >= self.count {
            return Ok(None);
        }
        self.child(if self.is_object { self.count + number } else { number }).map(Some)
    }

    /// The key of this number.
    pub(super) fn key(&self, number: usize) -> Outcome<Value<'d>> {
        match self.child(number)? {
            key @ Value::String(_) => Ok(key),
            _ => Err(damaged("a jsonb key that is not a string")),
        }
    }

    /// The value under a key. Keys are sorted, shorter ones first.
    pub(super) fn member(&self, key: &[u8]) -> Outcome<Option<Value<'d>>> {
        let (mut low, mut high) = (0, if self.is_object { self.count } else { 0 });
        while low < high {
            let middle = low + (high - low) / 2;
            let found = self.key(middle)?;
            let found = found.as_string().unwrap_or_default(); // default: keys are strings
            match found.len().cmp(&key.len()).then_with(|| found.cmp(key)) {
                Ordering::Equal => return self.element(middle),
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
            }
        }
        Ok(None)
    }

    fn child(&self, entry: usize) -> Outcome<Value<'d>> {
        let found = word(self.bytes.get(), 4 + 4 * entry)
            .and_then(|head| Some((head, self.extent(entry)?)));
        let (head, extent) = found.ok_or_else(|| damaged("a jsonb child without an entry"))?;
        let gone = || damaged("a jsonb child that leaves its container");
        let piece = |range: Range<usize>| self.bytes.cut(range).ok_or_else(gone);
        let aligned = extent.start.next_multiple_of(4)..extent.end;
        Ok(match head >> 28 & 7 {
            0 => Value::String(piece(extent)?),
            1 => {
                let numeric = piece(aligned)?;
                let (from, to) =
                    embedded(numeric.get()).ok_or_else(|| damaged("a numeric of a jsonb"))?;
                Value::Number(numeric.cut(from..to).ok_or_else(gone)?)
            }
            2 => Value::Bool(false),
            3 => Value::Bool(true),
            4 => Value::Null,
            5 => {
                let at = self.at + aligned.start;
                Value::Container(Self::open(piece(aligned)?, at, self.base)?)
            }
            other => return Err(damaged(format!("jsonb entry of type {other}"))),
        })
    }

    /// Where a child's bytes lie. Every so many entries one tells its end, the others their lengths.
    fn extent(&self, entry: usize) -> Option<Range<usize>> {
        let (bytes, base) = (self.bytes.get(), self.children());
        let mut start = base;
        for before in (0..entry).rev() {
            let head = word(bytes, 4 + 4 * before)?;
            start = start.checked_add((head & ENTRY_END_OR_LENGTH) as usize)?;
            if head & ENTRY_HAS_END != 0 {
                break;
            }
        }
        let head = word(bytes, 4 + 4 * entry)?;
        let field = (head & ENTRY_END_OR_LENGTH) as usize;
        let end = if head & ENTRY_HAS_END != 0 { base + field } else { start + field };
        (start <= end && end <= bytes.len()).then_some(start..end)
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|word| u32::from_le_bytes(*word))
}
