//! From a type to the order of its values: that of its default B-tree operator class, with the collation it is in.
//!
//! Domains are ordered as what they are over, arrays by their elements in the collation of the array, ranges as
//! `pg_range` says, rows by their attributes, each in its own collation, and the strings of a jsonb in the collation of
//! the database.
//!
//! Invariant: an order that is given out is that of the server; a type for which somebody made a default operator class
//! of their own has none here.
//!
//! Source: `GetDefaultOpClass` in `src/backend/commands/indexcmds.c`, `lookup_type_cache` in
//! `src/backend/utils/cache/typcache.c`, `src/include/catalog/pg_opclass.dat`, PostgreSQL 14 to 18.

use std::cmp::Ordering;
use std::io;
use std::sync::Arc;

use pagemill_format::Oid;
use pagemill_format::tuple::AttributeLayout;
use pagemill_sys::LocaleCollation;
use pagemill_types::builtin::{BuiltinType, oid};
use pagemill_types::order::{
    Collation as TextOrder, EnumOrder, InnerOrder, RecordOrder, TextCollation, ValueOrder,
};
use pagemill_types::output::MAX_DEPTH;

use crate::collations::{Collation, DEFAULT_COLLATION};
use crate::database::{Database, FIRST_NORMAL_OID, catalog};
use crate::error::{Error, Result};
use crate::input_rows::{RangeRow, read_ranges};
use crate::refusal::{Refusal, TypeCause};
use crate::value_types::TypeRow;

/// `array_subscript_handler`, which true arrays have.
const ARRAY_SUBSCRIPT_HANDLER: Oid = Oid(6179);
/// `btree` in `pg_am`.
const BTREE: Oid = Oid(403);

/// The order of a collation's texts.
///
/// # Errors
/// When the system does not have the locale.
pub fn text_collation(collation: Option<&Collation>) -> io::Result<TextCollation> {
    struct LibcOrder(LocaleCollation);

    impl TextOrder for LibcOrder {
        fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
            self.0.compare(a, b)
        }
    }

    Ok(match collation {
        Some(Collation::Libc(locale)) => {
            TextCollation::Other(Arc::new(LibcOrder(LocaleCollation::new(locale.as_bytes())?)))
        }
        Some(Collation::Bytes) | None => TextCollation::C,
    })
}

impl Database {
    /// The order of a type's values; `collation` is that of the texts in it, where it has any.
    ///
    /// # Errors
    /// [`Error::Refused`] when it is not known here, with the reason.
    pub fn value_order(&self, of: Oid, collation: Option<&Collation>) -> Result<ValueOrder> {
        Orders { database: self }.order(of, collation, 0)
    }

    /// The order of the bounds of a range type, or of the ranges of a multirange type.
    pub(crate) fn bound_order(&self, range: &RangeRow) -> Result<ValueOrder> {
        Orders { database: self }.bounds(range, 0)
    }
}

struct Orders<'a> {
    database: &'a Database,
}

