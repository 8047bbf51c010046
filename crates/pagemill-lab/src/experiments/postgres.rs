//! `postgres`: the same work in a PostgreSQL server of the run's own, in turns with ours and on the same files.
//!
//! The other experiments move blocks as PostgreSQL does, with nothing around them. Here is what is around them: executor,
//! buffers, locks, WAL. The server is made for the experiment and stopped at its end; its table is written once, frozen and
//! checkpointed, so that its files may be read beside it. Groups in which something is changed are in `server_changes.rs`.
//!
//! Invariants: where there is no server, the experiment is left out with the reason; a statement whose plan is not the one
//! that is meant is an error; the server stands in every group as its baseline.

use std::path::PathBuf;
use std::time::Duration;

use pagemill_io::IoMethod;

use crate::cache::bring_about;
use crate::cancel::Cancel;
use crate::contestant::{Contestant, Work};
use crate::error::{Error, Result};
use crate::experiments::pread::{NamedReading, described, state_name, way};
use crate::experiments::server_changes::{Changes, written_bytes};
use crate::experiments::table_reads::{RowAddress, TableFiles};
use crate::experiments::text_loading::TextFile;
use crate::experiments::{Plan, Scale, Session};
use crate::results::{CacheState, Figure};
use crate::runner::GroupPlan;
use crate::server::Server;

/// The experiment.
pub const PLAN: Plan = Plan {
    name: "postgres",
    title: "The same work in PostgreSQL's server, beside ours",
    question: "How long does a scan, an index-ordered scan, a load and a new database take in the server, and how long the \
               same work on the same files without it?",
    bytes_needed: |scale| 3 * table_bytes(scale) + 10 * written_bytes(scale) + FRESH_CLUSTER,
    share: 12,
    run,
};

/// The cell of the server.
pub(super) const SERVER: &str = "PostgreSQL";

/// The first workload.
const SCAN: &str = "SELECT count(*) FROM bigtable";
/// Bytes of a cluster that nothing was put into, and of its WAL.
const FRESH_CLUSTER: u64 = 256 << 20;
/// Of a text file with rows of three integers, the part of a hundred that it has of the table's size.
const TEXT_PERCENT: u64 = 71;
/// What a server has as shared buffers that nobody has set up.
const USUAL_BUFFERS: u64 = 128 << 20;
/// What it has at most, and at least, for look-ups, so that few of the table's blocks stay in it.
const FEW_BUFFERS: u64 = 16 << 20;
const LEAST_BUFFERS: u64 = 512 << 10;
/// Rows that are looked up in a turn, at most.
const MOST_ROWS: u32 = 200_000;

/// Our ways to read beside it.
const WAYS: [NamedReading; 3] = [
    way("seek", Some(IoMethod::Seek), true),
    way("pread 8 kB", Some(IoMethod::Pread), true),
    way("auto", None, false),
];

/// Bytes of the table: in a full run less than other experiments' files, as it is also made, and indexed.
fn table_bytes(scale: &Scale) -> u64 {
    if scale.quick { scale.size } else { scale.size / 4 }
}

/// Bytes of the text that fills so many bytes of a table.
pub(super) fn text_bytes(table: u64) -> u64 {
    table * TEXT_PERCENT / 100
}

fn run(session: &mut Session<'_>) -> Result<()> {
    let server = match make_server(session) {
        Ok(server) => server,
        Err(Error::Interrupted) => return Err(Error::Interrupted),
        Err(error) => {
            session.skip("all of it", error.to_string());
            return Ok(());
        }
    };
    session.preparing("making bigtable and its index");
    let trial = Trial::begin(session, &server)?;
    trial.scans(session, CacheState::Cached, 10)?;
    trial.scans(session, CacheState::Cold, 15)?;
    trial.look_ups(session, CacheState::Cached, 10)?;
    if session.scale().quick {
        session.skip("index-order-cold", "a quick run: leave out --quick");
    } else {
        trial.look_ups(session, CacheState::Cold, 15)?;
    }
    drop(trial);
    session.preparing("making what is loaded and cloned");
    let changes = Changes::begin(session, &server)?;
    changes.loads(session, 25)?;
    if session.scale().quick && !session.is_named() {
        let why = "a quick run of all experiments: leave out --quick, or add --experiment postgres";
        session.skip("create-database", why);
        return Ok(());
    }
    changes.clones(session, 25)
}

fn make_server(session: &Session<'_>) -> Result<Server> {
    let found = session.postgres().as_ref();
    let installation = found.map_err(|why| Error::server("PostgreSQL", why))?;
    session.preparing(&format!("making a cluster of PostgreSQL {}", installation.short_version()));
    Server::make(installation, session.directory())
}

