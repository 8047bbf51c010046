//! What has to hold of a data directory after a load that was cut short: all rows or none, for Pagemill's reader and
//! for a server; and that the next load works and clears away what the first one left.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use pagemill_io::Storage;
use pagemill_sim::WriteFault;
use pagemill_testkit::{PgInstall, TestCluster};

use crate::ground::{DATABASE, Ground, Rows};
use crate::kind::Kind;
use crate::postmaster::name_a_dead_process;
use crate::recording::Recording;
use crate::work::{Reader, load_rows, state};

/// Which rows a table has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Seen {
    /// Those from before.
    Old,
    /// Those of the load as well; only those, after a truncation.
    New,
}

/// What an image was found to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Found {
    /// The control file says "shut down".
    Clean(Seen),
    /// It says "in production": a server's recovery decides.
    InProduction,
}

/// Judges the loads of one kind.
#[derive(Debug)]
pub struct Judge<'a> {
    ground: &'a Ground,
    kind: Kind,
    rows: Rows,
}

impl<'a> Judge<'a> {
    /// # Errors
    /// When the rows cannot be read.
    pub fn new(ground: &'a Ground, kind: Kind) -> Result<Self> {
        Ok(Self { ground, kind, rows: ground.rows(&kind)? })
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

    /// What Pagemill's reader finds.
    ///
    /// # Errors
    /// When it is neither all rows nor none, or cannot be read.
    pub fn read(&self, data: &Path) -> Result<Found> {
        match state(data)?.as_str() {
            "in production" => Ok(Found::InProduction),
            "shut down" => Ok(Found::Clean(self.seen(&Reader::open(data)?.rows(&self.kind)?)?)),
            other => bail!("the cluster's state is \"{other}\""),
        }
    }

    /// Loads more rows into a clean cluster: they come behind what is there, and nothing is left of the first load.
    ///
    /// # Errors
    /// When it is not so.
    pub fn load_again(&self, data: &Path, seen: Seen) -> Result<()> {
        load_rows(&Storage::real(), data, &self.kind, &self.ground.file(&self.kind, "more"))
            .context("loading again")?;
        let reader = Reader::open(data)?;
        let printed = reader.rows(&self.kind)?;
        ensure!(printed == self.after_more(seen), "{} rows after loading again", lines(&printed));
        reader.check_no_leftovers().context("after loading again")
    }

    /// Loads more rows into a copy of a clean cluster, up to just after the decision, and has a server finish it.
    ///
    /// # Errors
    /// When the server has not all of the rows.
    pub fn cut_off_again(&self, data: &Path, seen: Seen) -> Result<()> {
        let file = self.ground.file(&self.kind, "more");
        let whole = Recording::over(data, &self.kind, &file, None)?;
        let decided = *whole.control_writes().first().context("no decision")? + 2;
        let fault = Some((decided, WriteFault::ReadOnlyFromHere));
        let second = Recording::over(data, &self.kind, &file, fault)?;
        name_a_dead_process(&second.data())?;
        ensure!(self.read(&second.data())? == Found::InProduction, "not cut off at the decision");
        let root = second.data();
        let root = root.parent().context("a data directory without a parent")?;
        let mut cluster = TestCluster::at(self.ground.install(), root.to_owned())?;
        let served = self.finish_second(&mut cluster, seen);
        cluster.keep()?;
        served
    }

    fn finish_second(&self, cluster: &mut TestCluster, seen: Seen) -> Result<()> {
        hand_over(cluster)?;
        cluster.start()?;
        ensure!(self.printed(cluster)? == self.after_more(seen), "not the rows of both loads");
        self.check(cluster)?;
        cluster.stop()?;
        check_checksums(self.ground.install(), cluster)
    }

    fn after_more(&self, seen: Seen) -> Vec<u8> {
        let before = match seen {
            Seen::Old => self.rows.old.clone(),
            Seen::New => self.kind.after(&self.rows.old, &self.rows.new),
        };
        self.kind.after(&before, &self.rows.more)
    }

    /// What a server finds, after its recovery where one is needed: rows, indexes, TOAST and catalog are sound, also
    /// after a crash of this server; checksums are right once it has stopped, and the next load works, for Pagemill and
    /// for a server. `root` has the data directory as `data`.
    ///
    /// # Errors
    /// When it is not so.
    pub fn serve(&self, root: &Path) -> Result<Seen> {
        let install = self.ground.install();
        let mut cluster = TestCluster::at(install, root.to_owned())?;
        hand_over(&cluster)?;
        let served = self.serve_cluster(&mut cluster);
        // The directory is the caller's.
        cluster.keep()?;
        served
    }

    fn serve_cluster(&self, cluster: &mut TestCluster) -> Result<Seen> {
        cluster.start()?;
        let printed = self.printed(cluster)?;
        let seen = self.seen(&printed)?;
        self.check(cluster)?;
        cluster.kill()?;
        cluster.start().context("starting after a crash of the server")?;
        ensure!(self.printed(cluster)? == printed, "other rows after a crash of the server");
        cluster.psql(DATABASE, &format!("VACUUM {}", self.kind.name))?;
        cluster.stop()?;
        // Before, new files of a load that did not finish may be torn, and wait for the next load to remove them.
        if !cluster.data_dir().join("pagemill.pending").exists() {
            check_checksums(self.ground.install(), cluster)?;
        }
        let read = self.read(&cluster.data_dir())?;
        ensure!(read == Found::Clean(seen), "the server had {seen:?}, the reader {read:?}");
        self.load_again(&cluster.data_dir(), seen)?;
        check_checksums(self.ground.install(), cluster).context("after the next load")?;
        hand_over(cluster)?;
        cluster.start().context("starting after the next load")?;
        ensure!(
            self.printed(cluster)? == self.after_more(seen),
            "other rows than were loaded again"
        );
        self.check(cluster).context("after the next load")?;
        cluster.stop()?;
        Ok(seen)
    }

    fn printed(&self, cluster: &TestCluster) -> Result<Vec<u8>> {
        cluster.copy_out(DATABASE, &format!("COPY {} TO STDOUT", self.kind.name))
    }

    /// Heaps, TOAST and indexes of the table and of `pg_class`, as `amcheck` sees them.
    fn check(&self, cluster: &TestCluster) -> Result<()> {
        let name = self.kind.name;
        for table in [name, "pg_class"] {
            let sql = format!("SELECT * FROM verify_heapam('{table}') LIMIT 3");
            let found = cluster.psql(DATABASE, &sql)?;
            ensure!(found.is_empty(), "{table}: {found}");
        }
        let indexes = format!(
            "SELECT bt_index_parent_check(indexrelid, true) FROM pg_index WHERE indrelid IN \
             ('pg_class'::regclass, '{name}'::regclass, \
              (SELECT reltoastrelid FROM pg_class WHERE oid = '{name}'::regclass))"
        );
        cluster.psql(DATABASE, &indexes).map(|_| ())
    }
}

fn lines(rows: &[u8]) -> usize {
    rows.iter().filter(|byte| **byte == b'\n').count()
}

/// Gives the files to the account that servers run under.
fn hand_over(cluster: &TestCluster) -> Result<()> {
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
fn check_checksums(install: &PgInstall, cluster: &TestCluster) -> Result<()> {
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
