//! Prints the first rows of a table in the order of an index:
//! `cargo run --example ordered -- DATADIR DATABASE TABLE INDEX`.

use pagemill::{Cluster, Result};

const SHOWN: usize = 10;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [directory, database, table, index] = &arguments[..] else {
        eprintln!("usage: ordered DATADIR DATABASE TABLE INDEX");
        std::process::exit(2);
    };
    let table = Cluster::open(directory)?.database(database)?.table(table)?;
    let mut rows = table.rows_in_order(index, false, &[])?;
    for _ in 0..SHOWN {
        let Some(mut row) = rows.next_row()? else { break };
        let texts: Result<Vec<_>> = (0..table.columns().len()).map(|c| row.text(c)).collect();
        let texts: Vec<_> = texts?.into_iter().map(Option::unwrap_or_default).collect();
        println!("{}: {}", row.tid(), texts.join(" | "));
    }
    Ok(())
}
