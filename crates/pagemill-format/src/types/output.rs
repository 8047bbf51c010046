//! A type's output, built once per column from the catalogs and then applied to every value.
//!
//! [`TypeOutput`] is the tree of a type (an array of a composite of enums …). [`Lookups`] is what
//! printing needs from outside: names for OIDs, values kept in TOAST tables, and the types that
//! only the value itself names (`anyarray`, `record`).
//!
//! Invariant: nesting follows the type tree, except below `anyarray` and `record`, where the
//! bytes decide; [`MAX_DEPTH`] bounds that, so no bytes can exhaust the stack.

use std::collections::HashMap;
use std::sync::Arc;

use super::brin::BoundTypes;
use super::money::MoneyFormat;
use super::{ScalarWriter, acl, array, brin, bytea, composite, money, range};
use crate::error::{Error, Result};
use crate::ids::Oid;
use crate::tuple::AttributeLayout;
use crate::varlena::{self, ToastPointer, Varlena};

/// Deepest nesting of values in values.
pub const MAX_DEPTH: usize = 64;

/// The types whose values are OIDs printed as the names of objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "each is named as its type")]
pub enum NameKind {
    Class,
    Collation,
    Config,
    Dictionary,
    Namespace,
    Oper,
    Operator,
    Proc,
    Procedure,
    Role,
    Type,
}

/// What printing a value may need from outside of its bytes.
pub trait Lookups {
    /// Appends the text of a `reg…` value.
    ///
    /// # Errors
    /// When the catalogs cannot be read.
    fn write_name(&mut self, kind: NameKind, oid: Oid, out: &mut Vec<u8>) -> Result<()>;

    /// Appends the bare name of a role and returns true, or returns false when there is none.
    ///
    /// # Errors
    /// When the catalogs cannot be read.
    fn write_role(&mut self, oid: Oid, out: &mut Vec<u8>) -> Result<bool>;

    /// The type with this OID.
    ///
    /// # Errors
    /// When the catalogs have no such type, or it cannot be printed.
    fn value_type(&mut self, oid: Oid) -> Result<Arc<ValueType>>;

    /// Appends the bytes that a TOAST table holds for a value, as stored (compressed or not).
    ///
    /// # Errors
    /// When a chunk is missing or damaged.
    fn fetch_toast(&mut self, pointer: &ToastPointer, out: &mut Vec<u8>) -> Result<()>;
}

/// A type as values of it lie in tuples, arrays and ranges, with its output.
#[derive(Debug)]
pub struct ValueType {
    /// The type's OID.
    pub oid: Oid,
    /// Length and alignment.
    pub layout: AttributeLayout,
    /// `typdelim`, what separates values of this type in an array.
    pub delimiter: u8,
    /// How it prints.
    pub output: TypeOutput,
}

/// An attribute of a composite type; dropped ones keep their shape.
#[derive(Debug)]
pub struct CompositeAttribute {
    /// Length and alignment.
    pub layout: AttributeLayout,
    /// The output, or `None` for a dropped attribute.
    pub output: Option<TypeOutput>,
}

/// How values of a type are printed.
#[derive(Debug, Clone)]
pub enum TypeOutput {
    /// The payload is the text.
    Verbatim,
    /// A function of the payload alone.
    Scalar {
        /// The function.
        write: ScalarWriter,
        /// True when the text never holds a byte that COPY would escape or quote.
        plain: bool,
    },
    /// Amounts, as the cluster's `lc_monetary` has them.
    Money(Arc<MoneyFormat>),
    /// An OID printed as an object's name.
    Name(NameKind),
    /// An access privilege.
    AclItem,
    /// Labels by OID.
    Enum(Arc<HashMap<Oid, Box<[u8]>>>),
    /// An array of one element type.
    Array(Arc<ValueType>),
    /// An array that names its element type itself.
    AnyArray,
    /// A row of known attributes.
    Composite(Arc<[CompositeAttribute]>),
    /// A range over a type.
    Range(Arc<ValueType>),
    /// A multirange over a type.
    Multirange(Arc<ValueType>),
    /// A BRIN summary of the minmax-multi kind, whose bounds are values of a type it names.
    MinMaxSummary,
    /// A type this build cannot print, whose bytes were asked for in hex.
    Hex,
}

impl TypeOutput {
    /// True when the text never needs escaping or quoting by COPY.
    #[inline]
    pub fn is_plain(&self) -> bool {
        matches!(self, Self::Scalar { plain: true, .. })
    }
}

/// Prints values; one per thread.
pub struct ValueWriter<'a> {
    lookups: &'a mut dyn Lookups,
    depth: usize,
}

impl<'a> ValueWriter<'a> {
    /// A writer that asks `lookups`.
    pub fn new(lookups: &'a mut dyn Lookups) -> Self {
        Self { lookups, depth: 0 }
    }

    pub(super) fn lookups(&mut self) -> &mut dyn Lookups {
        self.lookups
    }

