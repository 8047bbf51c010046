//! What columns get that the input does not have.
//!
//! Constants, and the moment of the load, are worked out once. Values of sequences are taken row by row in the order of the
//! input, which is why one thread reads all rows of such a load.
//!
//! Invariant: a column with a default that is not known here is refused before anything is read.

use std::sync::{Mutex, PoisonError};

use pagemill_cluster::sequences::Sequence;
use pagemill_cluster::stored_defaults::StoredDefault;
use pagemill_cluster::value_inputs::InputCatalog;
use pagemill_cluster::{Column, Database, Relation, UnknownTypes, ValueCatalog};
use pagemill_format::node_tree::Const;
use pagemill_types::input::tree::ValueReader;
use pagemill_types::output::ValueWriter;

use crate::error::{Error, Result};
use crate::refusal::{LeftOutCause, LoadRefusal};

/// The defaults of a load.
#[derive(Debug)]
pub(super) struct ColumnDefaults {
    /// By the position of their column.
    columns: Vec<(usize, ColumnDefault)>,
    sequences: Mutex<Vec<Sequence>>,
}

/// What one column gets.
#[derive(Debug)]
enum ColumnDefault {
    Payload(Vec<u8>),
    /// Of this sequence, in so many bytes.
    Next(usize, usize),
}

impl ColumnDefaults {
    /// Those of the columns that are not among the input's `fields`.
    ///
    /// # Errors
    /// For a column with a default that only a server can evaluate, or that may not be null and has none.
    pub(super) fn new(
        database: &Database,
        relation: &Relation,
        fields: &[usize],
        catalog: &InputCatalog,
    ) -> Result<Self> {
        let mut defaults = Self { columns: Vec::new(), sequences: Mutex::default() };
        let is_left_out = |(at, column): &(usize, &Column)| !fields.contains(at) && !column.dropped;
        let left_out: Vec<_> = relation.columns.iter().enumerate().filter(is_left_out).collect();
        if left_out.is_empty() {
            return Ok(defaults);
        }
        let types_with_default = database.types_with_default()?;
        let mut stored = database.stored_defaults(relation)?;
        let made = Maker { database, relation, catalog };
        for (position, column) in left_out {
            let default = match stored.remove(&position) {
                Some(default) => default,
                None if column.has_default || column.is_identity => StoredDefault::Unknown,
                None if types_with_default.contains(&column.type_oid) => {
                    return Err(made.refused(column, LeftOutCause::TypeDefault));
                }
                None => StoredDefault::Null,
            };
            let default = match default {
                StoredDefault::Next(oid) if matches!(column.layout.len, 2 | 4 | 8) => {
                    Some(defaults.next(database, oid, column)?)
                }
                other => made.payload(column, other)?.map(ColumnDefault::Payload),
            };
            defaults.columns.extend(default.map(|default| (position, default)));
        }
        Ok(defaults)
    }

    fn next(
        &mut self,
        database: &Database,
        oid: pagemill_format::Oid,
        column: &Column,
    ) -> Result<ColumnDefault> {
        let sequences = self.sequences.get_mut().unwrap_or_else(PoisonError::into_inner);
        let at = match sequences.iter().position(|known| known.class.oid == oid) {
            Some(at) => at,
            None => {
                sequences.push(database.sequence(oid)?);
                sequences.len() - 1
            }
        };
        let bytes = usize::try_from(column.layout.len).expect("numbers are of 2, 4 or 8 bytes"); // infallible: only numbers come here
        Ok(ColumnDefault::Next(at, bytes))
    }

    /// True when the order of the rows decides what they get.
    pub(super) fn depend_on_order(&self) -> bool {
        self.columns.iter().any(|(_, default)| matches!(default, ColumnDefault::Next(..)))
    }

    /// Hands each column's payload to `put`, for the next row.
    ///
    /// # Errors
    /// In the server's words, when a sequence has no value left, or one that its column cannot hold.
    #[inline]
    pub(super) fn fill(&self, mut put: impl FnMut(usize, &[u8])) -> Result<(), String> {
        for (position, default) in &self.columns {
            match default {
                ColumnDefault::Payload(payload) => put(*position, payload),
                ColumnDefault::Next(at, bytes) => {
                    let mut sequences =
                        self.sequences.lock().unwrap_or_else(PoisonError::into_inner);
                    put(*position, &narrowed(sequences[*at].next_value()?, *bytes)?);
                }
            }
        }
        Ok(())
    }

    /// The sequences, as they are now.
    pub(super) fn sequences(&self) -> Vec<Sequence> {
        self.sequences.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A value of a sequence as a column of so many bytes has it.
fn narrowed(value: i64, bytes: usize) -> Result<Vec<u8>, String> {
    let fits = match bytes {
        2 => i16::try_from(value).is_ok(),
        4 => i32::try_from(value).is_ok(),
        _ => true,
    };
    if !fits {
        let name = if bytes == 2 { "smallint" } else { "integer" };
        return Err(format!("{name} out of range"));
    }
    Ok(value.to_le_bytes()[..bytes].to_vec())
}

struct Maker<'a> {
    database: &'a Database,
    relation: &'a Relation,
    catalog: &'a InputCatalog,
}

impl Maker<'_> {
    fn refused(&self, column: &Column, cause: LeftOutCause) -> Error {
        let (column, table) = (column.display_name(), self.relation.display_name());
        Error::refused(LoadRefusal::LeftOut { column, table, cause })
    }

    /// The payload of a default that is the same for all rows; `None` for NULL.
    fn payload(&self, column: &Column, default: StoredDefault) -> Result<Option<Vec<u8>>> {
        let read = match default {
            StoredDefault::Constant(payload) => {
                let fits = usize::try_from(column.layout.len).is_ok_and(|len| len == payload.len());
                (fits || column.layout.len < 0).then_some(payload)
            }
            StoredDefault::Converted(constant) => {
                self.text(&constant).and_then(|text| self.read(column, &text))
            }
            StoredDefault::Now => self.read(column, b"now"),
            StoredDefault::Null if column.not_null => {
                return Err(self.refused(column, LeftOutCause::NotNull));
            }
            StoredDefault::Null => return Ok(None),
            StoredDefault::Next(_) | StoredDefault::Unknown => None,
        };
        read.map(Some).ok_or_else(|| self.refused(column, LeftOutCause::Default))
    }

    /// The text of a constant.
    fn text(&self, constant: &Const) -> Option<Vec<u8>> {
        let catalog = ValueCatalog::new(self.database, UnknownTypes::Refuse).ok()?;
        let of = catalog.value_type(constant.type_oid).ok()?;
        let mut lookups = catalog.lookups();
        let mut text = Vec::new();
        let payload = constant.payload().ok()??;
        let payload = &*payload;
        ValueWriter::new(&mut lookups).write_payload(&of.output, payload, &mut text).ok()?;
        Some(text)
    }

    /// What a text reads as in a column.
    fn read(&self, column: &Column, text: &[u8]) -> Option<Vec<u8>> {
        let value_type = self.catalog.value_type(column.type_oid).ok()?;
        let mut names = self.catalog.lookups();
        let mut reader = ValueReader::new(&mut names, self.catalog.context());
        let mut payload = Vec::new();
        let read = reader.read(&value_type.input, column.type_modifier, text, &mut payload);
        read.ok().map(|_| payload)
    }
}
