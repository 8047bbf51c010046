//! Counts the rows of every table of a database:
//! `cargo run --example count -- DATADIR DATABASE`.

use pagemill::{Cluster, Result};

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [directory, database] = &arguments[..] else {
        eprintln!("usage: count DATADIR DATABASE");
        std::process::exit(2);
    };
    let database = Cluster::open(directory)?.database(database)?;
    for table in database.tables()? {
        println!("{:>12}  {}", table.count()?, table.name());
    }
    Ok(())
}
