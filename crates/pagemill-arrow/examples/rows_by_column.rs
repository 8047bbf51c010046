//! How many rows a table has of each value of a column: its record batches, counted with nothing but Arrow's arrays.
//!
//! `cargo run -p pagemill-arrow --example rows_by_column -- /var/lib/postgresql/15/main shop public.orders state`

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use arrow_array::cast::AsArray as _;
use arrow_array::{Array as _, StringArray};
use pagemill_arrow::{ArrowExport, ArrowOptions};
use pagemill_cluster::{Cluster, OpenOptions, UnknownTypes, ValueCatalog};
use pagemill_engine::{DamageLog, OnDamage, PatternTexts, Patterns, Progress, RowSource};
use pagemill_io::Storage;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut next = || arguments.next().context("DIRECTORY DATABASE TABLE COLUMN");
    let (directory, database, table, column) = (next()?, next()?, next()?, next()?);

    let cluster = Cluster::open(Storage::real(), directory.as_ref(), OpenOptions::default())?;
    let database = cluster.database(&database)?;
    let catalog = ValueCatalog::new(&database, UnknownTypes::Refuse)?;
    let tables = [table];
    let texts = PatternTexts { tables: &tables, ..PatternTexts::default() };
    let selected = Patterns::parse(texts)?.select(&database)?;
    let sources = RowSource::all(&database, &selected)?;
    let source = sources.first().context("there is no such table")?;

    // A column to partition by comes as its text, whatever its type.
    let partition_by = vec![column.into_bytes().into()];
    let options = ArrowOptions { partition_by, ..ArrowOptions::default() };
    let progress = Progress::default();
    let export = ArrowExport::prepare(source, &catalog, &options, &progress)?;
    let (mut batches, mut damage) = (export.batches(&progress), DamageLog::new(OnDamage::Stop));
    let mut counts: BTreeMap<Option<String>, u64> = BTreeMap::new();
    while let Some(batch) = batches.next_batch(&mut damage)? {
        let values: &StringArray = batch.column(batch.num_columns() - 1).as_string();
        for at in 0..values.len() {
            let value = values.is_valid(at).then(|| values.value(at).to_owned());
            *counts.entry(value).or_default() += 1;
        }
    }
    for (value, rows) in counts {
        println!("{rows:>12}  {}", value.as_deref().unwrap_or("NULL"));
    }
    Ok(())
}
