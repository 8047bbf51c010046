//! The row oracle: every relation of every database as a recovered server prints it, against what `pagemill export` makes
//! of another copy that nobody recovered. Catalogs, TOAST tables and sequences are among them.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use pagemill_testkit::{CopyFormat, Program, TestCluster, compare, oracle};

/// Every database has more relations than this.
const FEWEST: usize = 100;

/// What of all databases differs from what the running server prints. `read` are the flags that say what moment is read.
///
/// # Errors
/// When one of them cannot be asked.
pub fn compare_rows(
    program: &Program,
    unclean: &Path,
    server: &TestCluster,
    read: &[&str],
) -> Result<Vec<String>> {
    let mut found = Vec::new();
    let listed = program.succeed(unclean, &[&["ls"], read].concat())?;
    let listed = String::from_utf8_lossy(&listed).into_owned();
    for (_, database) in oracle::databases(server)? {
        if !listed.lines().any(|line| line.split_whitespace().next() == Some(&database)) {
            found.push(format!("database {database} is not listed: {listed}"));
        }
        found.extend(differences(program, unclean, (server, &database), read)?);
    }
    Ok(found)
}

/// What differs between the export of a database and what the recovered server prints.
fn differences(
    program: &Program,
    unclean: &Path,
    (server, database): (&TestCluster, &str),
    read: &[&str],
) -> Result<Vec<String>> {
    let expected = tempfile::tempdir()?;
    let expected = expected.path().join("expected");
    server.account().create_dir(expected.parent().context("no parent")?)?;
    let tables = oracle::dump(server, database, CopyFormat::Text, &expected)?;
    let exported = tempfile::tempdir()?;
    let out = format!("{}/", exported.path().display());
    let args = ["export", "-d", database, "-t", "*.*", "-o", &out];
    let done = program.run(unclean, &[&args, read].concat())?;
    let mut differences = Vec::new();
    if !done.status.success() {
        let said = String::from_utf8_lossy(&done.stderr);
        differences.push(format!("{database}: the export ended with {}: {said}", done.status));
    }
    for table in &tables {
        let stem = table.file_stem().context("a name that no file can have")?;
        let actual = fs::read(exported.path().join(format!("{stem}.txt")));
        let wanted = fs::read(oracle::expected_file(&expected, table, CopyFormat::Text))?;
        let told = match actual {
            Ok(actual) => compare(CopyFormat::Text, &table.columns, &wanted, &actual)
                .err()
                .map(|difference| difference.to_string()),
            Err(error) => Some(error.to_string()),
        };
        differences.extend(told.map(|told| format!("{database} {stem}: {told}")));
    }
    ensure!(tables.len() > FEWEST, "{database}: only {} relations", tables.len());
    Ok(differences)
}
