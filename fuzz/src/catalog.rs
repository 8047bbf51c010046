//! A catalog of a few types that nest in each other, with OIDs small enough to be found by chance.
//!
//! The bytes choose types only where they do so in a real cluster too: the element type of an
//! array, the type of the bounds in a BRIN summary. TOAST tables hold zeros, as many as asked for
//! up to a limit; every second role has a name that needs quotes.

use std::sync::{Arc, LazyLock};

use pagemill_format::tuple::AttributeLayout;
use pagemill_format::varlena::ToastPointer;
use pagemill_format::{Error, Oid, PgVersion, Result};
use pagemill_types::builtin::{BuiltinType, Print};
use pagemill_types::decode::Decode;
use pagemill_types::output::{CompositeAttribute, Lookups, NameKind, TypeOutput, ValueType};

const MOST_TOASTED_BYTES: usize = 1 << 20;

/// Lookups that answer from the table of types in this file.
pub struct Catalog;

/// All types, the OID of each being its place in the list, from 1.
static TYPES: LazyLock<Vec<Arc<ValueType>>> = LazyLock::new(types);

/// The OIDs whose type is of the kind that `wanted` accepts.
pub fn oids(wanted: impl Fn(&TypeOutput) -> bool) -> impl Iterator<Item = Oid> {
    TYPES.iter().filter(move |found| wanted(&found.output)).map(|found| found.oid)
}

struct Builder(Vec<Arc<ValueType>>);

impl Builder {
    fn add(&mut self, len: i16, align: u8, output: TypeOutput) -> Arc<ValueType> {
        let layout = AttributeLayout::new(len, align).expect("a shape that a type can have");
        let oid = Oid(self.0.len() as u32 + 1);
        let made = Arc::new(ValueType {
            oid,
            base: oid,
            base_modifier: -1,
            layout,
            delimiter: b',',
            output,
            decode: Decode::Other,
        });
        self.0.push(made.clone());
        made
    }

    fn scalar(&mut self, oid: u32, len: i16, align: u8) -> Arc<ValueType> {
        let print = BuiltinType::by_oid(Oid(oid)).map(|one| one.print_in(PgVersion::V18));
        let Some(Print::Scalar { write, plain }) = print else { panic!("{oid} is no scalar type") };
        self.add(len, align, TypeOutput::Scalar { write, plain })
    }

    /// A row of all types so far, with a dropped attribute in the middle.
    fn row(&mut self) -> Arc<ValueType> {
        let dropped = self.0.len() / 2;
        let attribute = |(at, found): (usize, &Arc<ValueType>)| CompositeAttribute {
            name: format!("a{at}").into_bytes().into(),
            type_modifier: -1,
            layout: found.layout,
            value_type: (at != dropped).then(|| found.clone()),
        };
        let attributes: Vec<_> = self.0.iter().enumerate().map(attribute).collect();
        self.add(-1, b'd', TypeOutput::Composite(attributes.into()))
    }
}

fn types() -> Vec<Arc<ValueType>> {
    let mut types = Builder(Vec::new());
    let simple = [
        types.scalar(16, 1, b'c'),
        types.scalar(21, 2, b's'),
        types.scalar(23, 4, b'i'),
        types.scalar(1114, 8, b'd'),
        types.scalar(1700, -1, b'i'),
        types.add(-1, b'i', TypeOutput::Verbatim),
        types.add(-2, b'c', TypeOutput::Verbatim),
        types.add(12, b'i', TypeOutput::AclItem),
    ];
    types.add(4, b'i', TypeOutput::Name(NameKind::Class));
    types.add(4, b'i', TypeOutput::Enum(Arc::default()));
    types.add(-1, b'i', TypeOutput::MinMaxSummary);
    for element in simple {
        types.add(-1, b'd', TypeOutput::Array(element.clone()));
        let range = types.add(-1, b'i', TypeOutput::Range(element.clone()));
        types.add(-1, b'd', TypeOutput::Array(range));
        types.add(-1, b'i', TypeOutput::Multirange(element));
    }
    types.add(-1, b'd', TypeOutput::AnyArray);
    let row = types.row();
    let rows = types.add(-1, b'd', TypeOutput::Array(row.clone()));
    types.add(-1, b'd', TypeOutput::Range(row));
    types.add(-1, b'd', TypeOutput::Multirange(rows));
    types.row();
    types.0
}

impl Lookups for Catalog {
    fn write_name(&mut self, _: NameKind, oid: Oid, out: &mut Vec<u8>) -> Result<()> {
        out.extend_from_slice(format!("\"name {oid}\"").as_bytes());
        Ok(())
    }

    fn write_role(&mut self, oid: Oid, out: &mut Vec<u8>) -> Result<bool> {
        let has_name = oid.0.is_multiple_of(2);
        out.extend_from_slice(if has_name { b"a \"role\"" } else { b"" });
        Ok(has_name)
    }

    fn value_type(&mut self, oid: Oid) -> Result<Arc<ValueType>> {
        let found = (oid.0 as usize).checked_sub(1).and_then(|at| TYPES.get(at));
        found.cloned().ok_or_else(|| Error::corrupt("type", 0, "no such type"))
    }

    fn fetch_toast(&mut self, pointer: &ToastPointer, out: &mut Vec<u8>) -> Result<()> {
        let stored = (pointer.stored_size as usize).min(MOST_TOASTED_BYTES);
        out.resize(out.len() + stored, 0);
        Ok(())
    }
}
