//! `cargo xtask bench read`: every way to read, against PostgreSQL, against the device, and against each other.
//!
//! ```text
//! rows ──► place by place: ground (cluster, device, limits) ──► races, contestants in turns ──► claims ──► runs/
//! ```
//!
//! Both sides read one directory; the server is started and stopped between them, so that the state of the page cache
//! is shared and can be named. What this machine cannot do is skipped with its reason, and what this
//! binary cannot do yet is found out first and named.

mod bench_cluster;
mod counted;
pub(super) mod fio;
mod options;
mod probe;
mod report;
mod rows;
mod turns;
mod verdict;

use std::path::Path;

use anyhow::{Result, bail};
use pagemill_testkit::devices;

use super::{artifact, binary, environment, version_of};
use crate::workspace;
use bench_cluster::BenchCluster;
use counted::Counted;
pub(super) use options::Options;
use probe::Probe;
use rows::{ClusterKind, Row, State};
use turns::{Absence, Raced, Stand};

/// Everything a report is made of.
struct Bench {
    options: Options,
    environment: Vec<(&'static str, String)>,
    /// What is worth saying of each place.
    places: Vec<(&'static str, Vec<(&'static str, String)>)>,
    raced: Vec<Raced>,
    counted: Vec<Counted>,
    /// Flags that the binary refused.
    not_built: Vec<String>,
}

/// Runs the benchmark with these options; false when a run failed or an answer was wrong. A missed target, a
/// method that is not built and a machine that cannot are results like others.
pub(super) fn run(options: Options) -> Result<bool> {
    if options.clean {
        devices::clean()?.iter().for_each(|line| println!("{line}"));
        return Ok(true);
    }
    let root = workspace::root();
    let rows = selected(&options.selected)?;
    let binary = binary(options.sides.pagemill.as_deref(), &root)?;
    let probe = Probe::new(&binary);
    let not_built = not_built(&rows, &probe);
    not_built.iter().for_each(|refusal| eprintln!("not built yet: {refusal}"));
    if options.list {
        rows.iter().for_each(|row| println!("{}", listed(row, &probe)));
        return Ok(true);
    }
    let bench = measure(options, &rows, &binary, &probe, not_built)?;
    let page = report::markdown(&bench);
    println!("\n{page}");
    let beside = bench_cluster::directory(&bench.options);
    let place = if bench.options.run.quick { beside } else { root.join("runs") };
    let (name, numbers) = (&bench.options.run.name, report::raw(&bench));
    for path in artifact::keep(&place, name, &bench.environment, &page, &numbers)? {
        println!("kept: {}", path.display());
    }
    Ok(bench.is_sound())
}

impl Bench {
    /// Whether nothing that ran went wrong.
    fn is_sound(&self) -> bool {
        let outcomes = self.raced.iter().flat_map(|raced| &raced.outcomes);
        let absences = outcomes.map(|outcome| &outcome.absence);
        let mut absences = absences.chain(self.counted.iter().map(|counted| &counted.absence));
        !absences.any(|absence| matches!(absence, Some(Absence::Failed(_))))
    }
}

/// The rows whose names begin with one of these words; all for none.
fn selected(words: &[String]) -> Result<Vec<Row>> {
    let rows = rows::all();
    let matches = |row: &Row, word: &String| row.id().starts_with(word.as_str());
    if let Some(word) = words.iter().find(|word| !rows.iter().any(|row| matches(row, word))) {
        bail!("no row begins with {word}; see --list");
    }
    let wanted = |row: &Row| words.is_empty() || words.iter().any(|word| matches(row, word));
    Ok(rows.into_iter().filter(wanted).collect())
}

/// Each flag of these rows that the binary does not know, once.
fn not_built(rows: &[Row], probe: &Probe) -> Vec<String> {
    let mut refusals: Vec<String> = rows.iter().flat_map(|row| refusals(row, probe)).collect();
    refusals.sort();
    refusals.dedup();
    refusals
}