/// The server's table.
struct Trial<'a> {
    server: &'a Server,
    table: TableFiles,
    files: Vec<PathBuf>,
    bytes: u64,
    /// The first rows of the index.
    order: Vec<RowAddress>,
}

impl<'a> Trial<'a> {
    /// Makes the table as a server's user would, without WAL, and leaves the server running.
    fn begin(session: &Session<'_>, server: &'a Server) -> Result<Self> {
        let cancel = session.cancel();
        let path = session.directory().join("bigtable.text");
        let bytes = text_bytes(table_bytes(&session.scale()));
        let text = TextFile::make(&path, bytes, session.seed(), cancel)?;
        server.give(&path)?;
        let settings = ["wal_level=minimal", "max_wal_senders=0", "maintenance_work_mem=256MB"];
        server.start(&settings.map(str::to_owned), cancel)?;
        // Frozen rows on pages marked all-visible: no turn has anything to write. In the transaction that makes the table,
        // and with this level of WAL, its rows need none.
        for statement in [
            "BEGIN; CREATE TABLE bigtable (a int, b int, c int); \
             COPY bigtable FROM '../bigtable.text' (FREEZE); COMMIT",
            "CREATE INDEX bigtable_a_b_c ON bigtable (a, b, c)",
            "ANALYZE bigtable",
            "CHECKPOINT",
        ] {
            server.run(statement, cancel)?;
        }
        std::fs::remove_file(&path).map_err(Error::file(&path))?;
        let path = server.run("SELECT pg_relation_filepath('bigtable')", cancel)?;
        let table = TableFiles { path: server.data().join(path), rows: text.rows };
        let files = table.files()?;
        let bytes = bytes_of(&files)?;
        let order = table.index_order(MOST_ROWS, cancel)?;
        Ok(Self { server, table, files, bytes, order })
    }

    fn scans(&self, session: &mut Session<'_>, cache: CacheState, percent: u32) -> Result<()> {
        let cancel = session.cancel();
        // Of a table of more than a quarter of them a scan keeps nothing there.
        let settings = buffers(USUAL_BUFFERS.min(2 * self.bytes));
        self.server.start(&settings, cancel)?;
        self.check_plan(SCAN, "Seq Scan on bigtable", cancel)?;
        let note = "a table of more than a quarter of shared_buffers is scanned through a small ring of them, so that each \
                    turn reads all of it again";
        let server = self.contestant(&settings, note, |cancel| self.server_scan(cancel));
        let server = server.prepared(|| self.server.start(&settings, cancel));
        let ours = WAYS.map(|(name, reading): NamedReading| {
            let work = move |cancel: &Cancel| self.table.count(reading, 1, cancel);
            described(Contestant::new(name, work), reading)
        });
        let title = "count(*) of bigtable by the server; beside it the same file read as it lies, its line pointers \
                     counted";
        let name = format!("scan-{}", state_name(cache));
        let plan = GroupPlan::new(name, title).bytes(self.bytes).cache(cache, self.files.clone());
        let plan = plan.baseline(SERVER).contestant(server).contestants(ours);
        session.group(plan, percent)
    }

    fn server_scan(&self, cancel: &Cancel) -> Result<Work> {
        let (count, work) = self.server.timed(SCAN, cancel)?;
        counted(&count, self.table.rows, work)
    }

    fn look_ups(&self, session: &mut Session<'_>, cache: CacheState, percent: u32) -> Result<()> {
        let cancel = session.cancel();
        let settings = buffers((self.bytes / 16).clamp(LEAST_BUFFERS, FEW_BUFFERS));
        self.start_afresh(&settings, cancel)?;
        let files = self.files_with_index(cancel)?;
        let time = session.turn_time(percent, 1 + WAYS.len());
        let rows = self.rows_of_turn(cache, &files, time, cancel)?;
        let places = self.order.get(..rows).unwrap_or(&self.order);
        // A turn may have fewer rows than there are buffers.
        let note = "restarted before each turn, so that none of the table's blocks is in shared_buffers; it reads the \
                    index, too, which ours does not do";
        let work = |cancel: &Cancel| self.server_look_up(places.len(), cancel);
        let server = self.contestant(&settings, note, work);
        let server = server.prepared(|| self.start_afresh(&settings, cancel));
        let ours = WAYS.map(|(name, reading): NamedReading| {
            let work = move |cancel: &Cancel| self.table.look_up_once(places, reading, cancel);
            described(Contestant::new(name, work), reading)
        });
        let title = format!(
            "{rows} rows of bigtable in the order of an index on (a, b, c): an index scan of the server; beside it each \
             row's block fetched from the same file"
        );
        let name = format!("index-order-{}", state_name(cache));
        let plan = GroupPlan::new(name, title).figure(Figure::Rate).cache(cache, files.clone());
        let plan = plan.baseline(SERVER).contestant(server).contestants(ours);
        session.group(plan, percent)
    }

