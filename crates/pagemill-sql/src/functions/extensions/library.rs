//! What [`pagemill_types::extension`] computes, as functions of columns.
//!
//! Invariant: a strict function sees no NULL; what depends on the locale is refused where it is not known, never guessed.

use std::cell::RefCell;

use arrow::array::{Array as _, ArrayRef, AsArray as _};
use arrow::datatypes::{DataType, Float32Type, Float64Type, Int32Type, Int64Type};
use pagemill_types::extension::{self, call, cube, hstore, ltree, seg};

use super::super::rows::{Made, Outcome, one};
use super::super::text::cases::{Letters, LocaleLetters, letters_of};
use super::super::{Build, Implementation, Kernel, KernelCall};
use super::{payload_key, require_utf8};
use crate::error::{Result, SqlState, StatementError};
use crate::typed::Typed;
use crate::types::DEFAULT_COLLATION;

pub(super) fn find(library: &str, symbol: &str) -> Option<Implementation> {
    if equality(library, symbol).is_some() {
        return Some(Implementation::Build(equal));
    }
    extension::function(library.as_bytes(), symbol.as_bytes())
        .map(|_| Implementation::Kernel(kernel))
}

/// Types whose payloads make bytes that sort as they do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    Cube,
    Hstore,
    Ltree,
    Seg,
}

impl Key {
    /// The name of the kernel that makes them.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Cube => "cube_key",
            Self::Hstore => "hstore_key",
            Self::Ltree => "ltree_key",
            Self::Seg => "seg_key",
        }
    }

    /// That kernel.
    pub(super) fn kernel(self) -> Kernel {
        match self {
            Self::Cube => |_, a| one(a, |cube: &[u8]| cube::order_key(cube).map_err(damaged)),
            Self::Hstore => |_, a| one(a, |pairs: &[u8]| hstore::order_key(pairs).map_err(damaged)),
            Self::Ltree => |_, a| one(a, |path: &[u8]| ltree::order_key(path).map_err(damaged)),
            Self::Seg => |_, a| one(a, |seg: &[u8]| seg::order_key(seg).map_err(damaged)),
        }
    }
}

/// The key of whose equality this function is: joins are made by it.
fn equality(library: &str, symbol: &str) -> Option<Key> {
    // NaN is equal to all numbers within a cube, which no key says.
    order(library, symbol).filter(|key| matches!(key, Key::Hstore | Key::Ltree))
}

fn equal(build: &Build<'_>) -> Result<Typed> {
    let key = build.key.split_once('/').and_then(|(library, symbol)| equality(library, symbol));
    let key = key.expect("only equality comes here"); // infallible: by find
    let of = |typed: &Typed| payload_key(build.catalog, typed, key);
    let equal = of(&build.arguments[0]).eq(of(&build.arguments[1]));
    Ok(build.done(equal, DataType::Boolean))
}

/// The order of the type whose `=` this function is.
pub(super) fn order(library: &str, symbol: &str) -> Option<Key> {
    match (library, symbol) {
        ("cube", "cube_eq") => Some(Key::Cube),
        ("hstore", "hstore_eq") => Some(Key::Hstore),
        ("ltree", "ltree_eq") => Some(Key::Ltree),
        ("seg", "seg_same") => Some(Key::Seg),
        _ => None,
    }
}

fn kernel(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let (library, symbol) = call.key.split_once('/').expect("it was found by both"); // infallible: by find
    let known = extension::function(library.as_bytes(), symbol.as_bytes());
    let function = known.expect("it was found before"); // infallible: by find
    require_utf8(&call.catalog, &call.key)?;
    let letters = CallLetters::new(call);
    let rows = arguments.first().map_or(1, |argument| argument.len());
    let mut values = Vec::with_capacity(rows);
    let mut given = Vec::with_capacity(arguments.len());
    for row in 0..rows {
        given.clear();
        given.extend(arguments.iter().map(|argument| argument_at(argument, row)));
        let is_null = function.is_strict && given.contains(&call::Argument::Null);
        values.push(match is_null {
            true => call::Value::Null,
            false => (function.call)(&letters, &given).map_err(as_told)?,
        });
        letters.refusal()?;
    }
    column(&call.carrier, values)
}

