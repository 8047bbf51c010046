//! What changes a cluster, by its server while it runs and by us while it is stopped: rows loaded, databases made.
//!
//! ```text
//! before a turn of the server   it is started; what turns left is removed; CHECKPOINT
//! before one of ours            the same where our last turn has left something; the server is stopped
//! ```
//!
//! Each contestant has a table or database of its own, so that for one of ours the server is started only where it has to be.
//! Our work is timed from taking the right to change the cluster to giving it back, so it includes what a command of `pagemill`
//! reads of catalogs, and not the start of a process. As root, what we make in the cluster belongs to the server's account, as
//! the directory does that it is made in.
//!
//! Invariant: a turn ends with all of its work durable; what it loaded has as many rows as the file.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pagemill_cluster::change::{NewDatabase, make_ready};
use pagemill_cluster::{Cluster, ClusterLock, OpenOptions};
use pagemill_engine::clone::database::{
    CloneOptions, ClonePlan, CloneRequest, CloneStrategy, clone_database,
};
use pagemill_engine::copy::from::{CopyFromOptions, InputSource};
use pagemill_engine::{LoadOptions, LoadRequest, load, select};
use pagemill_io::Storage;

use crate::cancel::Cancel;
use crate::contestant::{Contestant, Work};
use crate::error::{Error, Result};
use crate::experiments::postgres::{SERVER, server_contestant, text_bytes};
use crate::experiments::text_loading::TextFile;
use crate::experiments::{Scale, Session};
use crate::results::{Absence, CacheState};
use crate::runner::GroupPlan;
use crate::server::Server;

/// The first version that has a choice of strategies.
const STRATEGIES: u32 = 15;
const TOO_OLD: &str = "PostgreSQL has this strategy from version 15 on";
/// The template.
const SOURCE: &str = "source";

/// Bytes of the table that is loaded, and of the one in the template: less than that of a scan, as they are written so often.
pub(super) fn written_bytes(scale: &Scale) -> u64 {
    scale.size / if scale.quick { 4 } else { 8 }
}

/// What both groups have in common.
pub(super) struct Changes<'a> {
    server: &'a Server,
    text: TextFile,
    jobs: usize,
}

impl<'a> Changes<'a> {
    /// Makes the text of rows, and the template.
    pub(super) fn begin(session: &Session<'_>, server: &'a Server) -> Result<Self> {
        let cancel = session.cancel();
        let path = session.directory().join("rows.text");
        let bytes = text_bytes(written_bytes(&session.scale()));
        let text = TextFile::make(&path, bytes, session.seed(), cancel)?;
        server.give(&path)?;
        server.start(&[], cancel)?;
        server.run(&format!("CREATE DATABASE {SOURCE}"), cancel)?;
        let make = "BEGIN; CREATE TABLE rows (a int, b int, c int); \
                    COPY rows FROM '../rows.text' (FREEZE); COMMIT";
        server.run_in(SOURCE, &[make], cancel)?;
        Ok(Self { server, text, jobs: session.jobs() })
    }

    /// COPY FROM against `pagemill load`.
    pub(super) fn loads(&self, session: &mut Session<'_>, percent: u32) -> Result<()> {
        let turns = Turns::new(self.server, session.cancel(), |table| format!("TRUNCATE {table}"));
        let tables = ["copied", "copied_and_checkpointed", "loaded", "loaded_by_one"];
        for table in tables {
            turns.run(&format!("CREATE TABLE {table} (a int, b int, c int)"))?;
        }
        let [copied, checkpointed, loaded, by_one] = tables;
        let plan = GroupPlan::new(
            "copy-from",
            "A text file of rows into an empty table, durable: COPY in the server; beside it a load into the same cluster, \
             stopped",
        )
        .bytes(self.text.bytes)
        .cache(CacheState::Cached, vec![self.text.path.clone()])
        .baseline(SERVER)
        .contestant(self.copy(&turns, copied, false))
        .contestant(self.copy(&turns, checkpointed, true))
        .contestant(self.load(&turns, loaded, self.jobs));
        let plan = match self.jobs {
            1 => plan,
            _ => plan.contestant(self.load(&turns, by_one, 1)),
        };
        session.group(plan, percent)
    }

