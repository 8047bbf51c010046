//! Prints the rows of a table whose column has one text:
//! `cargo run --example filter -- DATADIR DATABASE TABLE COLUMN TEXT`.

use pagemill::{Cluster, Result};

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [directory, database, table, column, wanted] = &arguments[..] else {
        eprintln!("usage: filter DATADIR DATABASE TABLE COLUMN TEXT");
        std::process::exit(2);
    };
    let table = Cluster::open(directory)?.database(database)?.table(table)?;
    let names: Vec<&str> = table.columns().iter().map(|one| one.name.as_str()).collect();
    let Some(filtered) = names.iter().position(|name| name == column) else {
        eprintln!("{} has no column {column}; it has {}", table.name(), names.join(", "));
        std::process::exit(2);
    };
    let mut rows = table.rows(&names)?;
    while let Some(mut row) = rows.next_row()? {
        if row.bytes(filtered)? != Some(wanted.as_bytes()) {
            continue;
        }
        let mut texts = Vec::new();
        for column in 0..names.len() {
            texts.push(row.text(column)?.unwrap_or_else(|| "NULL".into()));
        }
        println!("{}: {}", row.tid(), texts.join(" | "));
    }
    Ok(())
}
