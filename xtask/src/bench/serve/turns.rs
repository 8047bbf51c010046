//! One row: both servers in turns, asked by the same client.
//!
//! Answers are compared first. Who begins changes with each turn, and while one is asked the other waits.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use pagemill_testkit::PgInstall;

use super::idle_client::IdleClient;
use super::options::Options;
use super::rows::{Row, Work};
use super::serving::{self, Serving};
use crate::bench::figures::verdict;
use crate::bench::output_of;
use crate::bench::server::Server;
use crate::bench::statistics::median;
use crate::bench::twin_clusters::TwinClusters;

/// Sessions that wait, of which one's share is told.
const IDLE: usize = 200;
/// The load of the long row: lookups, and every so often an aggregate, a sort and a join that spill.
const MIXED: &str = "\\set aid random(1, :accounts)
\\set dice random(1, 200)
\\if :dice = 1
select bid, count(*), sum(abalance) from pgbench_accounts group by bid order by bid;
\\elif :dice = 2
select aid from pgbench_accounts order by filler, aid desc limit 10 offset :aid;
\\elif :dice = 3
select count(*) from pgbench_accounts a join pgbench_accounts b on a.aid = b.aid + 1;
\\else
select abalance from pgbench_accounts where aid = :aid;
\\endif
";
const SOAK_CLIENTS: usize = 10;
const SOAK_MEMORY: &str = "512MB";
/// From here on a long load is held against its own beginning: pools are filled.
const WARM: Duration = Duration::from_secs(120);

/// One row with everything that was found out about it.
pub(super) struct Measured {
    pub(super) row: Row,
    /// Of the server, where it takes part.
    pub(super) theirs: Vec<f64>,
    pub(super) ours: Vec<f64>,
    pub(super) fault: Option<String>,
}

impl Measured {
    /// What is held against the target: ratios turn by turn, or what ours came to.
    pub(super) fn figures(&self) -> Vec<f64> {
        let pairs = self.ours.iter().zip(&self.theirs);
        match self.row.work {
            Work::Lookups { .. } => pairs.map(|(ours, theirs)| ours / theirs).collect(),
            Work::Copy => pairs.map(|(ours, theirs)| theirs / ours).collect(),
            _ => self.ours.clone(),
        }
    }

    pub(super) fn verdict(&self) -> &'static str {
        let is_least = self.row.work.is_least();
        match (&self.fault, self.row.target) {
            (Some(_), _) => "failed",
            (None, None) => "—",
            (None, Some(target)) => verdict(&self.figures(), |figure| match is_least {
                true => figure >= target,
                false => figure <= target,
            }),
        }
    }
}

/// Everything a turn needs to know.
pub(super) struct Stand<'a> {
    pub(super) cluster: &'a TwinClusters,
    pub(super) server: &'a Server<'a>,
    pub(super) program: &'a Path,
    pub(super) options: &'a Options,
}

