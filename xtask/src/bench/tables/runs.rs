//! One row: answers compared, then runs in turns, then memory and calls.
//!
//! Invariant: nothing is timed before both sides gave the same answer in the warm-up, a count by its
//! number, an export byte by byte. Before each timed export the files of the last one are deleted and
//! what is dirty is written out, so that no run pays for another's output.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::options::Options;
use super::pagemill::Pagemill;
use super::rows::{Format, Row, Table, Work};
use super::twins::Host;
use crate::bench::figures::verdict;
use crate::bench::floor::Floor;
use crate::bench::settling::settle;
use crate::bench::targets::Target;
use crate::workspace;

/// Starts are short: more of them cost nothing.
const STARTS_PER_REPETITION: usize = 4;

/// How a fault begins when the two answers are not equal.
const DIFFERS: &str = "differs";

const BLOCK_BYTES: u64 = 8192;

/// What was found out about one row.
pub(super) struct Measured {
    pub(super) row: Row,
    pub(super) target: Target,
    /// The two command lines.
    pub(super) statement: String,
    pub(super) command: String,
    pub(super) server_ms: Vec<f64>,
    pub(super) pagemill_ms: Vec<f64>,
    /// The floor's times, where the row is held to it.
    pub(super) floor_ms: Vec<f64>,
    pub(super) peak_memory_mib: Option<f64>,
    pub(super) read_calls: Option<u64>,
    pub(super) blocks: Option<u64>,
    pub(super) output_bytes: Option<u64>,
    /// Why the row has no figures of pagemill.
    pub(super) fault: Option<String>,
}

impl Measured {
    /// PostgreSQL's time over pagemill's, pair by pair.
    pub(super) fn ratios(&self) -> Vec<f64> {
        let pairs = self.server_ms.iter().zip(&self.pagemill_ms);
        pairs.map(|(server, pagemill)| server / pagemill).collect()
    }

    /// What the target is about.
    pub(super) fn samples(&self) -> Vec<f64> {
        match self.row.work {
            Work::Startup => self.pagemill_ms.clone(),
            _ if self.target.is_of_floor() => self.target.ratios(&self.floor_ms, &self.pagemill_ms),
            _ => self.ratios(),
        }
    }

    pub(super) fn verdict(&self) -> String {
        if let Some(fault) = &self.fault {
            return if fault.starts_with(DIFFERS) { DIFFERS } else { "failed" }.to_owned();
        }
        verdict(&self.samples(), |figure| self.target.reaches(figure)).to_owned()
    }

    pub(super) fn reads_per_16_blocks(&self) -> Option<f64> {
        Some(self.read_calls? as f64 * 16.0 / self.blocks.filter(|blocks| *blocks > 0)? as f64)
    }
}

/// Measures one row; a failure of pagemill is a finding, one of the server is an error.
pub(super) fn measure(
    row: &Row,
    options: &Options,
    host: &Host<'_>,
    pagemill: Option<&Pagemill>,
) -> Result<Measured> {
    let target = row.target(options);
    let floor = match (pagemill, row.table()) {
        (Some(pagemill), Some(table)) if target.is_of_floor() => {
            Some((Floor::build(&workspace::root())?, pagemill.segments(&path(host, table)?)))
        }
        _ => None,
    };
    let side = Side { row, host, file: host.exports().join("postgresql"), floor };
    let statement = side.statement();
    let mut measured = Measured {
        row: *row,
        target,
        statement: statement.replace(&*side.file.to_string_lossy(), "FILE"),
        command: pagemill.map(|pagemill| pagemill.spelled(row)).unwrap_or_default(),
        server_ms: Vec::new(),
        pagemill_ms: Vec::new(),
        floor_ms: Vec::new(),
        peak_memory_mib: None,
        read_calls: None,
        blocks: row.table().map(|table| blocks(host, table)).transpose()?,
        output_bytes: None,
        fault: None,
    };
    let outcome = side.turns(options, pagemill, &mut measured);
    side.clear(pagemill)?;
    match outcome {
        Ok(()) => {}
        Err(Fault::Server(error)) => return Err(error.context(row.id)),
        Err(Fault::Pagemill(error)) => {
            eprintln!("{}: {error:#}", row.id);
            let fault = format!("{error:#}");
            measured.fault = pagemill.map(|pagemill| pagemill.without_places(&fault));
        }
    }
    Ok(measured)
}

