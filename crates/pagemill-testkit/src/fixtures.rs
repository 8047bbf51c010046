//! The fixtures: which scripts fill which databases.
//!
//! Must hold: the order of [`Fixture::ALL`] is the order of loading. `Mvcc` crashes the server, which empties
//! unlogged tables, so `Ddl` comes after it.

use std::fs::File;
use std::path::PathBuf;

use anyhow::Result;

use crate::checkout::in_checkout;
use crate::mvcc::overlap_sessions;
use crate::oracle::CopyFormat;
use crate::server::TestCluster;

/// One group of hard cases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fixture {
    /// Every built-in type and every kind of user-made type.
    Types,
    /// Long values: storage, compression, sizes, nesting.
    Toast,
    /// Rows in every state of visibility.
    Mvcc,
    /// Definitions: columns, partitions, names, tablespaces, catalogs, databases.
    Ddl,
    /// Databases in other encodings than UTF-8.
    Encodings,
}

/// Database name and encoding.
const ENCODINGS: [(&str, &str); 4] = [
    ("latin1", "LATIN1"),
    ("euc_jp", "EUC_JP"),
    ("sql_ascii", "SQL_ASCII"),
    ("win1252", "WIN1252"),
];

/// The size of a full segment file, and of a block in it.
const SEGMENT_BYTES: u64 = 1 << 30;
const BLOCK_BYTES: u64 = 8192;

/// Databases whose name or place is odd.
const ODD_DATABASES: [&str; 6] =
    ["Odd Database", "quo\"te'd", "žluťoučká", "sla/sh.dot", "select", "in_side"];

impl Fixture {
    /// All fixtures, in the order in which they are loaded.
    pub const ALL: [Fixture; 5] =
        [Fixture::Types, Fixture::Toast, Fixture::Mvcc, Fixture::Ddl, Fixture::Encodings];

    /// The databases this fixture is about.
    pub fn databases(self) -> Vec<&'static str> {
        match self {
            Fixture::Types => vec!["types"],
            Fixture::Toast => vec!["toast"],
            Fixture::Mvcc => vec!["mvcc"],
            Fixture::Ddl => {
                let mut names = vec!["ddl", "postgres", "template1"];
                names.extend(ODD_DATABASES);
                names
            }
            Fixture::Encodings => ENCODINGS.iter().map(|(name, _)| *name).collect(),
        }
    }

    /// The formats its tables are compared in.
    pub fn formats(self) -> &'static [CopyFormat] {
        match self {
            Fixture::Types => &[CopyFormat::Text, CopyFormat::Csv],
            _ => &[CopyFormat::Text],
        }
    }

    /// The fixture a database belongs to.
    pub fn of_database(name: &str) -> Option<Fixture> {
        Fixture::ALL.into_iter().find(|fixture| fixture.databases().contains(&name))
    }

    /// Creates and fills its databases.
    pub fn load(self, cluster: &mut TestCluster) -> Result<()> {
        match self {
            Fixture::Types => load_script(cluster, "types", "types.sql"),
            Fixture::Toast => load_script(cluster, "toast", "toast.sql"),
            Fixture::Mvcc => {
                load_script(cluster, "mvcc", "mvcc.sql")?;
                overlap_sessions(cluster, "mvcc")
            }
            Fixture::Ddl => load_ddl(cluster),
            Fixture::Encodings => load_encodings(cluster),
        }
    }
}

/// The directory of the scripts.
pub fn script_dir() -> PathBuf {
    in_checkout("crates/pagemill-testkit/fixtures")
}

fn load_script(cluster: &TestCluster, db: &str, script: &str) -> Result<()> {
    create_database(cluster, db, "")?;
    cluster.psql_file(db, &script_dir().join(script), &[])
}

fn load_ddl(cluster: &mut TestCluster) -> Result<()> {
    create_database(cluster, "ddl", "")?;
    let side = cluster.tablespace_dir("side")?.display().to_string();
    let odd_side = cluster.tablespace_dir("odd side")?.display().to_string();
    let variables = [("tblspc", side.as_str()), ("tblspc2", odd_side.as_str())];
    cluster.psql_file("ddl", &script_dir().join("ddl.sql"), &variables)?;
    second_segment(cluster, "ddl")?;
    for name in ODD_DATABASES {
        let options = if name == "in_side" { "TABLESPACE side" } else { "" };
        create_database(cluster, name, options)?;
        cluster.psql_file(name, &script_dir().join("odd_database.sql"), &[])?;
    }
    Ok(())
}

/// A table whose rows go on in a second segment file. The pages between are zeros nobody wrote, as a crash right
/// after an extension leaves them, so the file is sparse and costs no gigabyte of disk.
fn second_segment(cluster: &mut TestCluster, db: &str) -> Result<()> {
    cluster.psql(db, "CREATE TABLE two_segments (id int, v text)")?;
    cluster
        .psql(db, "INSERT INTO two_segments SELECT i, 'in front' FROM generate_series(1, 10) i")?;
    let file = cluster.psql(db, "SELECT pg_relation_filepath('two_segments')")?;
    cluster.stop()?;
    let file = File::options().write(true).open(cluster.data_dir().join(file))?;
    file.set_len(SEGMENT_BYTES - 3 * BLOCK_BYTES)?;
    cluster.start()?;
    let sql =
        "INSERT INTO two_segments SELECT i, repeat('s', 1000) FROM generate_series(11, 100) i";
    cluster.psql(db, sql)?;
    Ok(())
}

fn load_encodings(cluster: &TestCluster) -> Result<()> {
    for (name, encoding) in ENCODINGS {
        let options =
            format!("ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0");
        create_database(cluster, name, &options)?;
        let client = if encoding == "SQL_ASCII" { "SQL_ASCII" } else { "UTF8" };
        // The script is UTF-8 whatever the database is; SQL_ASCII takes its bytes unconverted.
        cluster.psql_file_encoded(
            name,
            &script_dir().join("encodings.sql"),
            &[("encoding", encoding)],
            Some(client),
        )?;
    }
    Ok(())
}

fn create_database(cluster: &TestCluster, name: &str, options: &str) -> Result<()> {
    let quoted = name.replace('"', "\"\"");
    cluster.psql("postgres", &format!("CREATE DATABASE \"{quoted}\" {options}"))?;
    Ok(())
}
