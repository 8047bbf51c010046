//! `cargo xtask torture`: the long run, or one case of it again.
//!
//! Invariant: the exit status is 0 only when nothing failed.

#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::builder::PossibleValuesParser;
use clap::{Args, Parser};
use pagemill_sim::{Loss, WriteFault};
use pagemill_testkit::PgInstall;
use pagemill_torture::campaign::{self, Plan};
use pagemill_torture::case::{Event, parse_fault, parse_loss};
use pagemill_torture::database_fixture::DatabaseFixture;
use pagemill_torture::database_judge::DatabaseJudge;
use pagemill_torture::database_kind::DATABASE_KINDS;
use pagemill_torture::judge::Judge;
use pagemill_torture::kind::KINDS;
use pagemill_torture::load_fixture::LoadFixture;
use pagemill_torture::power_cuts::PowerCuts;
use pagemill_torture::trial::Trial;
use pagemill_torture::write_faults::judge_fault;

/// The long run; with --call, one case of it
#[derive(Debug, Parser)]
#[command(bin_name = "cargo xtask torture", max_term_width = 100, args_override_self = true)]
struct Options {
    #[command(flatten)]
    scale: Scale,
    /// Where the account goes [default: under runs/]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    case: Case,
}

/// How much is tried, and of what.
#[derive(Debug, Args)]
struct Scale {
    /// Only this version of PostgreSQL [default: 15 and 18]
    #[arg(long, value_name = "N")]
    major: Option<u32>,
    /// Only this kind of load, or of what is done to databases; `databases` for all of these, and
    /// `servers` for nothing but servers that are killed
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(kind_names()))]
    kind: Option<String>,
    /// Images that a server judges, for each version
    #[arg(long, value_name = "N", default_value = "300")]
    servers: u64,
    /// Change one of N images again that the reader judged
    #[arg(long, value_name = "N", default_value = "4")]
    load_again: u64,
    /// Cut the power before one call of N; from the decision on, before each
    #[arg(long, value_name = "N", default_value = "1")]
    cut_stride: usize,
    /// Let one call of N fail
    #[arg(long, value_name = "N", default_value = "1")]
    fault_stride: usize,
    /// Faults that a server judges, for each version
    #[arg(long, value_name = "N", default_value = "60")]
    served_faults: u64,
    /// Changes killed, for each version
    #[arg(long, value_name = "N", default_value = "100")]
    kills: u64,
    /// Servers killed under load, whose files are read without a restart, for each version
    #[arg(long, value_name = "N", default_value = "200")]
    server_kills: u64,
    /// Threads
    #[arg(long, value_name = "N", default_value = "4")]
    jobs: usize,
    /// Where chance begins
    #[arg(long, value_name = "N", default_value = "1")]
    seed: u64,
    /// The program that is killed [default: a build of this tree]
    #[arg(long, value_name = "FILE", default_value = "pagemill", hide_default_value = true)]
    program: PathBuf,
}

/// One case of the long run.
#[derive(Debug, Args)]
#[command(next_help_heading = "One case")]
struct Case {
    /// The call before which the power is cut, or which fails
    #[arg(long, value_name = "N", requires_all = ["major", "kind", "event"])]
    call: Option<usize>,
    /// Cut the power: all, none, torn:SEED, ordered:SEED
    #[arg(long, group = "event", value_parser = parse_loss)]
    loss: Option<Loss>,
    /// Let the call fail: no-space, no-space-from-here, failed, read-only-from-here
    #[arg(long, group = "event", value_parser = parse_fault)]
    fault: Option<WriteFault>,
    /// Have a server judge it, too
    #[arg(long)]
    server: bool,
    /// Leave the directory here as it was before it was judged
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
}

impl Scale {
    fn plan(&self) -> Plan {
        let every = Plan::default();
        let is_wanted = |database: bool, name: &str| match self.kind.as_deref() {
            None => true,
            Some(DATABASES) => database,
            Some(wanted) => wanted == name,
        };
        let kinds = every.kinds.into_iter().filter(|kind| is_wanted(false, kind.name));
        let databases = every.databases.into_iter().filter(|kind| is_wanted(true, kind.name));
        Plan {
            majors: self.major.map_or(every.majors, |major| vec![major]),
            kinds: kinds.collect(),
            databases: databases.collect(),
            cut_stride: self.cut_stride,
            servers: self.servers,
            load_again: self.load_again,
            fault_stride: self.fault_stride,
            served_faults: self.served_faults,
            kills: if self.kind.as_deref() == Some(SERVERS) { 0 } else { self.kills },
            server_kills: self.server_kills,
            program: self.program.clone(),
            seed: self.seed,
            jobs: self.jobs,
        }
    }
}