fn blocks(host: &Host<'_>, table: Table) -> Result<u64> {
    let size = host.psql(&[&format!("select pg_relation_size('{}')", table.name())])?;
    Ok(size.trim().parse::<u64>().context("pg_relation_size")? / BLOCK_BYTES)
}

/// A table's main fork, below the data directory.
fn path(host: &Host<'_>, table: Table) -> Result<String> {
    let path = host.psql(&[&format!("select pg_relation_filepath('{}')", table.name())])?;
    Ok(path.trim().to_owned())
}

/// Whose failure it was.
enum Fault {
    Server(anyhow::Error),
    Pagemill(anyhow::Error),
}

/// The server's side of a row, and the way both take turns.
struct Side<'a, 'b> {
    row: &'a Row,
    host: &'a Host<'b>,
    /// Where its export goes.
    file: PathBuf,
    /// The floor, and the files it reads, where the row is held to it.
    floor: Option<(Floor, Vec<PathBuf>)>,
}

impl Side<'_, '_> {
    fn statement(&self) -> String {
        match self.row.work {
            Work::Startup => String::new(),
            Work::Count(table) => format!("select count(*) from {}", table.name()),
            Work::Export { table, format, .. } => {
                let path = self.file.to_string_lossy().replace('\'', "''");
                let options = if format == Format::Csv { " (format csv)" } else { "" };
                format!("copy {} to '{path}'{options}", table.name())
            }
        }
    }

    fn turns(
        &self,
        options: &Options,
        pagemill: Option<&Pagemill>,
        measured: &mut Measured,
    ) -> Result<(), Fault> {
        self.clear(pagemill).map_err(Fault::Server)?;
        let expected = self.serve(None)?;
        measured.output_bytes = std::fs::metadata(&self.file).map(|file| file.len()).ok();
        if let Some(pagemill) = pagemill {
            self.host.make_way().map_err(Fault::Server)?;
            let given = pagemill.timed(self.row).map_err(Fault::Pagemill)?.0;
            self.compare(&expected, &given, &pagemill.export).map_err(Fault::Pagemill)?;
        }
        for _ in 0..self.turn_count(options) {
            self.clear(pagemill).map_err(Fault::Server)?;
            if self.host.is_stopped() {
                // The first run after a start fills the server's caches.
                self.serve(None)?;
                self.clear(pagemill).map_err(Fault::Server)?;
            }
            self.serve(Some(&mut measured.server_ms))?;
            let Some(pagemill) = pagemill else { continue };
            self.host.make_way().map_err(Fault::Server)?;
            self.clear(Some(pagemill)).map_err(Fault::Server)?;
            let timed = pagemill.timed(self.row).map_err(Fault::Pagemill)?;
            measured.pagemill_ms.push(timed.1);
            if let Some((floor, files)) = &self.floor {
                let core = options.core.to_string();
                let took = floor.milliseconds(files, Some(&core)).map_err(Fault::Server)?;
                measured.floor_ms.push(took);
            }
        }
        let Some(pagemill) = pagemill else { return Ok(()) };
        self.clear(Some(pagemill)).map_err(Fault::Server)?;
        measured.peak_memory_mib =
            Some(pagemill.peak_memory_mib(self.row).map_err(Fault::Pagemill)?);
        self.clear(Some(pagemill)).map_err(Fault::Server)?;
        measured.read_calls = pagemill.read_calls(self.row);
        Ok(())
    }

    fn turn_count(&self, options: &Options) -> usize {
        match self.row.work {
            Work::Startup => options.run.repetitions * STARTS_PER_REPETITION,
            _ => options.run.repetitions,
        }
    }

    /// Runs the statement, keeps its time, and gives its answer.
    fn serve(&self, times: Option<&mut Vec<f64>>) -> Result<String, Fault> {
        if self.row.work == Work::Startup {
            return Ok(String::new());
        }
        let (answer, time) = self.host.timed(&self.statement()).map_err(Fault::Server)?;
        if let Some(times) = times {
            times.push(time);
        }
        Ok(answer)
    }

