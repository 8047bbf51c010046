//! Two tables of one kind, `ours` and `theirs`: one loaded here, one by a server's COPY from the same file.
//! What is compared is what the server prints of both.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Output;

use anyhow::{Result, ensure};
use pagemill_testkit::install::PgInstall;
use pagemill_testkit::prepared::empty_cluster;
use pagemill_testkit::{Program, TestCluster, each_of};

pub(crate) const DATABASE: &str = "postgres";

/// A cluster with both tables; `{t}` in the definitions is their name.
pub(crate) struct Twin {
    pub(crate) cluster: TestCluster,
    pub(crate) dir: tempfile::TempDir,
}

pub(crate) fn each_version(check: impl Fn(&PgInstall) -> Result<()> + Sync) {
    each_of(&PgInstall::all(), check);
}

impl Twin {
    pub(crate) fn new(install: &PgInstall, definition: &str) -> Result<Self> {
        let mut cluster = empty_cluster(install)?;
        cluster.start()?;
        cluster.psql(DATABASE, "CREATE EXTENSION amcheck")?;
        for name in ["ours", "theirs"] {
            cluster.psql(DATABASE, &definition.replace("{t}", name))?;
        }
        let dir = tempfile::tempdir()?;
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755))?;
        cluster.stop()?;
        Ok(Self { cluster, dir })
    }

    /// A file with the rows of a query.
    pub(crate) fn file_of(&mut self, query: &str) -> Result<PathBuf> {
        self.cluster.start()?;
        let rows = self.cluster.copy_out(DATABASE, &format!("COPY ({query}) TO STDOUT"))?;
        self.cluster.stop()?;
        self.file(&rows)
    }

    pub(crate) fn file(&self, rows: &[u8]) -> Result<PathBuf> {
        let file = self.dir.path().join("rows");
        fs::write(&file, rows)?;
        Ok(file)
    }

    /// Loads a file, here alone.
    pub(crate) fn try_load(&self, table: &str, file: &Path, flags: &[&str]) -> Result<Output> {
        let file = file.to_string_lossy();
        let args = [&["load", "-d", DATABASE, "-t", table][..], flags, &[&*file]].concat();
        Program::new(env!("CARGO_BIN_EXE_pagemill")).run(&self.cluster.data_dir(), &args)
    }

    /// What a load that fails says.
    pub(crate) fn refusal(&self, table: &str, rows: &[u8], flags: &[&str]) -> Result<String> {
        let output = self.try_load(table, &self.file(rows)?, flags)?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(output.status.code() == Some(1), "{table}: {} {said}", output.status);
        Ok(said)
    }

    /// Loads a file into `ours`, and has a server copy it into `theirs`.
    pub(crate) fn load(&mut self, file: &Path, columns: &str, flags: &[&str]) -> Result<()> {
        let columns_flag = [&["--columns", columns][..], flags].concat();
        let flags = if columns.is_empty() { flags } else { &columns_flag };
        let output = self.try_load("ours", file, flags)?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(output.status.success(), "{} {said}", output.status);
        self.cluster.start()?;
        let columns = if columns.is_empty() { String::new() } else { format!("({columns})") };
        if flags.contains(&"--truncate") {
            self.cluster.psql(DATABASE, "TRUNCATE theirs")?;
        }
        let copy = format!("\\copy theirs {columns} FROM '{}'", file.display());
        self.cluster.psql_bytes(DATABASE, &["-c", &copy])?;
        self.cluster.stop()
    }

    /// Compares what a query says of both tables, on a running server.
    pub(crate) fn compare(&self, query: &str) -> Result<()> {
        let copy = |name| {
            let query = query.replace("{t}", name);
            self.cluster.copy_out(DATABASE, &format!("COPY ({query}) TO STDOUT"))
        };
        let (ours, theirs) = (copy("ours")?, copy("theirs")?);
        let ours = String::from_utf8_lossy(&ours).replace("ours", "theirs");
        let theirs = String::from_utf8_lossy(&theirs);
        let differing = ours.lines().zip(theirs.lines()).find(|(a, b)| a != b);
        ensure!(
            ours == theirs,
            "{query}: {} and {} lines: {differing:?}",
            ours.lines().count(),
            theirs.lines().count()
        );
        Ok(())
    }

    /// Heaps, TOAST tables and indexes of all tables whose names begin with `ours`, as `amcheck` sees them.
    pub(crate) fn check(&self) -> Result<()> {
        let tables = "SELECT oid FROM pg_class WHERE relname ~ '^ours' AND relkind = 'r'";
        let heaps = format!(
            "SELECT c.oid::regclass, h FROM ({tables}) c, LATERAL verify_heapam(c.oid::regclass) h LIMIT 3"
        );
        let found = self.cluster.psql(DATABASE, &heaps)?;
        ensure!(found.is_empty(), "{found}");
        let indexes = format!(
            "SELECT bt_index_parent_check(i.indexrelid, true) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid \
             WHERE c.relkind = 'i' AND c.relname !~ '^pg_' AND (i.indrelid IN ({tables})) \
             OR i.indrelid IN (SELECT reltoastrelid FROM pg_class WHERE oid IN ({tables}) AND reltoastrelid <> 0) \
             OR i.indrelid = 'pg_class'::regclass"
        );
        self.cluster.psql(DATABASE, &indexes).map(|_| ())
    }
}