impl Stand<'_> {
    /// Measures one row; a failure is part of the result.
    pub(super) fn measure(&self, row: &Row) -> Measured {
        let mut measured =
            Measured { row: *row, theirs: Vec::new(), ours: Vec::new(), fault: None };
        if let Err(error) = self.take_turns(&mut measured) {
            eprintln!("{}: {error:#}", row.id);
            let fault = self.cluster.without_places(&format!("{error:#}"));
            measured.fault = Some(fault.trim().replace('\n', " "));
        }
        measured
    }

    fn take_turns(&self, measured: &mut Measured) -> Result<()> {
        match measured.row.work {
            Work::Lookups { clients, mode } => {
                let seconds = self.options.seconds.to_string();
                let flags = ["-S", "-M", mode, "-T", &seconds];
                self.in_turns(measured, || self.pgbench(clients, &flags), statements_a_second)
            }
            Work::Copy => {
                let copy = || self.psql("copy pgbench_accounts to stdout");
                self.in_turns(measured, copy, milliseconds)
            }
            Work::FirstAnswer => self.first_answers(measured),
            Work::IdleSession => self.idle_sessions(measured),
            Work::Soak => self.soak(measured),
        }
    }

    /// Both servers in turns, after each has answered once and the answers were compared.
    fn in_turns(
        &self,
        measured: &mut Measured,
        client: impl Fn() -> Result<Command>,
        figure: impl Fn(Command) -> Result<f64>,
    ) -> Result<()> {
        let serving = self.serving(&[])?;
        self.compare(&serving)?;
        for turn in 0..=self.options.run.repetitions {
            let (mut ours, mut theirs) = (client()?, client()?);
            serving.connect(&mut ours);
            self.server.connect(&mut theirs);
            let (ours, theirs) = match turn % 2 {
                0 => (figure(ours)?, figure(theirs)?),
                _ => {
                    let theirs = figure(theirs)?;
                    (figure(ours)?, theirs)
                }
            };
            // The first turn fills caches.
            if turn > 0 {
                measured.ours.push(ours);
                measured.theirs.push(theirs);
            }
        }
        Ok(())
    }

    fn serving(&self, flags: &[&str]) -> Result<Serving> {
        let sockets = self.cluster.scratch()?;
        Serving::start(self.program, &self.cluster.stopped.data(), &sockets, flags)
    }

    /// The same rows come from both.
    fn compare(&self, serving: &Serving) -> Result<()> {
        let query = "select count(*), sum(aid), min(bid), max(filler) from pgbench_accounts \
                     union all select aid, bid, abalance, filler from pgbench_accounts where aid in (1, 777) order by 1";
        let answer = |connect: &dyn Fn(&mut Command)| {
            let mut psql = self.psql(query)?;
            connect(&mut psql);
            output_of(psql.stdout(Stdio::piped()))
        };
        let ours = answer(&|psql| serving.connect(psql))?;
        let theirs = answer(&|psql| self.server.connect(psql))?;
        ensure!(ours == theirs, "the server's answer: {theirs}; ours: {ours}");
        Ok(())
    }

    fn pgbench(&self, clients: usize, flags: &[&str]) -> Result<Command> {
        let mut command = Command::new(client_program("pgbench")?);
        command.args(["-n", "-c", &clients.to_string(), "-j", &clients.min(2).to_string()]);
        command.args(flags);
        Ok(command)
    }

    fn psql(&self, statement: &str) -> Result<Command> {
        let mut command = Command::new(client_program("psql")?);
        command.args(["-XAtq", "-v", "ON_ERROR_STOP=1", "-c", statement]);
        Ok(command)
    }

    /// The whole process, its client included.
    fn first_answers(&self, measured: &mut Measured) -> Result<()> {
        for turn in 0..=self.options.run.repetitions {
            let mut command = serving::command(self.program, &self.cluster.stopped.data());
            command.arg("--exec").arg(client_program("psql")?);
            command.args(["-XAtc", "select abalance from pgbench_accounts where aid = 1"]);
            command.arg("postgres");
            let time = milliseconds(command)?;
            if turn > 0 {
                measured.ours.push(time);
            }
        }
        Ok(())
    }

    fn idle_sessions(&self, measured: &mut Measured) -> Result<()> {
        let statement = "select abalance from pgbench_accounts where aid = 1";
        for _ in 0..self.options.run.repetitions {
            let serving = self.serving(&[])?;
            let _first = IdleClient::asking(&serving.socket(), statement)?;
            let before = serving.resident()?;
            let clients = (0..IDLE).map(|_| IdleClient::asking(&serving.socket(), statement));
            let _clients: Vec<IdleClient> = clients.collect::<Result<_>>()?;
            measured.ours.push((serving.resident()? - before) / IDLE as f64);
        }
        Ok(())
    }

    fn soak(&self, measured: &mut Measured) -> Result<()> {
        let script = self.cluster.scratch()?.join("mixed.sql");
        let serving = self.serving(&["--memory", SOAK_MEMORY])?;
        std::fs::write(&script, MIXED)?;
        let time = Duration::from_secs(60 * self.options.soak_minutes);
        let accounts = format!("accounts={}", self.options.thousands * 1000);
        let seconds = time.as_secs().to_string();
        let mut pgbench = self.pgbench(SOAK_CLIENTS, &["-T", &seconds, "-D", &accounts, "-f"])?;
        serving.connect(pgbench.arg(&script).stdout(Stdio::null()));
        let (begin, mut samples) = (Instant::now(), Vec::new());
        let mut running = pgbench.spawn()?;
        let status = loop {
            samples.push((begin.elapsed(), serving.resident()?));
            std::thread::sleep(Duration::from_secs(1));
            if let Some(status) = running.try_wait()? {
                break status;
            }
        };
        ensure!(status.success(), "pgbench: {status}");
        let minute = Duration::from_secs(60);
        let within = |from: Duration, to: Duration| -> Option<f64> {
            let found = samples.iter().filter(|(at, _)| *at >= from && *at < to);
            median(&found.map(|(_, resident)| *resident).collect::<Vec<_>>())
        };
        let early = within(WARM, WARM + minute).context("it ended before it was warm")?;
        let late = within(time.saturating_sub(minute), time).context("no samples at the end")?;
        measured.ours.push(late / early);
        Ok(())
    }
}

/// A program of any installation that has it: the servers of the matrix have no clients.
fn client_program(name: &str) -> Result<PathBuf> {
    let mut programs = PgInstall::all().into_iter().map(|install| install.program(name));
    programs.find(|program| program.is_file()).with_context(|| format!("no {name} is installed"))
}

/// What pgbench says of its statements a second.
fn statements_a_second(mut pgbench: Command) -> Result<f64> {
    let said = output_of(&mut pgbench)?;
    let rate = said.lines().find_map(|line| line.strip_prefix("tps = "));
    let rate = rate.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
    rate.with_context(|| format!("pgbench said no rate: {said}"))
}

/// A whole process whose output is left out.
fn milliseconds(mut command: Command) -> Result<f64> {
    let begin = Instant::now();
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status()?;
    ensure!(status.success(), "{}: {status}", crate::bench::shown(&command));
    Ok(begin.elapsed().as_secs_f64() * 1000.0)
}
