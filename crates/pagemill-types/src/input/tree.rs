//! A type's input, built once per column from the catalogs and then applied to every text.
//!
//! [`TypeInput`] is the tree of a type (an array of a composite of enums …), the mirror of
//! [`TypeOutput`](crate::output::TypeOutput); [`InputLookups`] is what reading needs from
//! outside: the OIDs of names. A domain is a node of its own, as NULL may be no value of it, and as
//! its base type has its own type modifier.
//!
//! Invariants: nesting follows the type tree, and [`MAX_DEPTH`] bounds the stack; a datum inside of
//! another is laid out as `heap_form_tuple`, `array_in` and `range_serialize` lay it out, byte for
//! byte. A domain with a check that cannot be evaluated is no [`TypeInput`]: whoever builds the tree
//! refuses it.
//!
//! Source: `src/backend/utils/adt/enum.c` (`enum_in`), `domains.c` (`domain_in`),
//! PostgreSQL 14 to 18.

use std::collections::HashMap;
use std::sync::Arc;

use pagemill_format::ids::{Oid, PgVersion};
use pagemill_format::tuple::AttributeLayout;

use super::datetime::{DateTimeContext, DateTimeReader};
use super::identifier::read_u32;
use super::{InputError, ScalarReader, acl, composite, money, multirange, range};
use crate::expression::Check;
use crate::money::MoneyFormat;
use crate::order::ValueOrder;
use crate::output::{MAX_DEPTH, NameKind};

/// What reading a text may depend on beside the text and the type.
#[derive(Debug, Clone)]
pub struct InputContext {
    /// The version whose input functions are followed.
    pub version: PgVersion,
    /// The number of the database's encoding (`pg_database.encoding`), which the texts are in.
    pub encoding: i32,
    /// Whether the database's character classification (`LC_CTYPE`) knows spaces beyond ASCII: it is
    /// in UTF-8, and of no C locale.
    pub unicode_spaces: bool,
    /// What the session says about dates and times.
    pub date_time: DateTimeContext,
}

/// Appends the payload of a value whose text depends on version or encoding.
pub type DocumentReader = fn(&[u8], &InputContext, &mut Vec<u8>) -> Result<(), InputError>;

/// What reading a value may need from outside of its text.
pub trait InputLookups {
    /// The OID of the object that the text of a `reg…` value names. Numbers and `-` do not come
    /// here.
    ///
    /// # Errors
    /// When there is no such object, or more than one.
    fn find_name(&mut self, kind: NameKind, text: &[u8]) -> Result<Oid, InputError>;

    /// The OID of the role of this name, as stored.
    ///
    /// # Errors
    /// When the roles cannot be told.
    fn find_role(&mut self, name: &[u8]) -> Result<Option<Oid>, InputError>;
}

/// A type as values of it lie in tuples, arrays and ranges, with its input.
#[derive(Debug)]
pub struct InputType {
    /// The type's OID.
    pub oid: Oid,
    /// Length and alignment.
    pub layout: AttributeLayout,
    /// `typdelim`, what separates values of this type in an array.
    pub delimiter: u8,
    /// True unless `typstorage` is plain: a small value may have a length word of one byte.
    pub packable: bool,
    /// How it is read.
    pub input: TypeInput,
}

/// An enum's labels.
#[derive(Debug)]
pub struct EnumInput {
    /// The type's name, as `format_type` prints it.
    pub name: String,
    /// The OID of each label.
    pub labels: HashMap<Box<[u8]>, Oid>,
}

/// An attribute of a composite type.
#[derive(Debug)]
pub struct InputAttribute {
    /// Length and alignment.
    pub layout: AttributeLayout,
    /// `atttypmod`.
    pub typmod: i32,
    /// True unless `attstorage` is plain.
    pub packable: bool,
    /// The input, or `None` for a dropped attribute.
    pub input: Option<TypeInput>,
}

