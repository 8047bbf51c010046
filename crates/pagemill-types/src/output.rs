//! A type's output, built once per column from the catalogs and then applied to every value.
//!
//! [`TypeOutput`] is the tree of a type (an array of a composite of enums …). [`Lookups`] is what
//! printing needs from outside: names for OIDs, values kept in TOAST tables, and the types that
//! only the value itself names (`anyarray`, `record`).
//!
//! Invariants: nesting follows the type tree, and the bytes of a value choose a type (the element
//! type of an `anyarray`, that of the bounds in a BRIN summary) at one level only, as in any sound
//! value; so the bytes cannot make quotes in quotes grow without end. [`MAX_DEPTH`] bounds the
//! stack, and no text is longer than PostgreSQL's can be.

use std::collections::HashMap;
use std::sync::Arc;

use pagemill_format::error::{Error, Result};
use pagemill_format::ids::Oid;
use pagemill_format::tuple::AttributeLayout;
use pagemill_format::varlena::{self, ToastPointer, Varlena};

use super::brin::BoundTypes;
use super::decode::{Decode, payload};
use super::jsonb::check_text_length;
use super::money::MoneyFormat;
use super::styled::Styled;
use super::time_zone::Zone;
use super::{ScalarWriter, acl, array, brin, bytea, composite, datetime, money, range};

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
    /// The type that a domain, or a domain over one, is over; of other types their own OID.
    pub base: Oid,
    /// The type modifier that a domain gives its base, -1 for none.
    pub base_modifier: i32,
    /// Length and alignment.
    pub layout: AttributeLayout,
    /// `typdelim`, what separates values of this type in an array.
    pub delimiter: u8,
    /// How it prints.
    pub output: TypeOutput,
    /// What its values are, where the output does not say it.
    pub decode: Decode,
}

/// An attribute of a composite type; dropped ones keep their shape.
#[derive(Debug)]
pub struct CompositeAttribute {
    /// The attribute's name, in the database's encoding.
    pub name: Box<[u8]>,
    /// `atttypmod`, -1 for none.
    pub type_modifier: i32,
    /// Length and alignment.
    pub layout: AttributeLayout,
    /// The type, or `None` for a dropped attribute.
    pub value_type: Option<Arc<ValueType>>,
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
    /// A timestamptz as clocks of a zone other than UTC show it.
    TimestampTz(Arc<Zone>),
    /// What a session's settings print otherwise than by default.
    Styled(Arc<Styled>),
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
        matches!(self, Self::Scalar { plain: true, .. } | Self::TimestampTz(_))
    }
}

/// Prints values; one per thread.
pub struct ValueWriter<'a> {
    lookups: &'a mut dyn Lookups,
    depth: usize,
    /// Where the text of the outermost nested value begins.
    start: usize,
    /// True inside of a value whose type was chosen by the bytes around it.
    chosen: bool,
}

impl<'a> ValueWriter<'a> {
    /// A writer that asks `lookups`.
    pub fn new(lookups: &'a mut dyn Lookups) -> Self {
        Self { lookups, depth: 0, start: 0, chosen: false }
    }

