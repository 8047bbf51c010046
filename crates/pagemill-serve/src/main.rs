//! `pagemill-serve`: the program that `pagemill serve` starts, with the words of that command line.
//!
//! ```text
//!   main thread: waits for a signal, or for the command of --exec; SIGHUP opens all anew beside
//!   one thread speaks with clients; as many as --jobs compute
//! ```
#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::path::Path;
use std::process::{ExitCode, ExitStatus};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use pagemill_cli::failure::{self, Completion, UsageError};
use pagemill_cli::remedies::Remedies;
use pagemill_cli::serve_arguments::ServeArguments;
use pagemill_cluster::Cluster;
use pagemill_serve::endpoints::{Endpoints, Host};
use pagemill_serve::opening::Opener;
use pagemill_serve::served_cluster::ServedCluster;
use pagemill_serve::server::{Server, ServerOptions};
use pagemill_serve::service_manager::ServiceManager;
use pagemill_serve::status::{StatusListener, StatusPlace};
use pagemill_sql::PLANNING_STACK;
use pagemill_sql::catalog::Catalog;
use pagemill_sql::roles::BOOTSTRAP_ROLE;
use pagemill_sql::shell::told;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};

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
    // What is opened anew needs them until the process ends.
    match run(Box::leak(arguments)) {
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

fn run(arguments: &'static ServeArguments) -> Result<Option<ExitStatus>> {
    if arguments.memory.is_some() {
        // Without it what is freed stays with the process, and a sort that spills takes twice of the limit.
        pagemill_sys::return_freed_memory(LARGE_BLOCK);
    }
    let places = Places::of(arguments)?;
    let opener = Arc::new(Opener::new(arguments)?);
    let opened = opener.open()?;
    let first = opened.clusters().first().cloned();
    let jobs = usize::from(arguments.common.jobs);
    // One more thread speaks with workers while the others compute.
    let threads = jobs + usize::from(!arguments.on_workers.workers.is_empty());
    let compute = Builder::new_multi_thread()
        .worker_threads(threads)
        .thread_stack_size(PLANNING_STACK)
        .enable_all()
        .build()?;
    let server = Server::new(opened, server_options(arguments)?, compute.handle().clone());
    let speaking = Builder::new_multi_thread()
        .worker_threads(1)
        .thread_stack_size(PLANNING_STACK)
        .enable_all()
        .build()?;
    let ended = match (first, arguments.exec.is_empty()) {
        (Some(first), false) => {
            let place = Place::of(&first, server.opened().clusters().len() > 1)?;
            with_command(&speaking, server, &arguments.exec, &place).map(Some)
        }
        _ => until_signal(&speaking, server, &opener, &places).map(|()| None),
    };
    speaking.shutdown_background();
    // What a cancelled statement left behind is not waited for.
    compute.shutdown_background();
    opener.close();
    ended
}

fn server_options(arguments: &ServeArguments) -> Result<ServerOptions> {
    Ok(ServerOptions {
        most_connections: usize::try_from(arguments.max_connections)?,
        authentication_timeout: Duration::from_secs(arguments.authentication_timeout.into()),
        // Without a certificate only this machine can connect.
        allows_plaintext: arguments.tls_cert.is_none() || arguments.allow_plaintext,
        is_verbose: arguments.common.verbose,
    })
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

/// Where to listen.
struct Places<'a> {
    socket_directory: &'a Path,
    /// The socket's, and that of the hosts.
    port: u16,
    hosts: Vec<Host>,
    status: Option<StatusPlace>,
}

impl<'a> Places<'a> {
    fn of(arguments: &'a ServeArguments) -> Result<Self> {
        let (hosts, status) = (hosts(arguments)?, status_place(arguments)?);
        let (socket_directory, port) = (arguments.socket_dir.as_path(), arguments.port);
        Ok(Self { socket_directory, port, hosts, status })
    }
}

/// Where the server's state is told.
fn status_place(arguments: &ServeArguments) -> Result<Option<StatusPlace>> {
    let Some(given) = &arguments.status else { return Ok(None) };
    let place = StatusPlace::resolve(given)?;
    if place.is_loopback() || arguments.allow_remote_status {
        return Ok(Some(place));
    }
    let message = format!(
        "--status {given}: other machines could ask for the server's state: allow it by --allow-remote-status, or tell \
         it at localhost only"
    );
    Err(UsageError(message).into())
}

/// Answers clients until SIGINT or SIGTERM comes; SIGHUP opens all anew.
fn until_signal(
    speaking: &Runtime,
    server: Arc<Server>,
    opener: &Arc<Opener>,
    places: &Places<'_>,
) -> Result<()> {
    speaking.block_on(async {
        let (mut interrupt, mut terminate) =
            (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        let hangup = signal(SignalKind::hangup())?;
        let mut endpoints = Endpoints::on_socket(places.socket_directory, places.port)?;
        places.hosts.iter().try_for_each(|host| endpoints.listen(host))?;
        let places_told = endpoints.places();
        for place in &places_told {
            failure::say(format!("clients are answered at {place}"));
        }
        if let Some(place) = &places.status {
            let listener = StatusListener::bind(place).await?;
            failure::say(format!("the server's state is told at http://{}/", listener.address()?));
            tokio::spawn(listener.run(server.clone()));
        }
        let manager = Arc::new(ServiceManager::of_environment());
        manager.ready(&format!("clients are answered at {}", places_told.join(", ")));
        tokio::spawn(reopened_at(hangup, server.clone(), opener.clone(), manager.clone()));
        let end = async {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            manager.stopping();
        };
        server.run(endpoints, end).await;
        Ok(())
    })
}

/// Opens all anew whenever the signal comes, one time after the other.
async fn reopened_at(
    mut hangup: Signal,
    server: Arc<Server>,
    opener: Arc<Opener>,
    manager: Arc<ServiceManager>,
) {
    while hangup.recv().await.is_some() {
        manager.reloading();
        let opener = opener.clone();
        let told = match tokio::task::spawn_blocking(move || opener.open()).await {
            Ok(Ok(opened)) => {
                server.replace(opened);
                let told = "the data directories were opened anew";
                failure::say(told);
                told.to_owned()
            }
            Ok(Err(error)) => not_anew(&server, &failure::text_of(&error)),
            Err(_) => not_anew(&server, "a defect of pagemill, please report it"),
        };
        manager.ready(&told);
    }
}

/// Says why nothing was opened anew.
fn not_anew(server: &Server, why: &str) -> String {
    server.not_replaced(why);
    let told = format!("what was opened before is served on: {why}");
    failure::complain(&told);
    told
}

/// Answers clients on a socket of our own until a command ends.
fn with_command(
    speaking: &Runtime,
    server: Arc<Server>,
    words: &[OsString],
    place: &Place,
) -> Result<ExitStatus> {
    let directory = tempfile::Builder::new().prefix("pagemill-").tempdir()?;
    speaking.block_on(async {
        // The key that interrupts is the command's: it reads from the terminal.
        let _interrupt = signal(SignalKind::interrupt())?;
        let endpoints = Endpoints::on_socket(directory.path(), PRIVATE_PORT)?;
        let (told, ended) = tokio::sync::oneshot::channel();
        let mut command = command(words, directory.path(), place);
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

/// As whom, and where, a command connects that says neither.
struct Place {
    user: String,
    database: String,
}

impl Place {
    /// In the database that there always is, as the role that initdb made.
    fn of(cluster: &ServedCluster, is_one_of_several: bool) -> Result<Self> {
        let database = match is_one_of_several {
            true => format!("{}.postgres", cluster.name()),
            false => "postgres".to_owned(),
        };
        Ok(Self { user: superuser(cluster.cluster())?, database })
    }
}

fn command(words: &[OsString], directory: &Path, place: &Place) -> std::process::Command {
    let mut command = std::process::Command::new(&words[0]);
    command.args(&words[1..]).env("PGHOST", directory).env("PGPORT", PRIVATE_PORT.to_string());
    command.env("PGUSER", &place.user).env_remove("PGHOSTADDR").env_remove("PGSERVICE");
    if std::env::var_os("PGDATABASE").is_none() {
        command.env("PGDATABASE", &place.database);
    }
    command
}

/// The name of the role that initdb made.
fn superuser(cluster: &Cluster) -> Result<String> {
    let rows = cluster.databases()?;
    let row = rows.iter().find(|row| row.allows_connections && !row.is_invalid());
    let name =
        String::from_utf8_lossy(&row.context("no database allows connections")?.name).into_owned();
    let catalog = Catalog::read(&cluster.database(&name)?).map_err(told)?;
    let roles = catalog.roles().map_err(told)?;
    let first = roles.into_iter().find(|role| role.oid == BOOTSTRAP_ROLE && role.can_login);
    Ok(first.context("the role that initdb made cannot log in")?.name)
}
