//! The way in: who it is, which database, and what it is told first.
//!
//! Source: `ProcessStartupPacket`, `InitPostgres`, `process_startup_options` and `BeginReportingGUCOptions`, PostgreSQL 18.

use std::sync::Arc;

use pagemill_cluster::changed_date_setting;
use pagemill_sql::roles::Role;
use pagemill_sql::session::{ServerFacts, Session};
use pagemill_sql::{SqlState, StatementError};

use super::authentication::{Login, authenticate};
use super::channel::Channel;
use super::extended::Extended;
use super::facts::{Connected, facts};
use super::functions::OpenObjects;
use super::view::{SessionView, ViewedSession, followed};
use super::{Connection, report};
use crate::activity::Owner;
use crate::command::SetSetting;
use crate::error::{Error, Result};
use crate::opened::{Meant, Opened};
use crate::protocol::{ResponseBuffer, Severity, Startup, TransactionStatus};
use crate::registry::Registration;
use crate::served_cluster::{ServedCluster, role};
use crate::server::Server;
use crate::settings::{Origin, Settings};

/// A client that may ask statements.
pub(super) struct Entered {
    viewed: ViewedSession,
    registration: Registration,
    settings: Settings,
    out: ResponseBuffer,
}

impl Entered {
    pub(super) fn connection(self, server: Arc<Server>, channel: Channel) -> Connection {
        let Self { viewed, registration, settings, out } = self;
        let Channel { reader, writer, .. } = channel;
        let status = TransactionStatus::Idle;
        let (extended, objects) = (Extended::default(), OpenObjects::default());
        Connection {
            server,
            viewed,
            registration,
            settings,
            status,
            reader,
            writer,
            out,
            extended,
            objects,
        }
    }
}

/// Lets a client in that asks for a session.
pub(super) async fn enter(
    server: &Arc<Server>,
    channel: &mut Channel,
    startup: &Startup,
) -> Result<Entered> {
    let Some(user) = startup.parameter("user").filter(|user| !user.is_empty()) else {
        let message = "no PostgreSQL user name specified in startup packet";
        return Err(StatementError::new(SqlState("28000"), message).into());
    };
    if startup.parameter("replication").is_some_and(|value| value != "false" && value != "0") {
        return Err(StatementError::unsupported("replication").into());
    }
    let mut out = ResponseBuffer::default();
    if startup.asks_too_much() {
        out.negotiate(startup.spoken_minor(), &startup.protocol_options);
    }
    let asked = startup.parameter("database").filter(|name| !name.is_empty()).unwrap_or(user);
    let opened = channel.opened.clone();
    let (cluster, meant) = opened.meant(asked)?;
    authenticate(server, cluster, channel, Login { user, out: &mut out }).await?;
    let Some(registration) = server.registry.register(startup.key_bytes())? else {
        let message = "sorry, too many clients already";
        return Err(StatementError::new(SqlState("53300"), message).into());
    };
    let Meant::Database(name) = meant else {
        let is_local = channel.address.is_none();
        return Err(unnamed(server, opened.clone(), asked, is_local).await.into());
    };
    cluster.check_connect(&server.compute).await?;
    let session = cluster.database(name, asked, &server.compute).await?;
    if channel.address.is_some() {
        check_connections(&session)?;
    }
    let role = role(&session, user)?;
    let session = cluster.database_of(session, user, &server.compute).await?;
    session.check_connect().map_err(|error| error.report())?;
    registration.settle(cluster.name(), &role, session.catalog().database().row())?;
    let owner = Owner {
        user: user.to_owned(),
        database: asked.to_owned(),
        address: channel.address,
        tls: channel.tls,
    };
    registration.act(|activity| activity.owner = owner);
    let connected = Connected {
        process: registration.process,
        client: channel.address,
        server: channel.server_address,
        // Over TCP all have proved it so.
        identity: channel.address.map(|_| format!("scram-sha-256:{user}")),
        cluster: cluster.name(),
    };
    let facts = facts(server, &channel.opened, &connected);
    server.metrics.connections.add(1);
    out.authentication(0, &[]);
    let own = role_settings(server, &session, &role).await?;
    let client = Client { startup, user, own, facts };
    let (settings, viewed) = settle(cluster, session, client, &mut out)?;
    out.key(registration.process, &registration.key);
    out.ready(TransactionStatus::Idle);
    Ok(Entered { viewed, registration, settings, out })
}

/// What a client is told that names none of several clusters.
async fn unnamed(
    server: &Server,
    opened: Arc<Opened>,
    asked: &str,
    is_local: bool,
) -> StatementError {
    let name = asked.to_owned();
    let told = server.compute.spawn_blocking(move || opened.unnamed(&name, is_local)).await;
    told.unwrap_or_else(|_| super::defect())
}

/// Settings of files, databases and roles that sessions begin with here, beside those of applications.
const FOLLOWED: [&str; 9] = [
    "bytea_output",
    "default_transaction_isolation",
    "datestyle",
    "extra_float_digits",
    "intervalstyle",
    "row_security",
    "search_path",
    "statement_timeout",
    "timezone",
];

/// What the settings of files, databases and roles say that is followed here.
async fn role_settings(
    server: &Server,
    session: &Arc<Session>,
    role: &Role,
) -> Result<Vec<(String, String)>, StatementError> {
    let (session, role) = (session.clone(), role.oid);
    let read = move || session.catalog().database().settings_of_role(role);
    let read = server.compute.spawn_blocking(read).await.map_err(|_| super::defect())?;
    let mut read = read.map_err(|error| pagemill_sql::Error::from(error).report())?;
    let is_shown = |name: &str| {
        name.contains('.')
            || FOLLOWED.contains(&name)
            || Settings::changes_no_answer(name)
            || Settings::is_of_files(name)
    };
    read.retain(|(name, _)| is_shown(name));
    Ok(read)
}