    /// Prints values of the type that the bytes of the value around them name.
    pub(super) fn with_chosen_type(
        &mut self,
        oid: Oid,
        print: impl FnOnce(&mut Self, &ValueType) -> Result<()>,
    ) -> Result<()> {
        if self.chosen {
            let what = format!("it names the type {oid} inside of a value of a type so named");
            return Err(Error::corrupt("value", 0, what));
        }
        let found = self.lookups.value_type(oid)?;
        self.chosen = true;
        let done = print(self, &found);
        self.chosen = false;
        done
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
            -1 => self.write_varlena(output, raw, out)?,
            -2 => self.write_payload(output, raw.strip_suffix(&[0]).unwrap_or(raw), out)?,
            _ => self.write_payload(output, raw, out)?,
        }
        if self.depth == 0 {
            return Ok(());
        }
        check_text_length("value", out.len().saturating_sub(self.start))
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
        detoast(self.lookups, raw, payload)
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
            TypeOutput::TimestampTz(zone) => datetime::write_timestamptz_in(zone, payload, out)?,
            TypeOutput::Styled(styled) => styled.write(payload, out)?,
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
        self.nested(out, |writer, out| match output {
            TypeOutput::Array(element) => array::write_array(writer, Some(element), payload, out),
            TypeOutput::AnyArray => array::write_array(writer, None, payload, out),
            TypeOutput::Composite(attributes) => {
                composite::write_composite(writer, attributes, payload, out)
            }
            TypeOutput::Range(element) => range::write_range(writer, element, payload, out),
            TypeOutput::Multirange(element) => {
                range::write_multirange(writer, element, payload, out)
            }
            TypeOutput::MinMaxSummary => {
                brin::write_pg_brin_minmax_multi_summary(payload, writer, out)
            }
            _ => Ok(()),
        })
    }

    /// Prints a value that is made of others.
    pub(super) fn nested(
        &mut self,
        out: &mut Vec<u8>,
        print: impl FnOnce(&mut Self, &mut Vec<u8>) -> Result<()>,
    ) -> Result<()> {
        if self.depth >= MAX_DEPTH {
            return Err(Error::corrupt("value", 0, format!("nested deeper than {MAX_DEPTH}")));
        }
        if self.depth == 0 {
            self.start = out.len();
        }
        self.depth += 1;
        let done = print(self, out);
        self.depth -= 1;
        done
    }

    /// The payload of a value as it lies in a tuple; what is compressed or stored in a TOAST table is put into `buffer`.
    pub(super) fn payload<'v>(
        &mut self,
        len: i16,
        raw: &'v [u8],
        buffer: &'v mut Vec<u8>,
    ) -> Result<&'v [u8]> {
        payload(self.lookups, len, raw, buffer)
    }
}

/// Appends the payload of a varlena, wherever it is kept.
pub(super) fn detoast(lookups: &mut dyn Lookups, raw: &[u8], payload: &mut Vec<u8>) -> Result<()> {
    match Varlena::parse(raw)? {
        Varlena::Plain(bytes) => payload.extend_from_slice(bytes),
        Varlena::Compressed { raw_bytes, method, data } => {
            varlena::decompress(method, data, raw_bytes, payload)?;
        }
        Varlena::External(pointer) if pointer.compression.is_some() => {
            let mut stored = Vec::new();
            lookups.fetch_toast(&pointer, &mut stored)?;
            varlena::decompress_stored(&pointer, &stored, payload)?;
        }
        Varlena::External(pointer) => lookups.fetch_toast(&pointer, payload)?,
    }
    Ok(())
}

