//! Many statements for one opening of a database: what `score/score.py` asks.
//!
//! Statements come on standard input, each ended by a zero byte; for each goes out an `A` and the answer as CSV, or an
//! `E` and the message, ended by a zero byte. A panic is an answer too (`P`): the score counts it and goes on.
#![forbid(unsafe_code)]

use std::io::{self, Read as _, Write as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use anyhow::Result;
use clap::Parser;
use pagemill_cli::cluster_arguments::{CommonArguments, DatabaseArgument};
use pagemill_cli::session::Session as Opened;
use pagemill_engine::{OnDamage, ScanOrder};
use pagemill_sql::output::{Output, OutputFormat};
use pagemill_sql::session::{Session, SessionOptions, TextOrder};

/// How long a statement may take.
const LIMIT: Duration = Duration::from_secs(30);

#[derive(Debug, Parser)]
struct Arguments {
    #[command(flatten)]
    common: CommonArguments,
    #[command(flatten)]
    database: DatabaseArgument,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let opened = Opened::new(&arguments.common)?;
    let database = opened.database(&arguments.database.dbname)?;
    let jobs = usize::from(arguments.common.jobs);
    let scan = opened.scan_options(ScanOrder::default());
    let options = SessionOptions {
        jobs,
        memory: None,
        scan,
        on_damage: OnDamage::Stop,
        text_order: TextOrder::default(),
    };
    let session = Session::open(&database, options)?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(jobs).enable_time().build()?;
    let mut input = Vec::new();
    io::stdin().read_to_end(&mut input)?;
    let mut out = io::stdout().lock();
    for statement in String::from_utf8(input)?.split_terminator('\0') {
        let answer = catch_unwind(AssertUnwindSafe(|| answer(&runtime, &session, statement)));
        match answer {
            Ok(Ok(bytes)) => out.write_all(&[b"A", &*bytes].concat())?,
            Ok(Err(error)) => write!(out, "E{error:#}")?,
            Err(_) => write!(out, "Ppanic")?,
        }
        out.write_all(b"\0")?;
        out.flush()?;
    }
    Ok(())
}

/// The answer as CSV.
fn answer(runtime: &tokio::runtime::Runtime, session: &Session, text: &str) -> Result<Vec<u8>> {
    let mut output = Output::new(OutputFormat::Csv, Vec::new());
    for statement in Session::parse(text)? {
        let run = async { tokio::time::timeout(LIMIT, session.run(&statement, &mut output)).await };
        runtime.block_on(run)??;
    }
    Ok(output.into_inner())
}
