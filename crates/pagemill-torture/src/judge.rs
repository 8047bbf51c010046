//! What has to hold of a data directory after a load that was cut short: all rows or none, for Pagemill's reader and
//! for a server; and that the next load works and clears away what the first one left.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use pagemill_io::Storage;
use pagemill_sim::WriteFault;
use pagemill_testkit::{PgInstall, TestCluster};

use crate::kind::Kind;
use crate::load_fixture::{DATABASE, LoadFixture, Rows};
use crate::recording::Recording;
use crate::trial::{ImageState, Seen, Trial};
use crate::work::{Reader, load_rows, state};

/// Judges the loads of one kind.
#[derive(Debug)]
pub struct Judge<'a> {
    fixture: &'a LoadFixture,
    kind: Kind,
    rows: Rows,
}

impl Trial for Judge<'_> {
    fn kind(&self) -> &'static str {
        self.kind.name
    }

    fn install(&self) -> &PgInstall {
        self.fixture.install()
    }

    fn original(&self) -> PathBuf {
        self.fixture.data()
    }

    fn record(&self, fault: Option<(usize, WriteFault)>) -> Result<Recording> {
        let file = self.fixture.file(&self.kind, "new");
        Recording::over(&self.original(), &|storage, data| self.load(storage, data, &file), fault)
    }

    fn command(&self, program: &Path, data: &Path) -> Command {
        let mut load = Command::new(program);
        load.args(["load", "-d", DATABASE, "-t", self.kind.name, "-D"]).arg(data);
        load.args(self.kind.flags()).arg(self.fixture.file(&self.kind, "new"));
        load
    }

    fn read(&self, data: &Path) -> Result<ImageState> {
        match state(data)?.as_str() {
            "in production" => Ok(ImageState::InProduction),
            "shut down" => {
                Ok(ImageState::Clean(self.seen(&Reader::open(data)?.rows(&self.kind)?)?))
            }
            other => bail!("the cluster's state is \"{other}\""),
        }
    }

    fn again(&self, data: &Path, seen: Seen) -> Result<()> {
        load_rows(&Storage::real(), data, &self.kind, &self.fixture.file(&self.kind, "more"))
            .context("loading again")?;
        let reader = Reader::open(data)?;
        let printed = reader.rows(&self.kind)?;
        ensure!(printed == self.after_more(seen), "{} rows after loading again", lines(&printed));
        reader.check_no_leftovers().context("after loading again")
    }

    fn cut_off_again(&self, data: &Path, seen: Seen) -> Result<()> {
        let file = self.fixture.file(&self.kind, "more");
        let cut = Recording::cut_off(data, &|storage, data| self.load(storage, data, &file))?;
        ensure!(self.read(&cut.data())? == ImageState::InProduction, "not cut off at the decision");
        let root = cut.data();
        let root = root.parent().context("a data directory without a parent")?;
        served(self.install(), root, |cluster| self.finish_second(cluster, seen))
    }

    fn serve(&self, root: &Path) -> Result<Seen> {
        served(self.fixture.install(), root, |cluster| self.serve_cluster(cluster))
    }
}

impl<'a> Judge<'a> {
    /// # Errors
    /// When the rows cannot be read.
    pub fn new(fixture: &'a LoadFixture, kind: Kind) -> Result<Self> {
        Ok(Self { fixture, kind, rows: fixture.rows(&kind)? })
    }

    fn load(&self, storage: &Storage, data: &Path, file: &Path) -> pagemill_engine::Result<()> {
        load_rows(storage, data, &self.kind, file).map(|_| ())
    }

    fn seen(&self, printed: &[u8]) -> Result<Seen> {
        let new = self.kind.after(&self.rows.old, &self.rows.new);
        match printed {
            rows if rows == self.rows.old => Ok(Seen::Old),
            rows if rows == new => Ok(Seen::New),
            rows => bail!(
                "{} rows: neither the {} from before nor the {} after the load",
                lines(rows),
                lines(&self.rows.old),
                lines(&new)
            ),
        }
    }

    fn finish_second(&self, cluster: &mut TestCluster, seen: Seen) -> Result<()> {
        cluster.start()?;
        ensure!(self.printed(cluster)? == self.after_more(seen), "not the rows of both loads");
        self.check(cluster)?;
        cluster.stop()?;
        check_checksums(self.fixture.install(), cluster)
    }

