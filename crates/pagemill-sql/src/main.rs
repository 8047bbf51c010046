//! `pagemill-sql`: the program that `pagemill sql`, `worker`, `ls --ddl` and `export --workers` start, with the words of that command
//! line.
//!
//! Answers go to standard output, everything else to standard error, as with all of pagemill.
#![forbid(unsafe_code)]

#[cfg(feature = "workers")]
mod export_command;
#[cfg(feature = "workers")]
#[path = "worker.rs"]
mod worker;
#[cfg(not(feature = "workers"))]
#[path = "worker_missing.rs"]
mod worker;
#[cfg(not(feature = "workers"))]
use worker as export_command;

use std::io::{self, IsTerminal as _};
use std::process::ExitCode;

use anyhow::{Context as _, Result, ensure};
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use pagemill_arrow::FileFormat;
use pagemill_cli::cluster_arguments::{CommonArguments, DamageChoice, RecoveryArguments};
use pagemill_cli::export_arguments::ExportArguments;
use pagemill_cli::failure::{self, Completion};
use pagemill_cli::ls_arguments::LsArguments;
use pagemill_cli::output_paths::refuse_in_cluster;
use pagemill_cli::remedies::Remedies;
use pagemill_cli::session::Session as Opened;
use pagemill_cli::session::stats::Work;
use pagemill_cli::sql_arguments::{FormatChoice, NamedPath, SqlArguments};
use pagemill_cli::worker_arguments::WorkerArguments;
use pagemill_cluster::{Cluster, Database};
use pagemill_engine::list::{is_listed, relations};
use pagemill_engine::{Error as EngineError, OnDamage, PatternTexts, Patterns, ScanOrder};
use pagemill_format::Oid;
use pagemill_io::HostFiles;
use pagemill_sql::PLANNING_STACK;
use pagemill_sql::files::NamedFile;
use pagemill_sql::named_workers::NamedWorkers;
use pagemill_sql::output::OutputFormat;
use pagemill_sql::session::{Session, SessionOptions, StatementMemory, TextOrder};
use pagemill_sql::shell::{MOST_BYTES, Shell, ShellOptions, Target, told};
use tokio::runtime::Builder;

/// Under a limit of memory, blocks from this size on go back to the system once they are freed.
const LARGE_BLOCK: u32 = 64 << 10;

/// The part of pagemill that answers SQL
#[derive(Debug, Parser)]
#[command(name = "pagemill", version, max_term_width = 100)]
struct Arguments {
    /// Print nothing but errors on standard error: no notices, no progress
    #[arg(short, long, global = true)]
    quiet: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Sql(Box<SqlArguments>),
    Ls(Box<LsArguments>),
    Worker(Box<WorkerArguments>),
    Export(Box<ExportArguments>),
}

fn format_of(choice: FormatChoice) -> OutputFormat {
    match choice {
        // Files are no texts: whatever else is printed looks as it always does.
        FormatChoice::Parquet | FormatChoice::Arrow | FormatChoice::ArrowStream => {
            OutputFormat::Aligned
        }
        FormatChoice::Aligned => OutputFormat::Aligned,
        FormatChoice::Expanded => OutputFormat::Expanded,
        FormatChoice::Csv => OutputFormat::Csv,
        FormatChoice::Json => OutputFormat::Json,
        FormatChoice::Markdown => OutputFormat::Markdown,
    }
}

fn file_format_of(choice: FormatChoice) -> Option<FileFormat> {
    match choice {
        FormatChoice::Parquet => Some(FileFormat::Parquet),
        FormatChoice::Arrow => Some(FileFormat::Arrow),
        FormatChoice::ArrowStream => Some(FileFormat::ArrowStream),
        _ => None,
    }
}

fn main() -> ExitCode {
    pagemill_io::survive_file_size_limit();
    let matches = Arguments::command().try_get_matches();
    let parsed = matches.and_then(|matches| Arguments::from_arg_matches(&matches));
    let Arguments { quiet, command } = match parsed {
        Ok(parsed) => parsed,
        Err(error) => return failure::of_command_line(&error),
    };
    failure::set_quiet(quiet);
    failure::set_wording(|error, message| Remedies::READING.apply(error, message));
    failure::exit_code(on_planning_stack(|| match &command {
        Command::Sql(arguments) => run(arguments),
        Command::Ls(arguments) => definitions(arguments),
        Command::Worker(arguments) => worker::run(arguments),
        Command::Export(arguments) => exported(arguments),
    }))
}