    fn copy<'t>(
        &'t self,
        turns: &'t Turns<'_>,
        table: &'t str,
        checkpoint: bool,
    ) -> Contestant<'t> {
        let name = if checkpoint { format!("{SERVER}, CHECKPOINT") } else { SERVER.to_owned() };
        let note = match checkpoint {
            false => "durable by its WAL; the table's pages are written by a later checkpoint",
            true => "with the checkpoint that writes the table's pages, as ours are written",
        };
        let work = move |cancel: &Cancel| {
            let statement = format!("COPY {table} FROM '../rows.text'");
            let (_, copied) = self.server.timed(&statement, cancel)?;
            let copied = Work { operations: self.text.rows, ..copied };
            match checkpoint {
                false => Ok(copied),
                true => with_checkpoint(copied, "COPY", self.server, cancel),
            }
        };
        server_contestant(self.server, name, work)
            .note(note)
            .parameter("checkpoint", if checkpoint { "yes" } else { "no" })
            .prepared(move || turns.begin(table, true))
    }

    fn load<'t>(&'t self, turns: &'t Turns<'_>, table: &'t str, jobs: usize) -> Contestant<'t> {
        let threads = if jobs == 1 { "1 thread".into() } else { format!("{jobs} threads") };
        Contestant::new(format!("pagemill load, {threads}"), move |_: &Cancel| {
            self.load_now(table, jobs)
        })
        .by_threads()
        .parameter("jobs", jobs)
        .prepared(move || turns.begin(table, false))
    }

    fn load_now(&self, table: &str, jobs: usize) -> Result<Work> {
        let begin = Instant::now();
        let storage = Storage::real().untimed();
        let (lock, cluster) = self.open(&storage)?;
        let database = cluster.database("postgres").map_err(of_cluster)?;
        let selected = select::find_one(&database, table)?;
        let relation = database.relation(&selected.class).map_err(of_cluster)?;
        let request = LoadRequest {
            relation,
            sources: vec![InputSource::File(self.text.path.clone())],
            copy: &CopyFromOptions::default(),
            options: LoadOptions { jobs, ..LoadOptions::default() },
            compression: database.wal_compression().map_err(of_cluster)?,
            rejects: None,
        };
        let summary = load(lock, &database, request)?;
        if summary.rows != self.text.rows {
            let what = format!("{} rows loaded, {} expected", summary.rows, self.text.rows);
            return Err(Error::system(table)(std::io::Error::other(what)));
        }
        Ok(ended(begin, summary.rows, &storage))
    }

    /// CREATE DATABASE against `pagemill clone`.
    pub(super) fn clones(&self, session: &mut Session<'_>, percent: u32) -> Result<()> {
        let shares_blocks = session
            .environment()
            .facts
            .iter()
            .any(|fact| fact.name == "ficlone" && fact.value == "works");
        let remove = |database: &str| format!("DROP DATABASE IF EXISTS {database}");
        let turns = Turns::new(self.server, session.cancel(), remove);
        let bytes = turns.run(&format!("SELECT pg_database_size('{SOURCE}')"))?;
        let (logs, copies) = (CloneStrategy::WalLog, CloneStrategy::FileCopy);
        let baseline = if self.has_strategies() { logs } else { copies };
        let plan = GroupPlan::new(
            "create-database",
            "A database made from a template, with its pages written: CREATE DATABASE and CHECKPOINT in the server; beside \
             it a clone in the same cluster, stopped",
        )
        .bytes(bytes.parse().unwrap_or(0))
        .baseline(&format!("{SERVER} {baseline}"))
        .contestant(self.create(&turns, logs))
        .contestant(self.create(&turns, copies))
        .contestants([logs, copies].map(|strategy| self.clone_by(&turns, strategy)));
        let reflink = CloneStrategy::Reflink;
        let plan = plan.contestant(match shares_blocks {
            true => self.clone_by(&turns, reflink),
            false => {
                let why = "files do not share blocks on this file system".into();
                Contestant::absent(clone_name(reflink), Absence::Refused(why))
                    .parameter("strategy", reflink)
            }
        });
        session.group(plan.without_warm_up(), percent)
    }

    fn has_strategies(&self) -> bool {
        self.server.installation().major() >= STRATEGIES
    }

    fn create<'t>(&'t self, turns: &'t Turns<'_>, strategy: CloneStrategy) -> Contestant<'t> {
        let name = format!("{SERVER} {strategy}");
        if strategy == CloneStrategy::WalLog && !self.has_strategies() {
            return Contestant::absent(name, Absence::Skipped(TOO_OLD.into()))
                .parameter("strategy", strategy);
        }
        let clause =
            if self.has_strategies() { format!(" STRATEGY {strategy}") } else { String::new() };
        let database = format!("created_by_{strategy}");
        let own = database.clone();
        let work = move |cancel: &Cancel| {
            let statement = format!("CREATE DATABASE {database} TEMPLATE {SOURCE}{clause}");
            let (_, created) = self.server.timed(&statement, cancel)?;
            with_checkpoint(created, "CREATE DATABASE", self.server, cancel)
        };
        server_contestant(self.server, name, work)
            .parameter("strategy", strategy)
            .prepared(move || turns.begin(&own, true))
    }

    fn clone_by<'t>(&'t self, turns: &'t Turns<'_>, strategy: CloneStrategy) -> Contestant<'t> {
        if strategy == CloneStrategy::WalLog && !self.has_strategies() {
            return Contestant::absent(clone_name(strategy), Absence::Skipped(TOO_OLD.into()))
                .parameter("strategy", strategy);
        }
        let database = format!("cloned_by_{strategy}");
        let own = database.clone();
        Contestant::new(clone_name(strategy), move |_: &Cancel| self.clone_now(&database, strategy))
            .by_threads()
            .parameter("strategy", strategy)
            .prepared(move || turns.begin(&own, false))
    }

    fn clone_now(&self, name: &str, strategy: CloneStrategy) -> Result<Work> {
        let begin = Instant::now();
        let storage = Storage::real().untimed();
        let (lock, cluster) = self.open(&storage)?;
        make_ready(&cluster).map_err(of_cluster)?;
        let template = cluster.database(SOURCE).map_err(of_cluster)?;
        let new = NewDatabase {
            name: name.as_bytes().into(),
            owner: cluster.first_superuser().map_err(of_cluster)?,
            tablespace: None,
            is_template: false,
            allow_connections: true,
            connection_limit: -1,
        };
        let plan = ClonePlan::new(&template, None, Some(strategy))?;
        let options = CloneOptions { jobs: self.jobs, ..CloneOptions::for_template(&template)? };
        let request = CloneRequest { new, plan: &plan, options: &options };
        clone_database(Arc::new(lock), &template, request)?;
        Ok(ended(begin, 1, &storage))
    }

    fn open(&self, storage: &Storage) -> Result<(ClusterLock, Cluster)> {
        let lock = ClusterLock::take(storage, &self.server.data()).map_err(of_cluster)?;
        let cluster = Cluster::open_locked(storage.clone(), &lock, OpenOptions::default());
        Ok((lock, cluster.map_err(of_cluster)?))
    }
}