impl Case {
    fn event(&self) -> Option<Event> {
        self.loss.map(Event::PowerCut).or(self.fault.map(Event::Fault))
    }
}

/// What stands for every kind of what is done to databases.
const DATABASES: &str = "databases";
/// What stands for none of them, since servers that are killed are of no kind.
const SERVERS: &str = "servers";

fn kind_names() -> Vec<&'static str> {
    let databases = DATABASE_KINDS.iter().map(|kind| kind.name);
    KINDS.iter().map(|kind| kind.name).chain(databases).chain([DATABASES, SERVERS]).collect()
}

fn main() -> ExitCode {
    let options = Options::parse();
    let plan = options.scale.plan();
    let outcome = match options.case.call {
        Some(call) => one(&plan, &options.case, call),
        None => long(&plan, options.out.as_deref()),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("torture: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn one(plan: &Plan, case: &Case, call: usize) -> Result<bool> {
    let Some(&major) = plan.majors.first() else { bail!("--call wants --major") };
    let install = PgInstall::find(major).with_context(|| format!("PostgreSQL {major}"))?;
    match (plan.kinds.as_slice(), plan.databases.as_slice()) {
        (&[kind], []) => {
            let fixture = LoadFixture::new(&install)?;
            judge_one(case, call, Judge::new(&fixture, kind)?)
        }
        ([], &[kind]) => {
            let fixture = DatabaseFixture::new(&install)?;
            judge_one(case, call, DatabaseJudge::new(&fixture, kind))
        }
        _ => bail!("--call wants one --kind"),
    }
}

fn judge_one(case: &Case, call: usize, trial: impl Trial) -> Result<bool> {
    let found = match case.event().context("--call wants --loss or --fault")? {
        Event::Fault(fault) => {
            format!("{:?}", judge_fault(&trial, (call, fault), case.server)?)
        }
        Event::PowerCut(loss) => {
            let cuts = PowerCuts::new(trial)?;
            if let Some(directory) = &case.keep {
                cuts.keep(call, loss, directory)?;
            }
            match case.server {
                true => format!("{:?}", cuts.serve(call, loss)?),
                false => format!("{:?}", cuts.read(call, loss, true)?),
            }
        }
    };
    println!("{found}");
    Ok(true)
}

fn long(plan: &Plan, out: Option<&Path>) -> Result<bool> {
    let tally = campaign::run(plan)?;
    let mut page = format!("{}\n{} failures\n", tally.table(), tally.failures.len());
    for failure in &tally.failures {
        page += &format!("\n```\n{failure}\n```\n");
    }
    match out {
        Some(path) => std::fs::write(path, page).with_context(|| path.display().to_string())?,
        None => print!("{page}"),
    }
    Ok(tally.failures.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, clap::Error> {
        Options::try_parse_from(std::iter::once("torture").chain(line.split_whitespace()))
    }

    #[test]
    fn a_kind_is_taken_alone_and_databases_are_taken_together() {
        let plan = |line: &str| parse(line).unwrap().scale.plan();
        let counts = |plan: &Plan| (plan.majors.len(), plan.kinds.len(), plan.databases.len());
        assert_eq!(counts(&plan("")), (2, KINDS.len(), DATABASE_KINDS.len()));
        assert_eq!(counts(&plan("--kind databases")), (2, 0, DATABASE_KINDS.len()));
        let servers = plan("--kind servers --kills 7 --server-kills 20");
        assert_eq!((counts(&servers), servers.kills, servers.server_kills), ((2, 0, 0), 0, 20));
        let one = plan(&format!("--major 15 --kind {} --kills 0", KINDS[0].name));
        assert_eq!((counts(&one), one.kills, one.servers), ((1, 1, 0), 0, 300));
    }

    #[test]
    fn a_case_wants_its_version_its_kind_and_what_happens_at_the_call() {
        let line = format!("--major 15 --kind {} --call 12", KINDS[0].name);
        let case =
            |rest: &str| parse(&format!("{line} {rest}")).map(|options| options.case.event());
        assert_eq!(case("--loss torn:7 --server").unwrap(), Some(Event::PowerCut(Loss::Torn(7))));
        assert!(case("").is_err() && case("--loss some").is_err() && case("--fault x").is_err());
        assert!(case("--loss all --fault no-space").is_err());
        for line in ["--call 1 --loss all", "--kind nothing", "--kills", "--kills x", "--what"] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