    /// Appends the text of a value given as it lies in a tuple: with its varlena header, or
    /// with its terminating zero.
    ///
    /// # Errors
    /// When the value is damaged; `out` may then hold part of its text.
    pub fn write(
        &mut self,
        output: &TypeOutput,
        len: i16,
        raw: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<()> {
        match len {
            -1 => self.write_varlena(output, raw, out),
            -2 => self.write_payload(output, raw.strip_suffix(&[0]).unwrap_or(raw), out),
            _ => self.write_payload(output, raw, out),
        }
    }

    fn write_varlena(&mut self, output: &TypeOutput, raw: &[u8], out: &mut Vec<u8>) -> Result<()> {
        if let Varlena::Plain(payload) = Varlena::parse(raw)? {
            return self.write_payload(output, payload, out);
        }
        let mut payload = Vec::new();
        self.detoast(raw, &mut payload)?;
        self.write_payload(output, &payload, out)
    }

    /// Appends the payload of a varlena, wherever it is kept.
    ///
    /// # Errors
    /// When it is damaged or its chunks are not all there.
    pub fn detoast(&mut self, raw: &[u8], payload: &mut Vec<u8>) -> Result<()> {
        match Varlena::parse(raw)? {
            Varlena::Plain(bytes) => payload.extend_from_slice(bytes),
            Varlena::Compressed { raw_bytes, method, data } => {
                varlena::decompress(method, data, raw_bytes, payload)?;
            }
            Varlena::External(pointer) if pointer.compression.is_some() => {
                let mut stored = Vec::new();
                self.lookups.fetch_toast(&pointer, &mut stored)?;
                varlena::decompress_stored(&pointer, &stored, payload)?;
            }
            Varlena::External(pointer) => self.lookups.fetch_toast(&pointer, payload)?,
        }
        Ok(())
    }

    /// Appends the text of a value given its payload.
    ///
    /// # Errors
    /// When the value is damaged; `out` may then hold part of its text.
    #[inline]
    pub fn write_payload(
        &mut self,
        output: &TypeOutput,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<()> {
        match output {
            TypeOutput::Verbatim => {
                out.extend_from_slice(payload);
                Ok(())
            }
            TypeOutput::Scalar { write, .. } => write(payload, out),
            other => self.write_other(other, payload, out),
        }
    }

    fn write_other(
        &mut self,
        output: &TypeOutput,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<()> {
        match output {
            TypeOutput::Verbatim => out.extend_from_slice(payload),
            TypeOutput::Scalar { write, .. } => write(payload, out)?,
            TypeOutput::Money(format) => money::write_money(payload, format, out)?,
            TypeOutput::Name(kind) => {
                let oid = oid_payload("reg type", payload)?;
                self.lookups.write_name(*kind, oid, out)?;
            }
            TypeOutput::AclItem => {
                let lookups = &mut *self.lookups;
                acl::write_aclitem(payload, &mut |oid, out| lookups.write_role(oid, out), out)?;
            }
            TypeOutput::Enum(labels) => {
                let oid = oid_payload("enum", payload)?;
                let label = labels.get(&oid).ok_or_else(|| {
                    Error::corrupt("enum", 0, format!("no label has the OID {oid} in pg_enum"))
                })?;
                out.extend_from_slice(label);
            }
            TypeOutput::Hex => bytea::write_bytea(payload, out)?,
            nested => self.write_nested(nested, payload, out)?,
        }
        Ok(())
    }

    fn write_nested(
        &mut self,
        output: &TypeOutput,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<()> {
        if self.depth >= MAX_DEPTH {
            return Err(Error::corrupt("value", 0, format!("nested deeper than {MAX_DEPTH}")));
        }
        self.depth += 1;
        let done = match output {
            TypeOutput::Array(element) => array::write_array(self, Some(element), payload, out),
            TypeOutput::AnyArray => array::write_array(self, None, payload, out),
            TypeOutput::Composite(attributes) => {
                composite::write_composite(self, attributes, payload, out)
            }
            TypeOutput::Range(element) => range::write_range(self, element, payload, out),
            TypeOutput::Multirange(element) => range::write_multirange(self, element, payload, out),
            TypeOutput::MinMaxSummary => {
                brin::write_pg_brin_minmax_multi_summary(payload, self, out)
            }
            _ => Ok(()),
        };
        self.depth -= 1;
        done
    }
}

impl BoundTypes for ValueWriter<'_> {
    fn length(&mut self, oid: Oid) -> Result<i16> {
        Ok(self.lookups.value_type(oid)?.layout.len)
    }

    fn write(&mut self, oid: Oid, payload: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let found = self.lookups.value_type(oid)?;
        self.write_payload(&found.output, payload, out)
    }
}

fn oid_payload(structure: &'static str, payload: &[u8]) -> Result<Oid> {
    let bytes = payload.try_into().map_err(|_| {
        Error::corrupt(structure, 0, format!("{} bytes, expected 4", payload.len()))
    })?;
    Ok(Oid(u32::from_le_bytes(bytes)))
}

/// Puts `out[start..]` in double quotes, `escape` applied to each of its bytes.
pub(super) fn quote_tail(out: &mut Vec<u8>, start: usize, escape: impl Fn(u8) -> Option<u8>) {
    let bare = out.split_off(start);
    out.reserve(bare.len() + 2);
    out.push(b'"');
    for byte in bare {
        out.extend(escape(byte));
        out.push(byte);
    }
    out.push(b'"');
}

/// White space as `isspace` has it in the C locale.
pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}
