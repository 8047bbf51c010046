//! What the server itself prints for every relation of a database.
//!
//! Rows come in physical order: with one process, no synchronized scans and `COPY table`, that is the order of the
//! blocks and line pointers. `COPY table` also leaves out generated columns and the rows of children, as an export
//! of one relation does; what it refuses (materialized views, sequences, TOAST) is read by `COPY (SELECT …)`.
//!
//! Lists of names are taken over as NUL-separated fields, since a name may hold every other byte.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, ensure};

use crate::server::{TestCluster, succeed};

/// Relations with storage that a session may read: no temporary tables of others.
const TABLES: &str = "
SELECT c.oid, n.nspname, c.relname, c.relkind,
       coalesce((SELECT string_agg(attname, E'\\x01' ORDER BY attnum) FROM pg_catalog.pg_attribute
                 WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped
                   AND (attgenerated = '' OR c.relkind <> 'r')), '')
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'm', 'S', 't') AND c.relpersistence <> 't'
  AND (c.relkind <> 'm' OR c.relispopulated)
  AND NOT EXISTS (SELECT FROM pg_catalog.pg_class o WHERE o.reltoastrelid = c.oid AND o.relpersistence = 't')
ORDER BY c.oid";

/// One relation of a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// Its oid.
    pub oid: u32,
    /// Its schema's name, unquoted.
    pub schema: String,
    /// Its name, unquoted.
    pub name: String,
    /// `relkind`: `r` table, `m` materialized view, `S` sequence, `t` TOAST table.
    pub kind: char,
    /// The columns an export of it has, in order.
    pub columns: Vec<String>,
}

impl Table {
    /// The name as SQL and as a pattern that matches only this relation: `"schema"."name"`.
    pub fn quoted(&self) -> String {
        format!("{}.{}", quote(&self.schema), quote(&self.name))
    }

    /// `SCHEMA.NAME` as part of a file's name, unless the dot would be ambiguous or a slash forbids it.
    pub fn file_stem(&self) -> Option<String> {
        let plain = |name: &str| !name.contains(['/', '.']);
        (plain(&self.schema) && plain(&self.name)).then(|| format!("{}.{}", self.schema, self.name))
    }

    fn copy_source(&self) -> String {
        match self.kind {
            'r' => self.quoted(),
            _ => format!("(SELECT * FROM ONLY {})", self.quoted()),
        }
    }
}

/// The formats of `COPY`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CopyFormat {
    /// Tabs and backslashes.
    #[default]
    Text,
    /// Commas and quotes.
    Csv,
}

impl CopyFormat {
    /// Its name in SQL and on Pagemill's command line.
    pub fn name(self) -> &'static str {
        match self {
            CopyFormat::Text => "text",
            CopyFormat::Csv => "csv",
        }
    }

    /// The ending of an export's file name.
    pub fn extension(self) -> &'static str {
        match self {
            CopyFormat::Text => "txt",
            CopyFormat::Csv => "csv",
        }
    }
}

/// The options of a `COPY … TO`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CopyOptions {
    /// Its format.
    pub format: CopyFormat,
    /// Further options as SQL spells them, such as `DELIMITER '|'`.
    pub others: Vec<String>,
}

impl CopyOptions {
    fn sql(&self) -> String {
        let mut options = vec![format!("FORMAT {}", self.format.name())];
        options.extend(self.others.iter().cloned());
        options.join(", ")
    }
}

/// Every relation with storage, catalogs and TOAST tables included, by oid.
pub fn expected_tables(cluster: &TestCluster, db: &str) -> Result<Vec<Table>> {
    parse_tables(&table_list(cluster, db)?)
}

/// The bytes the server prints for one relation.
pub fn expected_copy(
    cluster: &TestCluster,
    db: &str,
    table: &Table,
    options: &CopyOptions,
) -> Result<Vec<u8>> {
    let encoding = cluster.psql(db, "SHOW server_encoding")?;
    let mut command = cluster.psql_command(db);
    command.env("PGCLIENTENCODING", script_encoding(&encoding)).arg("-c").arg(format!(
        "COPY {} TO STDOUT WITH (ENCODING '{encoding}', {})",
        table.copy_source(),
        options.sql()
    ));
    Ok(succeed(command).with_context(|| table.quoted())?.stdout)
}

/// The databases one can connect to, by oid.
pub fn databases(cluster: &TestCluster) -> Result<Vec<(u32, String)>> {
    parse_databases(&database_list(cluster)?)
}

/// Writes what the server prints for every relation of `db` to `dir/OID.txt` (or `.csv`): one session, one file
/// per relation, written by the server itself.
pub fn dump(cluster: &TestCluster, db: &str, format: CopyFormat, dir: &Path) -> Result<Vec<Table>> {
    cluster.account().create_dir(dir)?;
    let tables = expected_tables(cluster, db)?;
    let mut script = String::from("SET client_min_messages = error;\n");
    for table in &tables {
        let file = expected_file(dir, table, format);
        script.push_str(&format!(
            "COPY {} TO '{}' WITH (FORMAT {});\n",
            table.copy_source(),
            file.display(),
            format.name()
        ));
    }
    run_script(cluster, db, &script, dir)?;
    Ok(tables)
}