impl BoundTypes for ValueWriter<'_> {
    fn length(&mut self, oid: Oid) -> Result<i16> {
        Ok(self.lookups.value_type(oid)?.layout.len)
    }

    fn write(&mut self, oid: Oid, payload: &[u8], out: &mut Vec<u8>) -> Result<()> {
        self.with_chosen_type(oid, |writer, found| {
            writer.write_payload(&found.output, payload, out)
        })
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

/// A catalog of a few types, for the tests of values in values.
#[cfg(test)]
pub(super) mod samples {
    use super::*;
    use crate::builtin::{BuiltinType, Print};
    use pagemill_format::ids::PgVersion;

    /// `CREATE TYPE pair AS (a int4, gone int8, t text, n numeric, late text[])`, `gone` dropped.
    pub(crate) const PAIR: u32 = 0x402D;
    /// `CREATE TYPE text_range AS RANGE (subtype = text)`.
    pub(crate) const TEXT_RANGE: u32 = 0x403B;
    /// A row of an integer, a range, an array and a row.
    pub(crate) const NEST: u32 = 90_000;
    /// A row with an array that names its element type, as `pg_statistic` has them.
    pub(crate) const STATISTIC: u32 = 90_001;
    /// All types there are.
    pub(crate) const ALL: [u32; 20] = [
        23, 25, 1114, 1700, 1007, 1009, 1231, 2277, 3904, 3906, 3907, 3908, 4451, 4532, 4533, 4601,
        PAIR, TEXT_RANGE, NEST, STATISTIC,
    ];
    /// The arrays of rows, which double the types that can nest.
    const ROWS: u32 = 100_000;
    const ROWS_END: u32 = 2 * ROWS;

    /// The lookups of that catalog; TOAST tables are empty.
    pub(crate) struct Types;

    fn shape(oid: u32) -> (i16, u8) {
        match oid {
            23 => (4, b'i'),
            1114 => (8, b'd'),
            2277 | 3908 | 4533 | PAIR | NEST | STATISTIC | ROWS..ROWS_END => (-1, b'd'),
            _ => (-1, b'i'),
        }
    }

    fn output(oid: u32) -> Option<TypeOutput> {
        let row = |oids: &[u32]| {
            let attribute = |&oid: &u32| CompositeAttribute {
                name: Box::from(*b"a"),
                type_modifier: -1,
                layout: find(oid).unwrap().layout,
                value_type: find(oid),
            };
            oids.iter().map(attribute).collect::<Vec<_>>()
        };
        Some(match oid {
            25 => TypeOutput::Verbatim,
            1007 => TypeOutput::Array(find(23)?),
            1009 => TypeOutput::Array(find(25)?),
            1231 => TypeOutput::Array(find(1700)?),
            2277 => TypeOutput::AnyArray,
            3904 => TypeOutput::Range(find(23)?),
            3906 => TypeOutput::Range(find(1700)?),
            3907 => TypeOutput::Array(find(3906)?),
            3908 => TypeOutput::Range(find(1114)?),
            4451 => TypeOutput::Multirange(find(23)?),
            4532 => TypeOutput::Multirange(find(1700)?),
            4533 => TypeOutput::Multirange(find(1114)?),
            4601 => TypeOutput::MinMaxSummary,
            TEXT_RANGE => TypeOutput::Range(find(25)?),
            PAIR => {
                let mut attributes = row(&[23, 23, 25, 1700, 1009]);
                let layout = AttributeLayout { len: 8, align: 8 };
                let (name, type_modifier) = (Box::from(*b"b"), -1);
                attributes[1] =
                    CompositeAttribute { name, type_modifier, layout, value_type: None };
                TypeOutput::Composite(attributes.into())
            }
            NEST => TypeOutput::Composite(row(&[23, 3906, 3907, PAIR, ROWS + PAIR]).into()),
            STATISTIC => TypeOutput::Composite(row(&[23, 2277]).into()),
            ROWS..ROWS_END => TypeOutput::Array(find(oid - ROWS)?),
            other => {
                let Print::Scalar { write, plain } =
                    BuiltinType::by_oid(Oid(other))?.print_in(PgVersion::V18)
                else {
                    return None;
                };
                TypeOutput::Scalar { write, plain }
            }
        })
    }

    /// The type with this OID; that of an array of it is 100000 higher.
    pub(crate) fn find(oid: u32) -> Option<Arc<ValueType>> {
        let output = output(oid)?;
        let (len, align) = shape(oid);
        let layout = AttributeLayout::new(len, align).unwrap();
        let decode = BuiltinType::by_oid(Oid(oid)).map_or(Decode::Other, |one| one.decode);
        let (oid, base_modifier, delimiter) = (Oid(oid), -1, b',');
        Some(Arc::new(ValueType {
            oid,
            base: oid,
            base_modifier,
            layout,
            delimiter,
            output,
            decode,
        }))
    }

    impl Lookups for Types {
        fn write_name(&mut self, _: NameKind, _: Oid, _: &mut Vec<u8>) -> Result<()> {
            Ok(())
        }

        fn write_role(&mut self, _: Oid, _: &mut Vec<u8>) -> Result<bool> {
            Ok(false)
        }

        fn value_type(&mut self, oid: Oid) -> Result<Arc<ValueType>> {
            find(oid.0).ok_or_else(|| Error::corrupt("type", 0, "no such type"))
        }

        fn fetch_toast(&mut self, _: &ToastPointer, _: &mut Vec<u8>) -> Result<()> {
            Err(Error::corrupt("TOAST value", 0, "not there"))
        }
    }

    /// The text of a payload of the type with this OID.
    pub(crate) fn text(oid: u32, payload: &[u8]) -> Result<String> {
        let mut out = b"before ".to_vec();
        let found = find(oid).unwrap();
        ValueWriter::new(&mut Types).write_payload(&found.output, payload, &mut out)?;
        let printed = out.strip_prefix(b"before ").expect("what was there stays");
        Ok(String::from_utf8_lossy(printed).into_owned())
    }

    /// A payload as it lies in a tuple, behind a length word of four bytes.
    pub(crate) fn stored(payload: &[u8]) -> Vec<u8> {
        let word = (payload.len() as u32 + 4) << 2;
        [&word.to_le_bytes(), payload].concat()
    }

    /// The payload of an array of one value, itself given by its payload.
    pub(crate) fn array_of_one(element: u32, payload: &[u8]) -> Vec<u8> {
        let words = [1, 0, element, 1, 1].map(u32::to_le_bytes);
        [words.concat(), stored(payload)].concat()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::samples::{ALL, STATISTIC, Types, array_of_one, find, stored, text};
    use super::*;

    /// An `anyarray` whose elements were `anyarray` again, each written as one byte and a few
    /// words, had its quotes escaped anew on each level: 64 levels, less than two kilobytes, would
    /// have had a text of 2^64 bytes.
    #[test]
    fn an_array_that_names_its_type_inside_of_one_that_did_is_damage() {
        let mut payload = array_of_one(25, b"\"");
        assert_eq!(text(2277, &payload).unwrap(), r#"{"\""}"#);
        for _ in 0..40 {
            payload = array_of_one(2277, &payload);
        }
        let error = text(2277, &payload).unwrap_err().to_string();
        assert!(error.contains("names the type 2277 inside of"), "{error}");
    }

    #[test]
    fn an_array_of_a_known_type_may_be_inside_of_one_that_names_its_type() {
        let integers = array_of_one(25, b"x y");
        assert_eq!(text(2277, &array_of_one(1009, &integers)).unwrap(), r#"{"{\"x y\"}"}"#);
    }

    #[test]
    fn after_an_error_a_writer_prints_the_next_value_as_if_nothing_had_been() {
        let (bad, good) = (array_of_one(2277, &array_of_one(25, b"a")), array_of_one(25, b"a"));
        let mut types = Types;
        let mut writer = ValueWriter::new(&mut types);
        for _ in 0..2 * MAX_DEPTH {
            assert!(writer.write_payload(&TypeOutput::AnyArray, &bad, &mut Vec::new()).is_err());
            let mut out = Vec::new();
            writer.write_payload(&TypeOutput::AnyArray, &good, &mut out).unwrap();
            assert_eq!(out, b"{a}");
        }
    }

    #[test]
    fn an_array_of_rows_of_arrays_that_name_their_type_prints_as_pg_statistic_does() {
        let array = array_of_one(25, b"a b");
        // Type modifier and type, row pointer, two attributes, no flags, 24 bytes of header.
        let header = [u32::MAX, STATISTIC, 0, 0x0002_0000, 0x0018_0000, 5];
        let mut row = header.map(u32::to_le_bytes).concat();
        row.resize(28, 0);
        row.extend(stored(&array));
        let text = text(100_000 + STATISTIC, &array_of_one(STATISTIC, &row)).unwrap();
        assert_eq!(text, r#"{"(5,\"{\"\"a b\"\"}\")"}"#);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_of_every_type_never_panic(
            bytes in prop::collection::vec(any::<u8>(), 0..300), small in 0_u8..6, rows: bool,
        ) {
            // Small words are what counts, offsets and flags are made of.
            let scaled: Vec<u8> = bytes.iter().map(|byte| byte % (small + 2)).collect();
            for oid in ALL.map(|oid| if rows { 100_000 + oid } else { oid }) {
                for bytes in [&bytes, &scaled] {
                    let _ = text(oid, bytes);
                    let found = find(oid).unwrap();
                    let mut types = Types;
                    let mut writer = ValueWriter::new(&mut types);
                    let _ = writer.write(&found.output, found.layout.len, bytes, &mut Vec::new());
                    let _ = writer.detoast(bytes, &mut Vec::new());
                }
            }
        }
    }
}