    fn compare(&self, expected: &str, given: &str, export: &Path) -> Result<()> {
        match self.row.work {
            Work::Startup => Ok(()),
            Work::Count(_) if given.split_whitespace().any(|word| word == expected) => Ok(()),
            Work::Count(_) => {
                bail!("{DIFFERS}: PostgreSQL counts {expected}, pagemill {}", given.trim())
            }
            Work::Export { .. } => {
                let same = Command::new("cmp").arg("-s").arg(&self.file).arg(export).status()?;
                if same.success() {
                    Ok(())
                } else {
                    bail!("{DIFFERS}: the two exports are not equal")
                }
            }
        }
    }

    /// Deletes what exports wrote, and waits until nothing of it is left to be written.
    fn clear(&self, pagemill: Option<&Pagemill>) -> Result<()> {
        if !matches!(self.row.work, Work::Export { .. }) {
            return Ok(());
        }
        let exports = [Some(&self.file), pagemill.map(|pagemill| &pagemill.export)];
        for file in exports.into_iter().flatten().filter(|file| file.exists()) {
            std::fs::remove_file(file)?;
        }
        settle(&self.host.exports())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::tables::rows;

    fn measured(id: &str, server_ms: &[f64], pagemill_ms: &[f64]) -> Measured {
        let row = rows::selected(&[id.to_owned()], true).unwrap()[0];
        Measured {
            row,
            target: if id == "startup" { Target::Milliseconds(50.0) } else { Target::AtLeast(3.0) },
            floor_ms: Vec::new(),
            statement: String::new(),
            command: String::new(),
            server_ms: server_ms.to_vec(),
            pagemill_ms: pagemill_ms.to_vec(),
            peak_memory_mib: None,
            read_calls: Some(100),
            blocks: Some(1600),
            output_bytes: None,
            fault: None,
        }
    }

    #[test]
    fn a_ratio_is_taken_pair_by_pair() {
        assert_eq!(measured("count-t", &[100.0, 200.0], &[10.0, 10.0]).ratios(), [10.0, 20.0]);
    }

    #[test]
    fn a_target_inside_the_interval_is_called_noise() {
        assert_eq!(measured("count-t", &[90.0; 5], &[10.0; 5]).verdict(), "met");
        assert_eq!(measured("count-t", &[10.0; 5], &[10.0; 5]).verdict(), "missed");
        let spread = measured("count-t", &[20.0, 90.0, 90.0], &[10.0; 3]);
        assert_eq!(spread.verdict(), "met, within noise");
    }

    #[test]
    fn a_count_of_what_was_written_is_held_to_the_floor() {
        let mut row = measured("count-t", &[400.0; 5], &[100.0; 5]);
        (row.target, row.floor_ms) = (Target::OfFloor(1.3), vec![80.0; 5]);
        assert_eq!((row.samples(), row.verdict()), (vec![1.25; 5], "met".into()));
        row.floor_ms = vec![70.0; 5];
        assert_eq!(row.verdict(), "missed");
    }

    #[test]
    fn a_start_is_held_to_milliseconds() {
        assert_eq!(measured("startup", &[], &[1.0; 5]).verdict(), "met");
        assert_eq!(measured("startup", &[], &[9e9; 5]).verdict(), "missed");
    }

    #[test]
    fn reads_are_told_for_sixteen_blocks() {
        assert_eq!(measured("count-t", &[], &[]).reads_per_16_blocks(), Some(1.0));
    }

    #[test]
    fn a_row_that_failed_says_so_and_a_wrong_answer_is_called_one() {
        let mut row = measured("count-t", &[90.0; 5], &[10.0; 5]);
        row.fault = Some("failed (exit status: 1): pagemill count".into());
        assert_eq!(row.verdict(), "failed");
        row.fault = Some(format!("{DIFFERS}: PostgreSQL counts 2, pagemill 1"));
        assert_eq!(row.verdict(), "differs");
    }
}
