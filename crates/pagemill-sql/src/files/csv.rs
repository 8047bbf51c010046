//! A CSV file as texts, by the rules of `COPY … FROM … (format csv, header)`.
//!
//! Invariant: the first line names the columns; every row has a value for each.

use std::path::Path;
use std::sync::Arc;

use arrow::array::{Array as _, ArrayRef, StringBuilder};
use arrow::record_batch::RecordBatch;
use pagemill_engine::copy::from::{
    CopyFromOptions, CopyRules, CopyTarget, Header, Input, InputSource, Rows, Workers, run,
};
use pagemill_engine::{Error as EngineError, Format};
use pagemill_io::Storage;
use pagemill_types::builtin::oid;

use super::FileTable;
use crate::catalog::Catalog;
use crate::error::{Result, SqlState, fail};
use crate::types::PgType;

/// The most columns that a table has.
///
/// Source: `MaxHeapAttributeNumber` in `src/include/access/htup_details.h`, PostgreSQL 18.
const MOST_COLUMNS: usize = 1600;

pub(super) fn read(catalog: &Catalog, path: &Path, memory: Option<usize>) -> Result<FileTable> {
    let names = names(catalog, path)?;
    let columns: Vec<&[u8]> = names.iter().map(String::as_bytes).collect();
    let rules = rules(catalog, path, (&columns, Header::Skip))?;
    let (mut batches, mut bytes) = (Vec::new(), 0);
    let work = |(): &mut (), rows: &mut Rows<'_>| texts(rows, columns.len());
    read_rows(path, &rules, work, |batch: Vec<ArrayRef>| {
        bytes += batch.iter().map(|array| array.get_array_memory_size()).sum::<usize>();
        batches.push(batch);
        match memory.is_some_and(|memory| bytes > memory) {
            true => Err(EngineError::Cancelled),
            false => Ok(()),
        }
    })
    .or_else(|error| match error {
        EngineError::Cancelled => {
            fail(SqlState::OUT_OF_MEMORY, "it does not fit into the memory allowed")
        }
        other => Err(other.into()),
    })?;
    let named = |arrays: Vec<ArrayRef>| RecordBatch::try_from_iter(names.iter().zip(arrays));
    let batches = batches.into_iter().map(named).collect::<Result<Vec<_>, _>>();
    let batches = batches.map_err(datafusion::error::DataFusionError::from)?;
    let columns = names.iter().map(|name| (name.clone(), PgType::new(oid::TEXT)));
    FileTable::new(columns.collect(), batches)
}

/// The names in the first line.
fn names(catalog: &Catalog, path: &Path) -> Result<Vec<String>> {
    let columns = vec![&b"column"[..]; MOST_COLUMNS];
    let rules = rules(catalog, path, (&columns, Header::None))?;
    let mut first: Option<Vec<String>> = None;
    let work = |(): &mut (), rows: &mut Rows<'_>| {
        let Some(row) = rows.next_row()? else { return Ok(Vec::new()) };
        // Behind the last value there is an error.
        let values = (0..MOST_COLUMNS).map_while(|at| row.value(at).ok());
        let text =
            |value: Option<&[u8]>| String::from_utf8_lossy(value.unwrap_or_default()).into_owned();
        Ok(values.map(text).collect())
    };
    let done = read_rows(path, &rules, work, |names| {
        first = Some(names);
        Err(EngineError::Cancelled)
    });
    match done {
        Ok(()) | Err(EngineError::Cancelled) => {}
        Err(other) => return Err(other.into()),
    }
    match first {
        Some(names) if !names.is_empty() && names.iter().all(|name| !name.is_empty()) => Ok(names),
        _ => fail(SqlState("42601"), "its first line does not name the columns"),
    }
}

/// The file, on threads of which there is one.
fn read_rows<R: Send>(
    path: &Path,
    rules: &CopyRules,
    work: impl Fn(&mut (), &mut Rows<'_>) -> Result<R, EngineError> + Sync,
    consume: impl FnMut(R) -> Result<(), EngineError>,
) -> Result<(), EngineError> {
    let storage = Storage::real();
    let sources = vec![InputSource::File(path.to_owned())];
    run(Input { storage: &storage, rules, sources }, Workers::new(1, || (), work), consume)
}

fn rules(
    catalog: &Catalog,
    path: &Path,
    (columns, header): (&[&[u8]], Header),
) -> Result<CopyRules> {
    let options = CopyFromOptions {
        format: Format::Csv,
        header,
        encoding: Some("UTF8".to_owned()),
        ..CopyFromOptions::default()
    };
    let database = catalog.database();
    let target = CopyTarget {
        relation: &path.to_string_lossy(),
        columns,
        encoding: database.row().encoding,
        server_major: database.cluster().version().major(),
    };
    Ok(CopyRules::new(&options, target)?)
}

fn texts(rows: &mut Rows<'_>, width: usize) -> Result<Vec<ArrayRef>, EngineError> {
    let mut columns: Vec<StringBuilder> = (0..width).map(|_| StringBuilder::new()).collect();
    while let Some(row) = rows.next_row()? {
        for (at, column) in columns.iter_mut().enumerate() {
            match row.value(at)? {
                None => column.append_null(),
                Some(text) => column.append_value(String::from_utf8_lossy(text)),
            }
        }
    }
    Ok(columns.iter_mut().map(|column| Arc::new(column.finish()) as ArrayRef).collect())
}
