//! Servers killed in the midst of all kinds of work, and their files read without a restart.
//!
//! Each kill makes two copies of a cluster. One is recovered by the server, the other is read by Pagemill with its WAL; every
//! page and every row must be the same, and nothing of the other may have changed. The recovered one then goes on to
//! the next kill, so that some files have been through several.
//!
//! Invariant: a number of a kill says what is done, not when: the moment differs from run to run.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::{Result, ensure};
use pagemill_cluster::recovery::plan::PlanOptions;
use pagemill_sim::seed::Random;
use pagemill_testkit::scratch::{Medium, cluster_root};
use pagemill_testkit::{ClusterOptions, PgInstall, Program, TestCluster};

use crate::page_oracle::compare_pages;
use crate::row_oracle::compare_rows;
use crate::server_load::{self, Load};

/// As many kills of one cluster: they get slower as it grows.
const KILLS_OF_ONE: u64 = 3;
/// As many differences are told.
const TOLD: usize = 12;
/// Where clusters are left that differ.
const KEEP_VARIABLE: &str = "PAGEMILL_TEST_KEEP";

/// What was compared.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct ServerKilled {
    /// Pages of main and init forks.
    pub pages: u64,
    /// Of these, how many are not as the kill left them.
    pub redone: u64,
}

/// Kills servers of one version, one after the other.
#[derive(Debug)]
pub struct ServerKiller {
    install: PgInstall,
    program: Program,
    random: Random,
    seed: u64,
    /// The cluster that the next kill meets, and how many it has met.
    cluster: Option<(TestCluster, u64)>,
    is_full_page: bool,
}

impl ServerKiller {
    /// Kills servers of this version, and reads their files with the built program.
    pub fn new(install: &PgInstall, program: Program, seed: u64) -> Self {
        let random = Random::new(seed);
        let (install, cluster) = (install.clone(), None);
        Self { install, program, random, seed, cluster, is_full_page: true }
    }

    /// Kills a server under load, and compares.
    ///
    /// # Errors
    /// What differs; a server that does not start.
    pub fn kill(&mut self) -> Result<ServerKilled> {
        let (mut cluster, kills) = match self.cluster.take() {
            Some(found) => found,
            None => (self.new_cluster()?, 0),
        };
        let load = Load::start(&cluster, self.random.below(1 << 30))?;
        std::thread::sleep(Duration::from_millis(150 + self.random.below(1500)));
        // Without images of pages, a page must not be written by half.
        let at_once = self.is_full_page && self.random.below(3) > 0;
        if at_once {
            cluster.kill_all()?
        } else {
            cluster.kill()?
        };
        load.wait()?;
        let (recovered, killed) = self.judge(cluster)?;
        if kills + 1 < KILLS_OF_ONE {
            self.cluster = Some((self.next_life(recovered)?, kills + 1));
        }
        Ok(killed)
    }

    fn new_cluster(&mut self) -> Result<TestCluster> {
        let options = ClusterOptions {
            data_checksums: Some(self.random.below(2) == 0),
            settings: self.settings(),
            ..ClusterOptions::default()
        };
        let cluster = TestCluster::create(&self.install, &options)?;
        server_load::prepare(&cluster)?;
        Ok(cluster)
    }

    /// Settings that change what is in the WAL.
    fn settings(&mut self) -> Vec<String> {
        let random = &mut self.random;
        let compression = match self.install.major {
            14 => "on",
            // Only Debian's build has the library for the others.
            15 => ["pglz", "lz4", "zstd", "off"][random.below(4) as usize],
            _ => ["pglz", "off"][random.below(2) as usize],
        };
        let level = ["replica", "logical", "replica", "minimal"][random.below(4) as usize];
        let on_or_off = |is_on: bool| if is_on { "on" } else { "off" };
        self.is_full_page = random.below(6) > 0;
        vec![
            format!("wal_compression = {compression}"),
            format!("max_wal_size = {}", ["64MB", "1GB"][random.below(2) as usize]),
            format!("wal_level = {level}"),
            format!("max_wal_senders = {}", if level == "minimal" { 0 } else { 5 }),
            format!("full_page_writes = {}", on_or_off(self.is_full_page)),
            format!("wal_log_hints = {}", on_or_off(random.below(3) == 0)),
            format!("autovacuum = {}", on_or_off(random.below(2) == 0)),
            format!("shared_buffers = {}", ["1MB", "128MB"][random.below(2) as usize]),
            "autovacuum_naptime = 1s".to_owned(),
            "max_prepared_transactions = 20".to_owned(),
            "deadlock_timeout = 50ms".to_owned(),
            // Beside the data, where no kill leaves it to others.
            "dynamic_shared_memory_type = mmap".to_owned(),
        ]
    }

    /// Compares, and hands out the recovered copy, whose server runs.
    fn judge(&mut self, killed: TestCluster) -> Result<(TestCluster, ServerKilled)> {
        let mut server = killed.copy_to(&cluster_root(Medium::Memory)?)?;
        let before = state_of(killed.root())?;
        server.recover()?;
        let data = killed.data_dir();
        let mut found = Vec::new();
        let mut counts = ServerKilled::default();
        match compare_pages(&data, &server.data_dir(), &PlanOptions::default()) {
            Ok(report) => {
                counts = ServerKilled { pages: report.pages, redone: report.redone };
                found.extend(report.faults);
            }
            Err(error) => found.push(format!("pages: {error:#}")),
        }
        server.start()?;
        match compare_rows(&self.program, &data, &server, &[]) {
            Ok(differences) => found.extend(differences),
            Err(error) => found.push(format!("rows: {error:#}")),
        }
        if state_of(killed.root())? != before {
            found.push("a file was changed".to_owned());
        }
        if found.is_empty() {
            return Ok((server, counts));
        }
        if std::env::var_os(KEEP_VARIABLE).is_some() {
            eprintln!("kept: {} and {}", killed.keep()?.display(), server.keep()?.display());
        }
        let count = found.len();
        found.truncate(TOLD);
        let (seed, major) = (self.seed, self.install.major);
        anyhow::bail!(
            "seed {seed}, PostgreSQL {major}: {count} differences:\n{}",
            found.join("\n")
        );
    }

    /// Other settings, and an end of what the last life prepared.
    fn next_life(&mut self, mut cluster: TestCluster) -> Result<TestCluster> {
        let end = "SELECT format('%s PREPARED %L', CASE WHEN random() < 0.5 THEN 'COMMIT' ELSE 'ROLLBACK' END, gid) \
                   FROM pg_prepared_xacts WHERE database = current_database() AND random() < 0.8 \\gexec\n";
        let script = cluster.root().join("end-prepared.sql");
        fs::write(&script, end)?;
        cluster.psql_file("postgres", &script, &[])?;
        cluster.stop()?;
        let conf = cluster.data_dir().join("postgresql.conf");
        let mut conf = fs::File::options().append(true).open(conf)?;
        for line in self.settings() {
            writeln!(conf, "{line}")?;
        }
        cluster.start()?;
        Ok(cluster)
    }
}

/// Size and time of change of all files below a directory.
fn state_of(directory: &Path) -> Result<BTreeMap<PathBuf, (u64, SystemTime)>> {
    let mut found = BTreeMap::new();
    let mut left = vec![directory.to_owned()];
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(&directory)? {
            let entry = entry?;
            let about = entry.metadata()?;
            if about.is_dir() {
                left.push(entry.path());
            }
            found.insert(entry.path(), (about.len(), about.modified()?));
        }
    }
    ensure!(!found.is_empty(), "no files in {}", directory.display());
    Ok(found)
}