/// A composite type.
#[derive(Debug)]
pub struct CompositeInput {
    /// The type's OID.
    pub oid: Oid,
    /// The version of its attributes, where the server gives them versions.
    pub version: Option<u64>,
    /// Its attributes, dropped ones included.
    pub attributes: Vec<InputAttribute>,
}

/// A range type.
#[derive(Debug)]
pub struct RangeInput {
    /// The type's OID.
    pub oid: Oid,
    /// The type of its bounds.
    pub subtype: Arc<InputType>,
    /// How the bounds compare.
    pub order: ValueOrder,
    /// What brings its values to their one form.
    pub canonical: Canonical,
}

/// A multirange type.
#[derive(Debug)]
pub struct MultirangeInput {
    /// The type's OID.
    pub oid: Oid,
    /// The ranges it is made of.
    pub range: Arc<RangeInput>,
}

/// The canonical function of a range type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Canonical {
    /// None: bounds stay as given.
    None,
    /// `int4range_canonical`.
    Int4,
    /// `int8range_canonical`.
    Int8,
    /// `daterange_canonical`.
    Date,
}

/// A domain.
#[derive(Debug)]
pub struct DomainInput {
    /// The type's name, as `format_type` prints it.
    pub name: String,
    /// What it is a domain over, through all domains between.
    pub base: TypeInput,
    /// The base type's modifier.
    pub typmod: i32,
    /// Whether it, or a domain it is over, is NOT NULL.
    pub not_null: bool,
    /// The CHECK constraints of the domains it is over, then its own.
    pub checks: Vec<Check>,
}

impl DomainInput {
    /// Checks that a value of the type under it, or null, is one of the domain.
    ///
    /// # Errors
    /// When a domain says NOT NULL, or a check does not hold.
    pub fn accept(&self, value: Option<&[u8]>) -> Result<(), InputError> {
        if self.not_null && value.is_none() {
            let message = format!("domain {} does not allow null values", self.name);
            return Err(InputError::new(message));
        }
        self.check(value)
    }

    fn check(&self, value: Option<&[u8]>) -> Result<(), InputError> {
        for check in &self.checks {
            if !check.expression.is_satisfied(&value)? {
                return Err(InputError::new(format!(
                    "value for domain {} violates check constraint \"{}\"",
                    self.name, check.name
                )));
            }
        }
        Ok(())
    }
}

/// How texts of a type are read.
#[derive(Debug, Clone)]
pub enum TypeInput {
    /// A function of text and type modifier alone.
    Scalar(ScalarReader),
    /// A function that asks for the session's settings of dates and times.
    DateTime(DateTimeReader),
    /// A function that asks for version or encoding.
    Document(DocumentReader),
    /// Amounts, as the database's `lc_monetary` has them.
    Money(Arc<MoneyFormat>),
    /// The name of an object, kept as its OID.
    Name(NameKind),
    /// An access privilege.
    AclItem,
    /// A label.
    Enum(Arc<EnumInput>),
    /// An array of one element type.
    Array(Arc<InputType>),
    /// A row.
    Composite(Arc<CompositeInput>),
    /// A range.
    Range(Arc<RangeInput>),
    /// A multirange.
    Multirange(Arc<MultirangeInput>),
    /// A domain.
    Domain(Arc<DomainInput>),
}

/// Reads values; one per thread.
pub struct ValueReader<'a> {
    lookups: &'a mut dyn InputLookups,
    context: &'a InputContext,
    depth: usize,
    spare: Vec<Vec<u8>>,
}

impl<'a> ValueReader<'a> {
    /// A reader that asks `lookups`.
    pub fn new(lookups: &'a mut dyn InputLookups, context: &'a InputContext) -> Self {
        Self { lookups, context, depth: 0, spare: Vec::new() }
    }

    /// What the reading depends on.
    pub(super) fn context(&self) -> &InputContext {
        self.context
    }