    fn server_look_up(&self, rows: usize, cancel: &Cancel) -> Result<Work> {
        let (count, work) = self.server.timed(&in_order(rows), cancel)?;
        counted(&count, rows as u64, work)
    }

    /// As many as the server looks up in about this time.
    fn rows_of_turn(
        &self,
        cache: CacheState,
        files: &[PathBuf],
        time: Duration,
        cancel: &Cancel,
    ) -> Result<usize> {
        let least = if cache == CacheState::Cold { 200 } else { 5000 }.min(self.order.len());
        bring_about(cache, files).map_err(Error::system("page cache"))?;
        let took = self.server_look_up(least, cancel)?.elapsed.unwrap_or_default();
        let rows = time.as_secs_f64() / took.as_secs_f64().max(1e-6) * least as f64;
        Ok(rounded(rows as usize).clamp(least, self.order.len()))
    }

    fn files_with_index(&self, cancel: &Cancel) -> Result<Vec<PathBuf>> {
        let path = self.server.run("SELECT pg_relation_filepath('bigtable_a_b_c')", cancel)?;
        let index = TableFiles { path: self.server.data().join(path), rows: 0 }.files()?;
        Ok(self.files.iter().cloned().chain(index).collect())
    }

    /// The server's turns, with what it is set to.
    fn contestant<'c>(
        &self,
        settings: &[String],
        note: &str,
        work: impl FnMut(&Cancel) -> Result<Work> + 'c,
    ) -> Contestant<'c> {
        let contestant = server_contestant(self.server, SERVER, work).note(note);
        settings
            .iter()
            .filter_map(|setting| setting.split_once('='))
            .fold(contestant, |contestant, (name, value)| contestant.parameter(name, value))
    }

    /// Starts the server anew, so that none of the table's blocks is in its buffers, and lets it look at its catalogs.
    fn start_afresh(&self, settings: &[String], cancel: &Cancel) -> Result<()> {
        self.server.stop()?;
        self.server.start(settings, cancel)?;
        self.check_plan(&in_order(1), "Index Scan using bigtable_a_b_c", cancel)
    }

    fn check_plan(&self, statement: &str, expected: &str, cancel: &Cancel) -> Result<()> {
        let plan = self.server.run(&format!("EXPLAIN (COSTS OFF) {statement}"), cancel)?;
        match plan.contains(expected) {
            true => Ok(()),
            false => Err(Error::server(format!("{statement}: not by {expected}"), plan)),
        }
    }
}

/// Rows in the order of the index, each fetched for it.
fn in_order(rows: usize) -> String {
    format!("SELECT count(*) FROM (SELECT * FROM bigtable ORDER BY a, b, c LIMIT {rows}) AS rows")
}

/// Without more digits than two.
fn rounded(number: usize) -> usize {
    let unit = 10_usize.pow(number.max(1).ilog10().saturating_sub(1));
    number / unit * unit
}

fn counted(count: &str, expected: u64, work: Work) -> Result<Work> {
    match count.parse() == Ok(expected) {
        true => Ok(Work { operations: expected, ..work }),
        false => {
            Err(Error::server("rows counted by the server", format!("{count}, not {expected}")))
        }
    }
}

fn buffers(bytes: u64) -> Vec<String> {
    let amount = match bytes >> 20 {
        0 => format!("{}kB", bytes >> 10),
        megabytes => format!("{megabytes}MB"),
    };
    vec![format!("shared_buffers={amount}")]
}

fn bytes_of(files: &[PathBuf]) -> Result<u64> {
    let bytes = |path: &PathBuf| Ok(std::fs::metadata(path).map_err(Error::file(path))?.len());
    files.iter().map(bytes).sum()
}

/// A contestant whose work the server does.
pub(super) fn server_contestant<'a>(
    server: &Server,
    name: impl Into<String>,
    work: impl FnMut(&Cancel) -> Result<Work> + 'a,
) -> Contestant<'a> {
    let version = server.installation().short_version();
    Contestant::new(name, work).by_threads().parameter("version", version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_told_as_people_set_them() {
        assert_eq!(buffers(128 << 20), ["shared_buffers=128MB"]);
        assert_eq!(buffers(512 << 10), ["shared_buffers=512kB"]);
    }

    #[test]
    fn rows_are_a_round_number() {
        assert_eq!([0, 7, 99, 123, 16_423].map(rounded), [0, 7, 99, 120, 16_000]);
    }

    #[test]
    fn a_server_that_counts_other_rows_has_failed() {
        assert_eq!(counted("7", 7, Work::default()).unwrap().operations, 7);
        let error = counted("8", 7, Work::default()).unwrap_err();
        assert!(error.to_string().contains("8, not 7"), "{error}");
        assert!(counted("", 7, Work::default()).is_err());
    }
}
