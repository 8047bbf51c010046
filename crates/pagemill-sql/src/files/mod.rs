//! CSV and Parquet files as tables, under the names that the command line gives them: no statement opens a file by itself.
//!
//! A CSV file is read by the rules of `COPY … FROM … (format csv, header)`, and its columns are texts, which casts make anything else. A
//! column of a Parquet file has the type here that holds all its values (`conversion.rs`); one without such a type is there and
//! cannot be used.
//!
//! Invariants: a file is read when a statement names it, once, and whole; a value is what it is in the file, or the file is refused.

mod conversion;
mod csv;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use arrow::datatypes::{Field, Schema};
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::common::{Column, TableReference};
use datafusion::datasource::{MemTable, provider_as_source};
use datafusion::logical_expr::{Expr, LogicalPlanBuilder};
use object_store::PutPayload;
use pagemill_arrow::read_parquet;
use pagemill_io::HostFiles;

use crate::bind::{Bound, BoundColumn};
use crate::catalog::Catalog;
use crate::error::{Error, Result, SqlState, StatementError, fail, unsupported};
use crate::typed::Typed;
use crate::types::PgType;

/// A file under a name.
#[derive(Debug, Clone)]
pub struct NamedFile {
    /// The name in statements.
    pub name: String,
    /// The file: `.csv` or `.parquet`.
    pub path: PathBuf,
}

/// What was read of a file.
struct FileTable {
    types: Vec<PgType>,
    table: Arc<MemTable>,
}

/// The files that statements can name.
#[derive(Default)]
pub(crate) struct Files {
    named: Arc<[NamedFile]>,
    read: Mutex<HashMap<String, Arc<FileTable>>>,
}

impl Files {
    pub(crate) fn new(named: Arc<[NamedFile]>) -> Self {
        Self { named, read: Mutex::default() }
    }

    pub(crate) fn named(&self) -> &Arc<[NamedFile]> {
        &self.named
    }

    /// A scan of the file of this name, under an alias; `None` where no file has it.
    pub(crate) fn scan(
        &self,
        catalog: &Catalog,
        (name, alias): (&str, &str),
        memory: Option<usize>,
    ) -> Result<Option<Bound>> {
        let Some(file) = self.named.iter().find(|file| file.name == name) else { return Ok(None) };
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let found = match read.get(name) {
            Some(found) => found.clone(),
            None => {
                let found = read_file(catalog, &file.path, memory);
                let found = Arc::new(found.map_err(|error| of_file(&file.path, error))?);
                read.insert(name.to_owned(), found.clone());
                found
            }
        };
        found.bound(alias).map(Some)
    }
}

impl FileTable {
    fn bound(&self, alias: &str) -> Result<Bound> {
        let relation = TableReference::bare(alias);
        let schema = datafusion::catalog::TableProvider::schema(&*self.table);
        let column = |(field, ty): (&Arc<Field>, &PgType)| {
            let expr = Expr::Column(Column::new(Some(relation.clone()), field.name()));
            let typed = Typed::new(expr, *ty, field.data_type().clone());
            BoundColumn { name: field.name().clone(), typed }
        };
        let columns = schema.fields().iter().zip(&self.types).map(column).collect();
        let source = provider_as_source(self.table.clone());
        let plan = LogicalPlanBuilder::scan(relation.clone(), source, None)?.build()?;
        Ok(Bound { plan, columns })
    }

    fn new(columns: Vec<(String, PgType)>, batches: Vec<RecordBatch>) -> Result<Self> {
        for (at, (name, _)) in columns.iter().enumerate() {
            if columns[..at].iter().any(|(other, _)| other == name) {
                let message = format!("column name \"{name}\" is there twice");
                return Err(StatementError::new(SqlState("42701"), message).into());
            }
        }
        let field =
            |(name, ty): &(String, PgType)| Field::new(name, conversion::carrier(*ty), true);
        let schema = Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()));
        let renamed = |batch: RecordBatch| {
            let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
            RecordBatch::try_new_with_options(schema.clone(), batch.columns().to_vec(), &options)
        };
        let batches = batches.into_iter().map(renamed).collect::<Result<Vec<_>, _>>();
        let batches = batches.map_err(datafusion::error::DataFusionError::from)?;
        let types = columns.into_iter().map(|(_, ty)| ty).collect();
        Ok(Self { types, table: Arc::new(MemTable::try_new(schema, vec![batches])?) })
    }
}

fn read_file(catalog: &Catalog, path: &Path, memory: Option<usize>) -> Result<FileTable> {
    let ending = path.extension().and_then(|ending| ending.to_str()).map(str::to_lowercase);
    match ending.as_deref() {
        Some("csv") => csv::read(catalog, path, memory),
        Some("parquet") => {
            let most = memory.map_or(u64::MAX, |memory| memory as u64);
            let contents = HostFiles::real().read_file(path, most);
            let contents = contents.map_err(pagemill_cluster::Error::from)?;
            // The reader takes bytes that are shared, of which a payload is one piece.
            let payload = PutPayload::from(contents);
            let Some(shared) = payload.as_ref().first().cloned() else {
                return fail(SqlState::IO_ERROR, "an empty file");
            };
            let (schema, batches) = read_parquet(shared, memory)?;
            let types: Vec<PgType> =
                schema.fields().iter().map(|field| conversion::type_of(field)).collect();
            let batches = batches
                .iter()
                .map(|batch| conversion::converted(batch, &types))
                .collect::<Result<_>>()?;
            let names = schema.fields().iter().map(|field| field.name().clone());
            FileTable::new(names.zip(types.iter().copied()).collect(), batches)
        }
        _ => unsupported("a file whose name ends neither in .csv nor in .parquet"),
    }
}

fn of_file(path: &Path, error: Error) -> Error {
    match error {
        Error::Statement(mut error) => {
            error.message = format!("{}: {}", path.display(), error.message);
            error.into()
        }
        // Names the file itself.
        Error::Engine(error) => error.into(),
        other => {
            StatementError::new(SqlState::IO_ERROR, format!("{}: {other}", path.display())).into()
        }
    }
}
