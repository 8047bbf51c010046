//! Which files an export has, and what in a place says whose they are: `_export.json` from the beginning, `_manifest.json` at the end.
//!
//! Invariant: the same tables of the same cluster, with the same options, make the same files.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use arrow::datatypes::{Field, SchemaRef};
use pagemill_arrow::{ArrowExport, ArrowOptions, columns_to_measure};
use pagemill_cli::table_files::table_stem;
use pagemill_cluster::ValueCatalog;
use pagemill_engine::{DamageLog, OnDamage, Progress, RowSource};
use serde::{Deserialize, Serialize};

use super::sent::{SentBlocks, SentExport, SentFile, Written};
use crate::error::{Result, SqlState, StatementError};

/// What the place is, from its beginning on.
pub(super) const PLAN: &str = "_export.json";
/// That all is there.
pub(super) const MANIFEST: &str = "_manifest.json";

/// All files of an export.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ExportPlan {
    pub(super) export: SentExport,
    pub(super) files: Vec<SentFile>,
}

/// How files are made of a table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cutting<'a> {
    pub(super) catalog: &'a ValueCatalog,
    pub(super) options: &'a ArrowOptions,
    /// Blocks of a file.
    pub(super) blocks: u32,
}

/// The files of a table. A table without rows has one, for its columns.
///
/// # Errors
/// When the table cannot be read, or has a numeric that would have to be measured first.
pub(super) fn files_of(source: &RowSource<'_>, cutting: Cutting<'_>) -> Result<Vec<SentFile>> {
    let Cutting { catalog, options, blocks } = cutting;
    let open = columns_to_measure(catalog, source.named(), options)?;
    if let Some(column) = open.first() {
        let (table, column) = (source.selected().display_name(), String::from_utf8_lossy(column));
        let message = format!(
            "{table}: the column \"{column}\" is a numeric of no declared size, which workers do not measure"
        );
        let hint = "Say what becomes of it: --numeric text, double or decimal(P,S).";
        let error = StatementError::new(SqlState::FEATURE_NOT_SUPPORTED, message);
        return Err(error.with_hint(hint).into());
    }
    let prepared = ArrowExport::prepare(source, catalog, options, &Progress::default())?;
    let columns = columns_fingerprint(prepared.schema());
    let mut damage = DamageLog::new(OnDamage::Stop);
    let cut = prepared.block_ranges(blocks, &mut damage)?;
    let sent = cut.into_iter().map(|range| {
        let oid = source.parts()[range.part].class.oid.0;
        Some(SentBlocks { part: range.part, oid, first: range.blocks.start, end: range.blocks.end })
    });
    let mut ranges: Vec<Option<SentBlocks>> = sent.collect();
    if ranges.is_empty() {
        ranges.push(None);
    }
    let selected = source.selected();
    let stem = String::from_utf8_lossy(&table_stem(selected)).into_owned();
    let file = |(number, blocks): (usize, Option<SentBlocks>)| SentFile {
        name: format!("{stem}/part-{number:05}.parquet"),
        schema: String::from_utf8_lossy(&selected.schema_utf8()).into_owned(),
        table: String::from_utf8_lossy(&selected.name_utf8()).into_owned(),
        oid: selected.class.oid.0,
        blocks,
        columns,
    };
    Ok(ranges.into_iter().enumerate().map(file).collect())
}

/// Of the columns of a file, their types and all else that is told of them; not of what is told of the file.
pub(super) fn columns_fingerprint(schema: &SchemaRef) -> u64 {
    let mut hasher = DefaultHasher::new();
    for field in schema.fields() {
        let mut metadata: Vec<_> = Field::metadata(field).iter().collect();
        metadata.sort();
        (field.name(), field.data_type().to_string(), field.is_nullable(), metadata)
            .hash(&mut hasher);
    }
    hasher.finish()
}

/// What the manifest tells.
#[derive(Debug, Serialize)]
pub(super) struct Manifest<'p> {
    created_by: &'static str,
    directory: &'p str,
    database: &'p str,
    /// The cluster at the moment that was exported.
    snapshot: String,
    redo_end: Option<&'p str>,
    rows: u64,
    bytes: u64,
    tables: Vec<ManifestTable<'p>>,
}

#[derive(Debug, Serialize)]
struct ManifestTable<'p> {
    schema: &'p str,
    table: &'p str,
    rows: u64,
    files: Vec<ManifestFile<'p>>,
}

#[derive(Debug, Serialize)]
struct ManifestFile<'p> {
    name: &'p str,
    #[serde(flatten)]
    written: Written,
}

impl ExportPlan {
    /// The manifest, with what became of each file.
    pub(super) fn manifest<'p>(&'p self, written: &[Written]) -> Manifest<'p> {
        assert_eq!(self.files.len(), written.len(), "each file is there");
        let mut tables: Vec<ManifestTable<'p>> = Vec::new();
        for (file, written) in self.files.iter().zip(written) {
            let is_it = |of: &&mut ManifestTable<'_>| {
                (of.schema, of.table) == (&*file.schema, &*file.table)
            };
            let found = ManifestFile { name: &file.name, written: *written };
            match tables.last_mut().filter(is_it) {
                Some(table) => {
                    table.rows += written.rows;
                    table.files.push(found);
                }
                None => tables.push(ManifestTable {
                    schema: &file.schema,
                    table: &file.table,
                    rows: written.rows,
                    files: vec![found],
                }),
            }
        }
        Manifest {
            created_by: concat!("pagemill version ", env!("CARGO_PKG_VERSION")),
            directory: &self.export.directory,
            database: &self.export.database,
            snapshot: self.export.snapshot.to_string(),
            redo_end: self.export.redo_end.as_deref(),
            rows: written.iter().map(|file| file.rows).sum(),
            bytes: written.iter().map(|file| file.bytes).sum(),
            tables,
        }
    }
}