    fn after_more(&self, seen: Seen) -> Vec<u8> {
        let before = match seen {
            Seen::Old => self.rows.old.clone(),
            Seen::New => self.kind.after(&self.rows.old, &self.rows.new),
        };
        self.kind.after(&before, &self.rows.more)
    }

    fn serve_cluster(&self, cluster: &mut TestCluster) -> Result<Seen> {
        cluster.start()?;
        let printed = self.printed(cluster)?;
        let first = self.seen(&printed)?;
        self.check(cluster)?;
        cluster.kill()?;
        cluster.start().context("starting after a crash of the server")?;
        // A crash before the server wrote any WAL of its own: its recovery reads what follows the checkpoint, and where
        // that is whole the change takes place now.
        let seen = self.seen(&self.printed(cluster)?)?;
        ensure!(seen >= first, "the rows are gone after a crash of the server");
        self.check(cluster).context("after a crash of the server")?;
        cluster.psql(DATABASE, &format!("VACUUM {}", self.kind.name))?;
        cluster.stop()?;
        // Before, new files of a load that did not finish may be torn, and wait for the next load to remove them.
        if !cluster.data_dir().join("pagemill.pending").exists() {
            check_checksums(self.fixture.install(), cluster)?;
        }
        let read = self.read(&cluster.data_dir())?;
        ensure!(read == ImageState::Clean(seen), "the server had {seen:?}, the reader {read:?}");
        self.again(&cluster.data_dir(), seen)?;
        check_checksums(self.fixture.install(), cluster).context("after the next load")?;
        hand_over(cluster)?;
        cluster.start().context("starting after the next load")?;
        ensure!(
            self.printed(cluster)? == self.after_more(seen),
            "other rows than were loaded again"
        );
        self.check(cluster).context("after the next load")?;
        cluster.stop()?;
        Ok(first)
    }

    fn printed(&self, cluster: &TestCluster) -> Result<Vec<u8>> {
        cluster.copy_out(DATABASE, &format!("COPY (TABLE {}) TO STDOUT", self.kind.name))
    }

    /// Heaps, TOAST and indexes of the table and of `pg_class`, as `amcheck` sees them.
    fn check(&self, cluster: &TestCluster) -> Result<()> {
        let name = self.kind.name;
        // Partitions are called as their table is, with a number behind.
        let tables = format!(
            "SELECT oid FROM pg_class WHERE relkind = 'r' AND (relname ~ '^{name}(_p[0-9])?$' OR oid = 'pg_class'::regclass)"
        );
        let heaps = format!(
            "SELECT c.oid::regclass, h FROM ({tables}) c, LATERAL verify_heapam(c.oid::regclass) h LIMIT 3"
        );
        let found = cluster.psql(DATABASE, &heaps)?;
        ensure!(found.is_empty(), "{found}");
        let indexes = format!(
            "SELECT bt_index_parent_check(indexrelid, true) FROM pg_index WHERE indrelid IN ({tables}) \
             OR indrelid IN (SELECT reltoastrelid FROM pg_class WHERE oid IN ({tables}) AND reltoastrelid <> 0)"
        );
        cluster.psql(DATABASE, &indexes).map(|_| ())
    }
}

fn lines(rows: &[u8]) -> usize {
    rows.iter().filter(|byte| **byte == b'\n').count()
}

/// Has somebody look at the cluster under `root` by a server.
pub(crate) fn served<T>(
    install: &PgInstall,
    root: &Path,
    look: impl FnOnce(&mut TestCluster) -> Result<T>,
) -> Result<T> {
    let mut cluster = TestCluster::at(install, root.to_owned())?;
    hand_over(&cluster)?;
    let found = look(&mut cluster);
    // The directory is the caller's.
    cluster.keep()?;
    found
}

/// Gives the files to the account that servers run under.
pub(crate) fn hand_over(cluster: &TestCluster) -> Result<()> {
    let mut waiting = vec![cluster.data_dir()];
    while let Some(path) = waiting.pop() {
        cluster.account().own(&path)?;
        if path.is_dir() {
            let entries = std::fs::read_dir(&path)?;
            waiting.extend(entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?);
        }
    }
    Ok(())
}

/// Has `pg_checksums` look at every page, where this installation has it.
pub(crate) fn check_checksums(install: &PgInstall, cluster: &TestCluster) -> Result<()> {
    let program = install.program("pg_checksums");
    if !program.exists() {
        return Ok(());
    }
    let mut check = Command::new(program);
    let output = check.arg("--check").arg("-D").arg(cluster.data_dir()).output()?;
    ensure!(
        output.status.success(),
        "pg_checksums: {}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}
