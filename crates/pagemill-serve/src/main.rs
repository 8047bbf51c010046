//! `pagemill-serve`: the program that `pagemill serve` starts, with the words of that command line.
//!
//! ```text
//!   main thread: waits for a signal, or for the command of --exec
//!   one thread speaks with clients; as many as --jobs compute
//! ```
#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::path::Path;
use std::process::{ExitCode, ExitStatus};
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use pagemill_cli::cluster_arguments::DamageChoice;
use pagemill_cli::failure::{self, Completion, UsageError};
use pagemill_cli::remedies::Remedies;
use pagemill_cli::serve_arguments::ServeArguments;
use pagemill_cli::session::Session as Opened;
use pagemill_cluster::Cluster;
use pagemill_engine::{OnDamage, ScanOrder};
use pagemill_serve::access::Access;
use pagemill_serve::endpoints::{Endpoints, Host};
use pagemill_serve::server::{Network, Server, ServerOptions};
use pagemill_serve::tls::Tls;
use pagemill_sql::roles::BOOTSTRAP_ROLE;
use pagemill_sql::session::{Session, SessionOptions};
use pagemill_sql::shell::told;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};

/// Under a limit of memory, blocks from this size on go back to the system once they are freed.
const LARGE_BLOCK: u32 = 64 << 10;
/// The port of a private socket.
const PRIVATE_PORT: u16 = 5432;

/// The part of pagemill that answers PostgreSQL's clients
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
    Serve(Box<ServeArguments>),
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
    let Command::Serve(arguments) = command;
    match run(&arguments) {
        Ok(Some(status)) => ExitCode::from(exit_status(status)),
        Ok(None) => failure::exit_code(Ok(Completion::Done)),
        Err(error) => failure::exit_code(Err(error)),
    }
}

/// A command's exit status as a shell tells it.
fn exit_status(status: ExitStatus) -> u8 {
    use std::os::unix::process::ExitStatusExt as _;
    let signal = status.signal().map(|signal| 128 + signal);
    let code = status.code().or(signal).unwrap_or(1);
    u8::try_from(code).unwrap_or(1)
}

fn run(arguments: &ServeArguments) -> Result<Option<ExitStatus>> {
    let opened = Opened::new(&arguments.common)?.recovered(&arguments.recovery);
    let cluster = opened.cluster()?;
    let jobs = usize::from(arguments.common.jobs);
    if arguments.memory.is_some() {
        // Without it what is freed stays with the process, and a sort that spills takes twice of the limit.
        pagemill_sys::return_freed_memory(LARGE_BLOCK);
    }
    let session = SessionOptions {
        jobs,
        memory: arguments.memory,
        scan: opened.scan_options(ScanOrder::default()),
        on_damage: match arguments.common.on_damage {
            DamageChoice::Stop => OnDamage::Stop,
            DamageChoice::Skip => OnDamage::Skip,
        },
    };
    let hosts = hosts(arguments)?;
    let options = ServerOptions {
        session,
        most_connections: usize::try_from(arguments.max_connections)?,
        authentication_timeout: Duration::from_secs(arguments.authentication_timeout.into()),
        network: network(&cluster, arguments)?,
        is_verbose: arguments.common.verbose,
    };
    let compute = Builder::new_multi_thread().worker_threads(jobs).enable_time().build()?;
    let server = Server::new(cluster.clone(), options, compute.handle().clone());
    let speaking = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let ended = match arguments.exec.is_empty() {
        true => until_signal(&speaking, server, (arguments, &hosts)).map(|()| None),
        false => {
            let user = superuser(&cluster, session)?;
            with_command(&speaking, server, (&arguments.exec, &user)).map(Some)
        }
    };
    speaking.shutdown_background();
    // What a cancelled statement left behind is not waited for.
    compute.shutdown_background();
    ended
}

