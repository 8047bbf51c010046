//! `cargo xtask torture`: the long run, or one case of it again.
//!
//! Invariant: the exit status is 0 only when nothing failed.

#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use pagemill_testkit::PgInstall;
use pagemill_torture::campaign::{self, Plan};
use pagemill_torture::case::{Event, parse_fault, parse_loss};
use pagemill_torture::database_ground::DatabaseGround;
use pagemill_torture::database_judge::DatabaseJudge;
use pagemill_torture::database_kind::{DATABASE_KINDS, DatabaseKind};
use pagemill_torture::ground::Ground;
use pagemill_torture::judge::Judge;
use pagemill_torture::kind::{KINDS, Kind};
use pagemill_torture::power_cuts::PowerCuts;
use pagemill_torture::trial::Trial;
use pagemill_torture::write_faults::judge_fault;

const USAGE: &str = "usage: cargo xtask torture [OPTION]...

The long run; with --call, one case of it.

  --major N         only this version of PostgreSQL [default: 15 and 18]
  --kind NAME       only this kind of load, or of what is done to databases; `databases` for all of these
  --servers N       images that a server judges, for each version [default: 300]
  --load-again N    change one of N images again that the reader judged [default: 4]
  --cut-stride N    cut the power before one call of N [default: 1]; before each from the decision on
  --fault-stride N  let one call of N fail [default: 1]
  --served-faults N faults that a server judges, for each version [default: 60]
  --kills N         changes killed, for each version [default: 100]
  --jobs N          threads [default: 4]
  --seed N          where chance begins [default: 1]
  --program FILE    the program that is killed [default: a build of this tree]
  --out FILE        where the account goes [default: under runs/]
  --call N          one case: the call,
  --loss LOSS         before which the power is cut (all, none, torn:SEED, ordered:SEED)
  --fault FAULT       or which fails (no-space, no-space-from-here, failed, read-only-from-here),
  --server            judged by a server, too
  --keep DIR          and the directory left as it was before it was judged";

#[derive(Debug, Default)]
struct Options {
    plan: Plan,
    out: Option<PathBuf>,
    call: Option<usize>,
    event: Option<Event>,
    server: bool,
    keep: Option<PathBuf>,
}

fn main() -> ExitCode {
    let outcome = options(std::env::args().skip(1)).and_then(|options| match options.call {
        Some(call) => one(&options, call),
        None => long(&options),
    });
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("torture: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn options(mut arguments: impl Iterator<Item = String>) -> Result<Options> {
    let mut options = Options::default();
    while let Some(option) = arguments.next() {
        if option == "--server" {
            options.server = true;
            continue;
        }
        if option == "--help" {
            bail!("{USAGE}");
        }
        let value =
            arguments.next().with_context(|| format!("{option} wants a value\n\n{USAGE}"))?;
        take(&mut options, &option, &value).with_context(|| format!("{option} {value}"))?;
    }
    Ok(options)
}

fn take(options: &mut Options, option: &str, value: &str) -> Result<()> {
    let plan = &mut options.plan;
    match option {
        "--major" => plan.majors = vec![value.parse()?],
        "--kind" => {
            plan.kinds = Kind::find(value).into_iter().collect();
            let is_wanted = |kind: &DatabaseKind| value == "databases" || kind.name == value;
            plan.databases = DATABASE_KINDS.into_iter().filter(is_wanted).collect();
            if plan.kinds.is_empty() && plan.databases.is_empty() {
                let databases = DATABASE_KINDS.map(|kind| kind.name).join(", ");
                bail!("one of {}, {databases}", KINDS.map(|kind| kind.name).join(", "));
            }
        }
        "--servers" => plan.servers = value.parse()?,
        "--load-again" => plan.load_again = value.parse()?,
        "--cut-stride" => plan.cut_stride = value.parse()?,
        "--fault-stride" => plan.fault_stride = value.parse()?,
        "--served-faults" => plan.served_faults = value.parse()?,
        "--kills" => plan.kills = value.parse()?,
        "--jobs" => plan.jobs = value.parse()?,
        "--seed" => plan.seed = value.parse()?,
        "--program" => plan.program = value.into(),
        "--out" => options.out = Some(value.into()),
        "--call" => options.call = Some(value.parse()?),
        "--loss" => options.event = Some(Event::PowerCut(parse_loss(value)?)),
        "--fault" => options.event = Some(Event::Fault(parse_fault(value)?)),
        "--keep" => options.keep = Some(value.into()),
        _ => bail!("no such option\n\n{USAGE}"),
    }
    Ok(())
}

fn one(options: &Options, call: usize) -> Result<bool> {
    let Some(&major) = options.plan.majors.first() else { bail!("--call wants --major") };
    let install = PgInstall::find(major).with_context(|| format!("PostgreSQL {major}"))?;
    match (options.plan.kinds.as_slice(), options.plan.databases.as_slice()) {
        (&[kind], []) => {
            let ground = Ground::new(&install)?;
            judge_one(options, call, Judge::new(&ground, kind)?)
        }
        ([], &[kind]) => {
            let ground = DatabaseGround::new(&install)?;
            judge_one(options, call, DatabaseJudge::new(&ground, kind))
        }
        _ => bail!("--call wants one --kind"),
    }
}

fn judge_one(options: &Options, call: usize, trial: impl Trial) -> Result<bool> {
    let found = match options.event.context("--call wants --loss or --fault")? {
        Event::Fault(fault) => {
            format!("{:?}", judge_fault(&trial, (call, fault), options.server)?)
        }
        Event::PowerCut(loss) => {
            let cuts = PowerCuts::new(trial)?;
            if let Some(directory) = &options.keep {
                cuts.keep(call, loss, directory)?;
            }
            match options.server {
                true => format!("{:?}", cuts.serve(call, loss)?),
                false => format!("{:?}", cuts.read(call, loss, true)?),
            }
        }
    };
    println!("{found}");
    Ok(true)
}

fn long(options: &Options) -> Result<bool> {
    let account = campaign::run(&options.plan)?;
    let mut page = format!("{}\n{} failures\n", account.table(), account.failures.len());
    for failure in &account.failures {
        page += &format!("\n```\n{failure}\n```\n");
    }
    match &options.out {
        Some(path) => std::fs::write(path, page).with_context(|| path.display().to_string())?,
        None => print!("{page}"),
    }
    Ok(account.failures.is_empty())
}