fn clone_name(strategy: CloneStrategy) -> String {
    format!("pagemill clone {strategy}")
}

fn of_cluster(error: pagemill_cluster::Error) -> Error {
    pagemill_engine::Error::from(error).into()
}

/// Work of ours that began then and has ended now.
fn ended(begin: Instant, operations: u64, storage: &Storage) -> Work {
    let work = Work::operations(operations).with_counted("pread", &storage.counters().snapshot());
    Work { elapsed: Some(begin.elapsed()), ..work }
}

/// Work of the server with the checkpoint that follows, as two parts.
fn with_checkpoint(work: Work, name: &str, server: &Server, cancel: &Cancel) -> Result<Work> {
    let (_, checkpoint) = server.timed("CHECKPOINT", cancel)?;
    let time = |work: &Work| work.elapsed.unwrap_or_default();
    let parts = (time(&work), time(&checkpoint));
    let sum = |one: Option<Duration>, other: Option<Duration>| Some(one? + other?);
    let both = work.processor.zip(checkpoint.processor);
    let work = Work {
        elapsed: Some(parts.0 + parts.1),
        processor: both.map(|(one, other)| (one.0 + other.0, one.1 + other.1)),
        wait: sum(work.wait, checkpoint.wait),
        ..work
    };
    Ok(work.with_part(name, parts.0).with_part("CHECKPOINT", parts.1))
}

/// What turns leave in the cluster, and who runs: us or the server.
struct Turns<'a> {
    server: &'a Server,
    cancel: &'a Cancel,
    /// Names of what was made.
    left: RefCell<BTreeSet<String>>,
    /// The statement that removes what has a name.
    removal: fn(&str) -> String,
}

impl<'a> Turns<'a> {
    fn new(server: &'a Server, cancel: &'a Cancel, removal: fn(&str) -> String) -> Self {
        Self { server, cancel, left: RefCell::default(), removal }
    }

    /// Runs a statement between turns.
    fn run(&self, statement: &str) -> Result<String> {
        self.server.start(&[], self.cancel)?;
        self.server.run(statement, self.cancel)
    }

    /// Before a turn that will make what has this name, in the server or while it is stopped.
    fn begin(&self, name: &str, in_server: bool) -> Result<()> {
        if in_server || self.left.borrow().contains(name) {
            let left = self.left.take();
            left.iter().try_for_each(|name| self.run(&(self.removal)(name)).map(drop))?;
            self.run("CHECKPOINT")?;
        }
        if !in_server {
            self.server.stop()?;
        }
        self.left.borrow_mut().insert(name.to_owned());
        Ok(())
    }
}