/// Where to listen on TCP.
fn hosts(arguments: &ServeArguments) -> Result<Vec<Host>> {
    let resolve = |name: &String| Host::resolve(name.trim(), arguments.port);
    let hosts: Vec<Host> = arguments.listen.iter().map(resolve).collect::<Result<_, _>>()?;
    match hosts.iter().find(|host| !host.is_loopback()) {
        Some(host) if arguments.tls_cert.is_none() => {
            let name = host.name();
            let message = format!(
                "--listen {name}: answers would go over the network in the clear: give a certificate by --tls-cert and \
                 its key by --tls-key, or listen at localhost only"
            );
            Err(UsageError(message).into())
        }
        _ => Ok(hosts),
    }
}

/// How clients of TCP are let in, where there are any.
fn network(cluster: &Cluster, arguments: &ServeArguments) -> Result<Option<Network>> {
    if arguments.listen.is_empty() {
        return Ok(None);
    }
    let tls = arguments.tls_cert.as_ref().zip(arguments.tls_key.as_ref());
    let tls = tls.map(|(certificate, key)| Tls::load(certificate, key)).transpose()?;
    let access = Access::read(cluster).map_err(told)?;
    Ok(Some(match tls {
        Some(tls) => Network::with_tls(access, tls, arguments.allow_plaintext),
        None => Network::within_machine(access),
    }))
}

/// Answers clients until SIGINT or SIGTERM comes.
fn until_signal(
    speaking: &Runtime,
    server: std::sync::Arc<Server>,
    (arguments, hosts): (&ServeArguments, &[Host]),
) -> Result<()> {
    speaking.block_on(async {
        let (mut interrupt, mut terminate) =
            (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        let mut endpoints = Endpoints::on_socket(&arguments.socket_dir, arguments.port)?;
        hosts.iter().try_for_each(|host| endpoints.listen(host))?;
        for place in endpoints.places() {
            failure::say(format!("clients are answered at {place}"));
        }
        server
            .run(endpoints, async {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
            })
            .await;
        Ok(())
    })
}

/// Answers clients on a socket of our own until a command ends.
fn with_command(
    speaking: &Runtime,
    server: std::sync::Arc<Server>,
    (words, user): (&[OsString], &str),
) -> Result<ExitStatus> {
    let directory = tempfile::Builder::new().prefix("pagemill-").tempdir()?;
    speaking.block_on(async {
        // The key that interrupts is the command's: it reads from the terminal.
        let _interrupt = signal(SignalKind::interrupt())?;
        let endpoints = Endpoints::on_socket(directory.path(), PRIVATE_PORT)?;
        let (told, ended) = tokio::sync::oneshot::channel();
        let mut command = command(words, directory.path(), user);
        let name = words[0].to_string_lossy().into_owned();
        let mut child = command.spawn().with_context(|| name.clone())?;
        std::thread::spawn(move || {
            let _ = told.send(child.wait());
        });
        let mut status = None;
        server.run(endpoints, async { status = ended.await.ok() }).await;
        let status = status.context("the command was not waited for")?;
        status.with_context(|| name)
    })
}

fn command(words: &[OsString], directory: &Path, user: &str) -> std::process::Command {
    let mut command = std::process::Command::new(&words[0]);
    command.args(&words[1..]).env("PGHOST", directory).env("PGPORT", PRIVATE_PORT.to_string());
    command.env("PGUSER", user).env_remove("PGHOSTADDR").env_remove("PGSERVICE");
    if std::env::var_os("PGDATABASE").is_none() {
        command.env("PGDATABASE", "postgres");
    }
    command
}

/// The name of the role that initdb made.
fn superuser(cluster: &Cluster, options: SessionOptions) -> Result<String> {
    let rows = cluster.databases()?;
    let row = rows.iter().find(|row| row.allows_connections && !row.is_invalid());
    let name =
        String::from_utf8_lossy(&row.context("no database allows connections")?.name).into_owned();
    let session = Session::open(&cluster.database(&name)?, options).map_err(told)?;
    let roles = session.catalog().roles().map_err(told)?;
    let first = roles.into_iter().find(|role| role.oid == BOOTSTRAP_ROLE && role.can_login);
    Ok(first.context("the role that initdb made cannot log in")?.name)
}