fn refusals(row: &Row, probe: &Probe) -> Vec<String> {
    match row {
        Row::Calls(calls) => probe.refusal(&calls.flags).into_iter().collect(),
        Row::Race(race) => {
            race.contestants.iter().filter_map(|contestant| probe.missing(contestant)).collect()
        }
    }
}

fn listed(row: &Row, probe: &Probe) -> String {
    let refusals = refusals(row, probe).len();
    let contestants = match row {
        Row::Calls(_) => 1,
        Row::Race(race) => race.contestants.len(),
    };
    let state = row.state().map_or("counted", State::name);
    let ready = contestants - refusals;
    format!("{:<36} {state:<12} {ready} of {contestants} contestants are built", row.id())
}

fn measure(
    options: Options,
    rows: &[Row],
    binary: &Path,
    probe: &Probe,
    not_built: Vec<String>,
) -> Result<Bench> {
    let cluster = bench_cluster::open(ClusterKind::Plain, &options)?;
    let environment = environment::collect(&cluster, version_of(binary), &workspace::root());
    let (places, raced, counted) = (Vec::new(), Vec::new(), Vec::new());
    let mut bench = Bench { options, environment, places, raced, counted, not_built };
    for place in ClusterKind::ALL {
        let here: Vec<&Row> = rows.iter().filter(|row| row.place() == place).collect();
        if !here.is_empty() {
            bench.visit(place, &here, binary, probe);
        }
    }
    Ok(bench)
}

impl Bench {
    /// Measures the rows of one place.
    fn visit(&mut self, place: ClusterKind, rows: &[&Row], binary: &Path, probe: &Probe) {
        let runnable: Vec<&Row> = rows.iter().copied().filter(|row| can_run(row, probe)).collect();
        if runnable.is_empty() {
            rows.iter().for_each(|row| self.leave_out(row, None, probe));
            return;
        }
        let fresh = runnable.iter().any(|row| row.state() == Some(State::AsWritten));
        let made = BenchCluster::prepare(place, &self.options, fresh);
        let bench_cluster = match made {
            Ok(Ok(bench_cluster)) => bench_cluster,
            Ok(Err(unavailable)) => {
                eprintln!("SKIPPED: {}: {unavailable}", place.name());
                let absence = Absence::Skipped(unavailable.reason);
                rows.iter().for_each(|row| self.leave_out(row, Some(&absence), probe));
                return;
            }
            Err(error) => {
                eprintln!("failed: {}: {error:#}", place.name());
                let absence = Absence::Failed(format!("{error:#}"));
                rows.iter().for_each(|row| self.leave_out(row, Some(&absence), probe));
                return;
            }
        };
        let binary = binary.to_string_lossy().into_owned();
        for row in rows {
            eprintln!("{} ...", row.id());
            // Not the result of this row's turn: what loading or another row wrote is written out first.
            if let Err(error) = turns::settle() {
                eprintln!("{error:#}");
            }
            let stand = Stand {
                binary: &binary,
                probe,
                options: &self.options,
                bench_cluster: &bench_cluster,
            };
            match row {
                Row::Race(race) => {
                    let raced = stand.run(race);
                    self.raced.push(raced);
                }
                Row::Calls(calls) => {
                    let counted = counted::count(calls, &stand);
                    self.counted.push(counted);
                }
            }
        }
        self.places.push((place.name(), bench_cluster.facts.clone()));
    }

    /// Notes a row that is not run, for what its place lacks or for what is not built.
    fn leave_out(&mut self, row: &Row, absence: Option<&Absence>, probe: &Probe) {
        let refusal = || refusals(row, probe).into_iter().next().unwrap_or_default();
        let absence = absence.cloned().unwrap_or_else(|| Absence::NotBuilt(refusal()));
        match row {
            Row::Race(race) => self.raced.push(Raced::absent(race, &absence)),
            Row::Calls(calls) => self.counted.push(Counted::absent(calls, absence)),
        }
    }
}

/// Whether any contestant of a row can run.
fn can_run(row: &Row, probe: &Probe) -> bool {
    match row {
        Row::Calls(calls) => probe.refusal(&calls.flags).is_none(),
        Row::Race(race) => race.contestants.iter().any(|one| probe.missing(one).is_none()),
    }
}
