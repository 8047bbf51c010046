//! `pagemill count`: the bare number for one table asked for by name, else a line per table.
//!
//! As JSON, always an array of tables. Which of the two depends on what was asked, never on what was found, so that a script
//! can rely on it.

use anyhow::Result;
use pagemill_engine::{Error as EngineError, RowSource};
use serde_json::{Value, json};

use crate::arguments::CountArguments;
use crate::failure::{Completion, is_usage};
use crate::order::Order;
use crate::session::Session;
use crate::tables::Tables;

pub(crate) fn run(arguments: &CountArguments) -> Result<Completion> {
    let session = Session::new(&arguments.common)?.recovered(&arguments.recovery)?;
    let database = session.database(&arguments.database.dbname)?;
    let tables = Tables::choose(&database, &arguments.selection)?;
    let order = Order::of(&arguments.order, &arguments.common, &tables)?;
    let options = session.scan_options(arguments.order.scan_order());
    let mut output = session.standard_output()?;
    let mut counted = Vec::new();
    let outcome = tables.for_each(&session, |source, watch| {
        let rows = match &order {
            None => source.count(options, watch.progress, watch.damage)?,
            Some(order) => order.count(options, source, watch)?,
        };
        watch.work.rows += rows;
        if arguments.json {
            counted.push(json_of(source, rows));
            return Ok(());
        }
        let line = if tables.named_one { format!("{rows}\n") } else { line(source, rows) };
        let written = watch.display.aside(|| output.write_all(line.as_bytes()));
        Ok(written.map_err(EngineError::Output)?)
    });
    if arguments.json && !outcome.as_ref().is_err_and(is_usage) {
        // Also what was counted before something failed.
        session.print(&format!("{:#}\n", Value::Array(counted)))?;
    }
    outcome
}

fn json_of(source: &RowSource<'_>, rows: u64) -> Value {
    let table = source.selected();
    json!({
        "schema": String::from_utf8_lossy(&table.schema_utf8()),
        "name": String::from_utf8_lossy(&table.name_utf8()),
        "rows": rows,
    })
}

fn line(source: &RowSource<'_>, rows: u64) -> String {
    format!("{}\t{rows}\n", source.selected().display_name())
}