    /// Appends the payload of the value that `text` says, given the column's type modifier (-1 for
    /// none).
    ///
    /// # Errors
    /// When the text is no value of the type; `out` may then hold part of one.
    #[inline]
    pub fn read(
        &mut self,
        input: &TypeInput,
        typmod: i32,
        text: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), InputError> {
        match input {
            TypeInput::Scalar(read) => read(text, typmod, out),
            TypeInput::DateTime(read) => read(text, typmod, &self.context.date_time, out),
            TypeInput::Document(read) => read(text, self.context, out),
            TypeInput::Enum(labels) => read_enum(labels, text, out),
            other => self.read_nested(other, typmod, text, out),
        }
    }

    /// Checks that NULL is a value of the type: it is, unless a domain says NOT NULL.
    ///
    /// # Errors
    /// When it does.
    #[inline]
    pub fn read_null(&mut self, input: &TypeInput) -> Result<(), InputError> {
        match input {
            TypeInput::Domain(domain) => domain.accept(None),
            _ => Ok(()),
        }
    }

    fn read_nested(
        &mut self,
        input: &TypeInput,
        typmod: i32,
        text: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), InputError> {
        if self.depth >= MAX_DEPTH {
            return Err(InputError::new("stack depth limit exceeded"));
        }
        self.depth += 1;
        let done = match input {
            TypeInput::Scalar(read) => read(text, typmod, out),
            TypeInput::DateTime(read) => read(text, typmod, &self.context.date_time, out),
            TypeInput::Document(read) => read(text, self.context, out),
            TypeInput::Enum(labels) => read_enum(labels, text, out),
            TypeInput::Money(format) => money::read_money(text, format, out),
            TypeInput::Name(kind) => self.read_name(*kind, text, out),
            TypeInput::AclItem => acl::read_aclitem(text, self.context, self.lookups, out),
            TypeInput::Array(element) => self.read_array(element, typmod, text, out),
            TypeInput::Composite(row) => composite::read_composite(self, row, text, out),
            TypeInput::Range(range) => range::read_range(self, range, text, out),
            TypeInput::Multirange(ranges) => multirange::read_multirange(self, ranges, text, out),
            TypeInput::Domain(domain) => {
                let start = out.len();
                let read = self.read(&domain.base, domain.typmod, text, out);
                read.and_then(|()| domain.check(out.get(start..)))
            }
        };
        self.depth -= 1;
        done
    }

    fn read_name(
        &mut self,
        kind: NameKind,
        text: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), InputError> {
        let oid = match numeric_name(self.context.version, kind, text)? {
            Some(oid) => oid,
            None => self.lookups.find_name(kind, text)?,
        };
        out.extend_from_slice(&oid.0.to_le_bytes());
        Ok(())
    }

    /// Lends a buffer, empty at first, that is used again.
    pub(super) fn with_buffer<T>(&mut self, work: impl FnOnce(&mut Self, &mut Vec<u8>) -> T) -> T {
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.clear();
        let done = work(self, &mut buffer);
        self.spare.push(buffer);
        done
    }
}

/// What the `reg…` types read without a catalog: numbers, and `-` for none unless that is the name
/// of an operator.
/// Source: `parseNumericOid` and `parseDashOrOid` in `src/backend/utils/adt/regproc.c`.
fn numeric_name(
    version: PgVersion,
    kind: NameKind,
    text: &[u8],
) -> Result<Option<Oid>, InputError> {
    if text == b"-" && !matches!(kind, NameKind::Oper | NameKind::Operator) {
        return Ok(Some(Oid::INVALID));
    }
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return Ok(None);
    }
    // As a value of type oid: a zero in front means octal, from 16 on.
    let base = if version < PgVersion::V16 { 10 } else { 0 };
    Ok(Some(Oid(read_u32(text, "oid", base)?)))
}

fn read_enum(labels: &EnumInput, text: &[u8], out: &mut Vec<u8>) -> Result<(), InputError> {
    match labels.labels.get(text) {
        Some(oid) => {
            out.extend_from_slice(&oid.0.to_le_bytes());
            Ok(())
        }
        None => Err(InputError::new(format!(
            "invalid input value for enum {}: \"{}\"",
            labels.name,
            String::from_utf8_lossy(text)
        ))),
    }
}
