//! The columns of a row version, each as COPY would print it, or with the reason why it cannot be printed: a version that is
//! gone can have values whose TOAST chunks are gone too.

use pagemill_cluster::{Database, Generated, Relation, UnknownTypes, ValueCatalog, ValueLookups};
use pagemill_format::tuple::{HeapTuple, Span};
use pagemill_types::output::ValueWriter;

use crate::encoding::{readable_name, utf8_name};
use crate::error::Result;

/// A column of a row version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnValue {
    /// Its name.
    pub name: String,
    /// Its text, `None` for null; or why it cannot be read.
    pub value: Result<Option<String>, String>,
}

/// Prints row versions of one table.
pub(super) struct VersionValues<'a> {
    relation: &'a Relation,
    catalog: ValueCatalog,
    lookups: ValueLookups,
    encoding: i32,
}

impl<'a> VersionValues<'a> {
    pub(super) fn new(database: &Database, relation: &'a Relation) -> Result<Self> {
        let catalog = ValueCatalog::new(database, UnknownTypes::Hex)?;
        let (lookups, encoding) = (catalog.lookups(), database.row().encoding);
        Ok(Self { relation, catalog, lookups, encoding })
    }

    /// The columns of a version, but for dropped ones and those that are computed when they are read.
    pub(super) fn of(&mut self, tuple: HeapTuple<'_>) -> Vec<ColumnValue> {
        let (relation, data) = (self.relation, tuple.data());
        let mut spans = Vec::new();
        let taken_apart = relation.layout.spans(&data, relation.columns.len(), &mut spans);
        let mut found = Vec::new();
        for (position, column) in relation.columns.iter().enumerate() {
            if column.dropped || column.generated == Generated::Virtual {
                continue;
            }
            let raw = match (&taken_apart, spans.get(position)) {
                (Err(error), _) => Err(error.to_string()),
                (Ok(()), None | Some(&Span::MISSING)) => Ok(column.missing.as_deref()),
                (Ok(()), Some(span)) => Ok(span.of(data.data)),
            };
            let value = raw.and_then(|raw| raw.map(|raw| self.text(position, raw)).transpose());
            found.push(ColumnValue { name: readable_name(self.encoding, &column.name), value });
        }
        found
    }

    fn text(&mut self, position: usize, raw: &[u8]) -> Result<String, String> {
        let column = &self.relation.columns[position];
        let value_type = self.catalog.value_type(column.type_oid);
        let value_type = value_type.map_err(|error| error.to_string())?;
        let mut text = Vec::new();
        let mut writer = ValueWriter::new(&mut self.lookups);
        let written = writer.write(&value_type.output, column.layout.len, raw, &mut text);
        written.map_err(|error| error.to_string())?;
        Ok(String::from_utf8_lossy(&utf8_name(self.encoding, &text)).into_owned())
    }
}