/// Where [`dump`] puts a relation's bytes.
pub fn expected_file(dir: &Path, table: &Table, format: CopyFormat) -> PathBuf {
    dir.join(format!("{}.{}", table.oid, format.extension()))
}

/// A script in UTF-8, run from a file because it may be longer than an argument. The files keep the encoding of
/// the database, so that is what the COPY itself is told.
fn run_script(cluster: &TestCluster, db: &str, script: &str, dir: &Path) -> Result<()> {
    let encoding = cluster.psql(db, "SHOW server_encoding")?;
    let path = dir.join("dump.sql");
    let script = script.replace("WITH (FORMAT", &format!("WITH (ENCODING '{encoding}', FORMAT"));
    std::fs::write(&path, script)?;
    let mut command = cluster.psql_command(db);
    command.env("PGCLIENTENCODING", script_encoding(&encoding));
    command.arg("-f").arg(&path).stdin(Stdio::null());
    succeed(command).with_context(|| format!("dumping {db}"))?;
    std::fs::remove_file(&path)?;
    Ok(())
}

/// SQL_ASCII converts nothing, so names go to and fro as they are stored.
fn script_encoding(server_encoding: &str) -> &str {
    if server_encoding == "SQL_ASCII" { "SQL_ASCII" } else { "UTF8" }
}

pub(crate) fn table_list(cluster: &TestCluster, db: &str) -> Result<Vec<u8>> {
    nul_separated(cluster, db, TABLES)
}

pub(crate) fn database_list(cluster: &TestCluster) -> Result<Vec<u8>> {
    nul_separated(
        cluster,
        "postgres",
        "SELECT oid, datname FROM pg_catalog.pg_database WHERE datallowconn ORDER BY oid",
    )
}

/// The rows of a query, each field ended by a NUL.
fn nul_separated(cluster: &TestCluster, db: &str, sql: &str) -> Result<Vec<u8>> {
    let encoding = cluster.psql(db, "SHOW server_encoding")?;
    let mut command = cluster.psql_command(db);
    command.env("PGCLIENTENCODING", script_encoding(&encoding));
    command.args(["-A", "-t", "-z", "-0", "-c", sql]);
    Ok(succeed(command).with_context(|| format!("in database {db}"))?.stdout)
}

pub(crate) fn parse_tables(bytes: &[u8]) -> Result<Vec<Table>> {
    let fields = split_fields(bytes)?;
    ensure!(fields.len().is_multiple_of(5), "a list of tables with {} fields", fields.len());
    fields
        .chunks_exact(5)
        .map(|row| {
            Ok(Table {
                oid: row[0].parse()?,
                schema: row[1].clone(),
                name: row[2].clone(),
                kind: row[3].chars().next().context("no relkind")?,
                columns: split_columns(&row[4]),
            })
        })
        .collect()
}

pub(crate) fn parse_databases(bytes: &[u8]) -> Result<Vec<(u32, String)>> {
    let fields = split_fields(bytes)?;
    fields.chunks_exact(2).map(|row| Ok((row[0].parse()?, row[1].clone()))).collect()
}

fn split_columns(text: &str) -> Vec<String> {
    if text.is_empty() { Vec::new() } else { text.split('\u{1}').map(Into::into).collect() }
}

fn split_fields(bytes: &[u8]) -> Result<Vec<String>> {
    let text = std::str::from_utf8(bytes).context("a name that is not UTF-8")?;
    let Some(text) = text.strip_suffix('\0') else {
        ensure!(text.is_empty(), "a list that does not end with NUL");
        return Ok(Vec::new());
    };
    Ok(text.split('\0').map(Into::into).collect())
}

fn quote(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(schema: &str, name: &str) -> Table {
        Table { oid: 1, schema: schema.into(), name: name.into(), kind: 'r', columns: Vec::new() }
    }

    #[test]
    fn a_name_with_quotes_is_quoted_and_one_with_a_slash_has_no_file() {
        assert_eq!(table("s", "a\"b").quoted(), "\"s\".\"a\"\"b\"");
        assert_eq!(table("s", "a b").file_stem().as_deref(), Some("s.a b"));
        assert_eq!(table("s", "a/b").file_stem(), None);
        assert_eq!(table("s.t", "a").file_stem(), None);
    }

    #[test]
    fn a_list_of_tables_may_hold_newlines_and_no_columns() {
        let tables = parse_tables(b"1\0s\0a\nb\0r\0x\x01y\x002\0s\0c\0r\0\0").unwrap();
        assert_eq!(tables[0].name, "a\nb");
        assert_eq!(tables[0].columns, ["x", "y"]);
        assert!(tables[1].columns.is_empty());
    }
}