impl Orders<'_> {
    fn order(&self, of: Oid, collation: Option<&Collation>, depth: usize) -> Result<ValueOrder> {
        let row = self.row(of)?;
        if depth > MAX_DEPTH {
            return Err(unknown(row, TypeCause::ContainsItself));
        }
        if of >= FIRST_NORMAL_OID && row.kind != b'd' && self.has_own_class(of)? {
            return Err(unknown(row, TypeCause::OwnOperatorClass));
        }
        if of == oid::JSONB {
            let strings = self.database.collation_of(DEFAULT_COLLATION)?;
            return Ok(ValueOrder::Jsonb(collated(Some(&strings))?));
        }
        let texts = match BuiltinType::by_oid(of).is_some_and(BuiltinType::is_collated) {
            true if collation.is_none() => return Err(unknown(row, TypeCause::NoCollation)),
            true => collated(collation)?,
            false => TextCollation::C,
        };
        match ValueOrder::of_type(of, &texts) {
            Some(order) => Ok(order),
            None => self.nested(row, collation, depth + 1),
        }
    }

    fn nested(
        &self,
        row: &TypeRow,
        collation: Option<&Collation>,
        depth: usize,
    ) -> Result<ValueOrder> {
        match row.kind {
            b'd' => self.order(row.base, collation, depth),
            b'e' => {
                let labels = self.database.enum_labels_in_order(row.oid)?;
                Ok(ValueOrder::Enum(Arc::new(EnumOrder::new(labels))))
            }
            b'c' => self.record(row, depth),
            b'r' => {
                let range = self.range(row, |range| range.range)?;
                Ok(ValueOrder::Range(self.inner_bounds(&range, depth)?))
            }
            b'm' => {
                let range = self.range(row, |range| range.multirange)?;
                Ok(ValueOrder::Multirange(self.inner_bounds(&range, depth)?))
            }
            b'b' if row.subscript == ARRAY_SUBSCRIPT_HANDLER && row.len == -1 => {
                let order = self.order(row.element, collation, depth)?;
                let layout = layout(self.row(row.element)?)?;
                Ok(ValueOrder::Array(Arc::new(InnerOrder { layout, order })))
            }
            _ => Err(unknown(row, TypeCause::UnknownOrder)),
        }
    }

    fn record(&self, row: &TypeRow, depth: usize) -> Result<ValueOrder> {
        let mut found = Vec::new();
        let wanted = [
            "attrelid",
            "attnum",
            "atttypid",
            "attcollation",
            "attlen",
            "attalign",
            "attisdropped",
        ];
        self.database.scan(catalog::PG_ATTRIBUTE, &wanted, |attribute| {
            if attribute.oid(0)? == row.relation && attribute.i16(1)? > 0 {
                let layout = AttributeLayout::new(attribute.i16(4)?, attribute.byte(5)?)?;
                let live = attribute.byte(6)? == 0;
                let of = live.then_some((attribute.oid(2)?, attribute.oid(3)?));
                found.push((attribute.i16(1)?, layout, of));
            }
            Ok(())
        })?;
        found.sort_by_key(|(number, ..)| *number);
        let numbers: Vec<i16> = found.iter().map(|(number, ..)| *number).collect();
        self.database.check_numbers(row.relation, &numbers)?;
        let attribute = |(_, layout, of): (i16, AttributeLayout, Option<(Oid, Oid)>)| {
            let Some((of, collation)) = of else { return Ok((layout, None)) };
            let collation = self.collation(collation)?;
            Ok((layout, Some(self.order(of, collation.as_ref(), depth)?)))
        };
        let attributes = found.into_iter().map(attribute).collect::<Result<_>>()?;
        Ok(ValueOrder::Record(Arc::new(RecordOrder::new(attributes))))
    }

    fn inner_bounds(&self, range: &RangeRow, depth: usize) -> Result<Arc<InnerOrder>> {
        let order = self.bounds(range, depth)?;
        Ok(Arc::new(InnerOrder { layout: layout(self.row(range.subtype)?)?, order }))
    }

    /// As the operator class of the range says.
    fn bounds(&self, range: &RangeRow, depth: usize) -> Result<ValueOrder> {
        let (name, is_default) = self.operator_class(range.operators)?;
        let collation = match is_default {
            true => self.collation(range.collation)?,
            false if name.ends_with("_pattern_ops") => Some(Collation::Bytes),
            false => {
                let row = self.row(range.range)?;
                return Err(unknown(row, TypeCause::OperatorClass(name)));
            }
        };
        self.order(range.subtype, collation.as_ref(), depth)
    }

    fn range(&self, row: &TypeRow, key: fn(&RangeRow) -> Oid) -> Result<RangeRow> {
        let found = read_ranges(self.database)?.into_iter().find(|range| key(range) == row.oid);
        found.ok_or_else(|| unknown(row, TypeCause::NotInPgRange))
    }

    fn collation(&self, oid: Oid) -> Result<Option<Collation>> {
        oid.is_valid().then(|| self.database.collation_of(oid)).transpose()
    }

    /// The name of an operator class, and whether its type has it by default.
    fn operator_class(&self, oid: Oid) -> Result<(String, bool)> {
        let mut found = (String::new(), false);
        self.database.scan_any(
            catalog::PG_OPCLASS,
            &["oid", "opcname", "opcdefault"],
            |class| {
                if class.oid(0)? == oid {
                    let name = String::from_utf8_lossy(&class.name(1)?).into_owned();
                    found = (name, class.byte(2)? != 0 && oid < FIRST_NORMAL_OID);
                }
                Ok(())
            },
        )?;
        Ok(found)
    }

    /// True for a type with a default operator class for B-trees that is made for it alone.
    fn has_own_class(&self, of: Oid) -> Result<bool> {
        let mut found = false;
        let wanted = ["opcmethod", "opcintype", "opcdefault"];
        self.database.scan_any(catalog::PG_OPCLASS, &wanted, |class| {
            found |= class.oid(0)? == BTREE && class.oid(1)? == of && class.byte(2)? != 0;
            Ok(())
        })?;
        Ok(found)
    }

    fn row(&self, oid: Oid) -> Result<&TypeRow> {
        let missing = || Error::refused(Refusal::missing_row("pg_type", "the type", oid));
        self.database.types()?.row(oid).ok_or_else(missing)
    }
}

fn layout(row: &TypeRow) -> Result<AttributeLayout> {
    AttributeLayout::new(row.len, row.align).map_err(|error| unknown(row, TypeCause::Layout(error)))
}

fn unknown(row: &TypeRow, cause: TypeCause) -> Error {
    Error::refused(Refusal::Type { name: String::from_utf8_lossy(&row.name).into_owned(), cause })
}

fn collated(collation: Option<&Collation>) -> Result<TextCollation> {
    text_collation(collation).map_err(|error| {
        let locale = match collation {
            Some(Collation::Libc(locale)) => locale.as_str(),
            _ => "C",
        };
        Error::refused(Refusal::MissingLocale { locale: locale.to_owned(), error })
    })
}