/// On a thread whose stack is long enough for every statement, as the first one's is not.
fn on_planning_stack(run: impl FnOnce() -> Result<Completion> + Send) -> Result<Completion> {
    std::thread::scope(|scope| {
        let named = std::thread::Builder::new().name("statements".to_owned());
        let thread = named.stack_size(PLANNING_STACK).spawn_scoped(scope, run)?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// `export --workers`: tables to Parquet by several machines.
fn exported(arguments: &ExportArguments) -> Result<Completion> {
    let is_here = !arguments.on_workers.workers.is_empty();
    ensure!(is_here, "without --workers, `pagemill export` is done by the program pagemill");
    export_command::run(arguments)
}

/// `ls --ddl`: the definitions of tables, all of them where no pattern chooses.
fn definitions(arguments: &LsArguments) -> Result<Completion> {
    ensure!(arguments.ddl, "without --ddl, `pagemill ls` is done by the program pagemill");
    let opened = Opened::new(&arguments.common)?.recovered(&arguments.recovery)?;
    let name = arguments.dbname.as_deref().context("of which database? name it with -d")?;
    let database = opened.database(name)?;
    let chosen = chosen(&database, arguments)?;
    let jobs = usize::from(arguments.common.jobs);
    let scan = opened.scan_options(ScanOrder::default());
    let on_damage = on_damage(arguments.common.on_damage);
    let text_order = TextOrder::default();
    let options = SessionOptions { jobs, memory: None, scan, on_damage, text_order };
    let session = Session::open(&database, options).map_err(told)?;
    let runtime = Builder::new_multi_thread()
        .worker_threads(jobs)
        .thread_stack_size(PLANNING_STACK)
        .build()?;
    let mut text = Vec::new();
    pagemill_sql::ddl::write(&session, runtime.handle(), &chosen, &mut text).map_err(told)?;
    opened.print(&String::from_utf8(text)?)?;
    opened.finish(&Work::default());
    Ok(Completion::Done)
}

fn chosen(database: &Database, arguments: &LsArguments) -> Result<Vec<Oid>> {
    if arguments.tables.is_empty() {
        let found = relations(database, arguments.system)?;
        return Ok(found.iter().map(|entry| entry.relation.class.oid).collect());
    }
    let texts = PatternTexts { tables: &arguments.tables, ..PatternTexts::default() };
    let found = Patterns::parse(texts)?.select_among(database, is_listed)?;
    Ok(found.iter().map(|relation| relation.class.oid).collect())
}

fn on_damage(choice: DamageChoice) -> OnDamage {
    match choice {
        DamageChoice::Stop => OnDamage::Stop,
        DamageChoice::Skip => OnDamage::Skip,
    }
}

fn run(arguments: &SqlArguments) -> Result<Completion> {
    let opened = Opened::new(&arguments.common)?.recovered(&arguments.recovery)?;
    let database = opened.database(&arguments.database.dbname)?;
    let jobs = usize::from(arguments.common.jobs);
    if arguments.memory.is_some() {
        // Without it what is freed stays with the process, and a sort that spills takes twice of the limit.
        pagemill_sys::return_freed_memory(LARGE_BLOCK);
    }
    let options = SessionOptions {
        jobs,
        memory: arguments.memory.map(StatementMemory::new),
        scan: opened.scan_options(ScanOrder::default()),
        on_damage: on_damage(arguments.common.on_damage),
        text_order: arguments.text_order.into(),
    };
    refuse_same_names("--cluster", arguments.clusters.iter().map(|named| &named.name))?;
    refuse_same_names("--table", arguments.tables.iter().map(|named| &named.name))?;
    let others = arguments.clusters.iter().map(|named| arguments.beside(named));
    let others: Vec<(String, CommonArguments, RecoveryArguments)> = others.collect();
    let clusters = others.iter().map(|(name, common, recovery)| {
        Ok((name.clone(), Opened::new(common)?.recovered(recovery)?.cluster()?))
    });
    let clusters = clusters.collect::<Result<Vec<(String, Cluster)>>>()?;
    let session = Session::open(&database, options.clone()).map_err(told)?.beside(clusters.into());
    let files = arguments.tables.iter().map(file_of).collect::<Vec<_>>();
    let session = session.with_files(files.into());
    let directory = arguments.common.pgdata.as_deref().map_or_else(|| opened.directory(), Ok)?;
    let dividing = (&arguments.dividing).into();
    let workers = NamedWorkers::of(&arguments.on_workers, dividing, directory, database.cluster())?;
    let session = session.with_workers(workers);
    let runtime = Builder::new_multi_thread()
        .worker_threads(jobs)
        .thread_stack_size(PLANNING_STACK)
        .enable_all()
        .build()?;
    if let Some(path) = &arguments.output {
        refuse_in_cluster("-o", path, database.cluster())?;
    }
    let file = arguments.output.as_deref().map(Target::whole).transpose();
    let file = file.map_err(EngineError::Output)?;
    let shell_options = ShellOptions {
        session: options,
        style: format_of(arguments.format).into(),
        file_format: file_format_of(arguments.format),
        is_quiet: failure::is_quiet(),
        moment: moment(&opened, database.cluster()),
        out: file.clone(),
        variables: arguments.variables.clone(),
    };
    let mut shell = Shell::new(session, runtime.handle().clone(), shell_options);
    let answered = answer(&mut shell, arguments);
    if let (Some(file), Ok(Completion::Done)) = (&file, &answered) {
        ensure!(shell.has_its_answer(), "no statement gave rows for the file");
        file.finish().map_err(EngineError::Output)?;
    }
    opened.finish(&shell.work());
    // What a cancelled statement left behind is not waited for.
    runtime.shutdown_background();
    answered
}

fn file_of(named: &NamedPath) -> NamedFile {
    NamedFile { name: named.name.clone(), path: named.path.clone() }
}

fn refuse_same_names<'n>(flag: &str, names: impl Iterator<Item = &'n String>) -> Result<()> {
    let mut known: Vec<&String> = Vec::new();
    for name in names {
        ensure!(!known.contains(&name), "{flag}: \"{name}\" is given twice");
        known.push(name);
    }
    Ok(())
}

/// The moment that files are read at, in words.
fn moment(opened: &Opened<'_>, cluster: &Cluster) -> String {
    let fields = cluster.control().fields();
    let time = fields.iter().find(|(label, _)| *label == "Time of latest checkpoint");
    let time = time.map_or("unknown", |(_, value)| value.as_str());
    match opened.end_of_wal(cluster) {
        Some(end) => format!("{end}, the end of its WAL (the checkpoint before: {time} UTC)"),
        None => format!("some moment behind its last checkpoint ({time} UTC)"),
    }
}

/// Statements in the order: the argument, -c, -f; or else those of a terminal, or of what standard input is.
fn answer(shell: &mut Shell, arguments: &SqlArguments) -> Result<Completion> {
    let given = arguments.statement.iter().chain(&arguments.commands);
    for text in given {
        let completion = match text.trim_start().starts_with('\\') {
            true => shell.stream(text.as_bytes()),
            false => shell.once(text),
        };
        if completion.map_err(told)? == Completion::Incomplete {
            return Ok(Completion::Incomplete);
        }
    }
    let mut completion = Completion::Done;
    for file in &arguments.files {
        completion = match file.as_os_str() == "-" {
            true => shell.stream(io::stdin().lock()).map_err(told)?,
            false => {
                let text = HostFiles::real().read_file(file, MOST_BYTES)?;
                let read = shell.stream(&text[..]).map_err(told);
                read.with_context(|| file.display().to_string())?
            }
        };
    }
    let is_shell = arguments.statement.is_none()
        && arguments.commands.is_empty()
        && arguments.files.is_empty();
    match is_shell {
        true if io::stdin().is_terminal() => shell.interact().map_err(told),
        true => shell.stream(io::stdin().lock()).map_err(told),
        false => Ok(completion),
    }
}