/// Who connects, and with what.
struct Client<'c> {
    startup: &'c Startup,
    user: &'c str,
    /// Settings that it has before it sets any.
    own: Vec<(String, String)>,
    facts: Arc<ServerFacts>,
}

/// The settings that a session begins with, of which its client is told.
fn settle(
    cluster: &ServedCluster,
    session: Arc<Session>,
    Client { startup, user, own, facts }: Client<'_>,
    out: &mut ResponseBuffer,
) -> Result<(Settings, ViewedSession)> {
    let configured_path = session.catalog().database().search_path_setting();
    let configured_path =
        configured_path.map_err(|error| pagemill_sql::Error::from(error).report())?;
    let mut settings = Settings::new(Origin {
        version: &cluster.version(),
        major: cluster.major(),
        user,
        is_superuser: session.is_superuser(),
        // Those of a user for whom nothing is set; what is set is among its own.
        search_path: "\"$user\", public",
        time_zone: "GMT",
    });
    for (name, value) in own {
        if Settings::is_of_files(&name) {
            settings.take_of_files(&name, value);
            continue;
        }
        let set = SetSetting { name: name.clone(), value: Some(value), is_local: false };
        match followed(&session, set).and_then(|set| settings.set(&set)) {
            Ok(()) => settings.keep_as_default(&name),
            // A value that a server of its own version may have taken must not keep its clients away.
            Err(error) => report(out, Severity::Warning, &error),
        }
    }
    apply(&mut settings, &session, startup, out)?;
    for (name, value) in settings.reported() {
        out.parameter(name, value);
    }
    let view = SessionView {
        user: user.to_owned(),
        role: None,
        search_path: configured_path,
        time_zone: session.time_zone().to_owned(),
        styles: session.styles(),
    };
    Ok((settings, ViewedSession::new(session, view, facts)))
}

/// Refuses a database that its server would let nobody into.
fn check_connections(session: &Session) -> Result<()> {
    let row = session.catalog().database().row();
    if row.allows_connections {
        return Ok(());
    }
    let name = String::from_utf8_lossy(&row.name);
    let message = format!("database \"{name}\" is not currently accepting connections");
    Err(StatementError::new(SqlState("55000"), message).into())
}

/// Settings that a client asks for as it connects.
fn apply(
    settings: &mut Settings,
    session: &Session,
    startup: &Startup,
    out: &mut ResponseBuffer,
) -> Result<()> {
    let own = startup.parameters.iter().map(|(name, value)| (name.clone(), value.clone()));
    let options = startup.parameter("options").unwrap_or_default();
    let mut dates = None;
    for (name, mut value) in switches(options)?.into_iter().chain(own) {
        if matches!(name.as_str(), "user" | "database" | "options" | "replication") {
            continue;
        }
        if name.eq_ignore_ascii_case("datestyle") {
            // What it leaves open is not what its user's settings say: those come later.
            let database = session.catalog().database();
            let before = *dates.get_or_insert_with(|| database.date_setting_of_files());
            if let Some(changed) = changed_date_setting(before, &value, before) {
                (dates, value) = (Some(changed), changed.to_string());
            }
        }
        let set = SetSetting { name: name.clone(), value: Some(value), is_local: false };
        match followed(session, set) {
            Ok(set) => settings.set(&set)?,
            // Drivers send their machine's time zone without being asked: that must not keep them away where this one lacks it.
            Err(mut error) if name.eq_ignore_ascii_case("timezone") => {
                error.message =
                    format!("{}: times are shown in {}", error.message, settings.time_zone());
                report(out, Severity::Warning, &error);
            }
            Err(error) => return Err(error.into()),
        }
        settings.keep_as_default(&name);
    }
    Ok(())
}

/// `-c name=value` and `--name=value`, as `PGOPTIONS` has them; a backslash keeps a space within a word.
fn switches(options: &str) -> Result<Vec<(String, String)>> {
    let mut words = vec![String::new()];
    let mut chars = options.chars();
    while let Some(c) = chars.next() {
        let word = words.last_mut().expect("one is there"); // infallible: starts with one
        match c {
            '\\' => word.extend(chars.next()),
            c if c.is_whitespace() => words.push(String::new()),
            c => word.push(c),
        }
    }
    let mut words = words.into_iter().filter(|word| !word.is_empty());
    let mut found = Vec::new();
    while let Some(word) = words.next() {
        let given = match word.as_str() {
            "-c" => words.next().unwrap_or_default(),
            other => match other.strip_prefix("--").or_else(|| other.strip_prefix("-c")) {
                Some(given) => given.to_owned(),
                None => {
                    return Err(Error::protocol(format!("invalid command-line option: {other}")));
                }
            },
        };
        let Some((name, value)) = given.split_once('=') else {
            return Err(Error::protocol(format!("-c {given} requires a value")));
        };
        found.push((name.replace('-', "_"), value.to_owned()));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_are_settings() {
        let found = switches("-c statement_timeout=5s  --DateStyle=ISO\\ , -cx.y=1").unwrap();
        let wanted = [("statement_timeout", "5s"), ("DateStyle", "ISO ,"), ("x.y", "1")];
        let wanted = wanted.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(found, wanted);
        assert!(switches("-f x").is_err() && switches("-c").is_err());
    }
}