fn argument_at(array: &ArrayRef, row: usize) -> call::Argument<'_> {
    use call::Argument;
    match array.data_type() {
        _ if array.is_null(row) => Argument::Null,
        DataType::Boolean => Argument::Bool(array.as_boolean().value(row)),
        DataType::Int32 => Argument::Int4(array.as_primitive::<Int32Type>().value(row)),
        DataType::Int64 => Argument::Int8(array.as_primitive::<Int64Type>().value(row)),
        DataType::Float32 => Argument::Float4(array.as_primitive::<Float32Type>().value(row)),
        DataType::Float64 => Argument::Float8(array.as_primitive::<Float64Type>().value(row)),
        DataType::Utf8 => Argument::Text(array.as_string::<i32>().value(row)),
        DataType::Binary => Argument::Payload(array.as_binary::<i32>().value(row)),
        // Carriers of no type that such functions take: they say so.
        _ => Argument::Payload(&[]),
    }
}

fn as_told(error: call::CallError) -> StatementError {
    let mut told = StatementError::new(SqlState(error.state), error.message);
    told.detail = error.detail.map(Into::into);
    match error.hint {
        Some(hint) => told.with_hint(hint),
        None => told,
    }
}

/// Values as a column of the type that the function declares.
fn column(carrier: &DataType, values: Vec<call::Value>) -> Outcome<ArrayRef> {
    use call::Value;
    macro_rules! of {
        ($kind:ident) => {{
            let one = |value| match value {
                Value::Null => Ok(None),
                Value::$kind(value) => Ok(Some(value)),
                _ => Err(other_kind()),
            };
            Made::column(values.into_iter().map(one).collect::<Outcome<Vec<_>>>()?)
        }};
    }
    match carrier {
        DataType::Boolean => of!(Bool),
        DataType::Int32 => of!(Int4),
        DataType::Int64 => of!(Int8),
        DataType::Float32 => of!(Float4),
        DataType::Float64 => of!(Float8),
        DataType::Utf8 => Made::column(values.into_iter().map(text).collect::<Outcome<Vec<_>>>()?),
        DataType::Binary => of!(Payload),
        _ => Err(other_kind()),
    }
}

/// Texts, and what is printed as it is kept: json.
fn text(value: call::Value) -> Outcome<Option<String>> {
    match value {
        call::Value::Null => Ok(None),
        call::Value::Text(text) => Ok(Some(text)),
        call::Value::Payload(bytes) => String::from_utf8(bytes).map(Some).map_err(damaged),
        _ => Err(other_kind()),
    }
}

#[cold]
fn damaged(error: impl std::fmt::Display) -> StatementError {
    StatementError::new(SqlState::DATA_CORRUPTED, error.to_string())
}

/// The catalogs may declare another result than the extension's own script does.
#[cold]
fn other_kind() -> StatementError {
    StatementError::unsupported(
        "a function of an extension that is declared with another type of result",
    )
}

/// Letters of the database's locale; what is not known of them is kept until the call ends.
struct CallLetters<'c> {
    call: &'c KernelCall,
    letters: RefCell<LocaleLetters<'c>>,
    refused: RefCell<Option<StatementError>>,
}

impl<'c> CallLetters<'c> {
    fn new(call: &'c KernelCall) -> Self {
        let letters = RefCell::new(LocaleLetters::of_database(call));
        Self { call, letters, refused: RefCell::default() }
    }

    fn are_ascii(&self) -> Outcome<bool> {
        let found = letters_of(&self.call.catalog, DEFAULT_COLLATION);
        Ok(found.map_err(|error| error.report())? == Letters::Ascii)
    }

    fn refusal(&self) -> Outcome<()> {
        self.refused.take().map_or(Ok(()), Err)
    }

    fn known<T: Default>(&self, found: Outcome<T>) -> T {
        found.unwrap_or_else(|error| {
            self.refused.replace(Some(error));
            T::default() // default: the call ends with the error
        })
    }
}

impl call::Letters for CallLetters<'_> {
    fn major(&self) -> u32 {
        self.call.catalog.database().cluster().version().major()
    }

    fn lower(&self, text: &str) -> String {
        let lower = |are_ascii| match are_ascii {
            true => Ok(text.to_ascii_lowercase()),
            false => self.letters.borrow_mut().lower(text),
        };
        self.known(self.are_ascii().and_then(lower))
    }

    fn is_alphanumeric(&self, character: char) -> bool {
        let is_one = |are_ascii| match are_ascii {
            true => Ok(character.is_ascii_alphanumeric()),
            false => self.letters.borrow_mut().is_alphanumeric(character),
        };
        self.known(self.are_ascii().and_then(is_one))
    }
}
