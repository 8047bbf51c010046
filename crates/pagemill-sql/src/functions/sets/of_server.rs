//! Rows that a server has of itself: its sessions, and what files at rest have none of.
//!
//! The columns are those that the cluster's own `pg_proc` names, which versions differ in. Sessions are those of the server that
//! answers, as they stood when the statement was bound; where none answers they are refused. Nobody locks, replays, sends WAL or
//! works on anything that takes long enough to tell how far it is.
//!
//! Invariants: of another's session no more is told than the server tells; what files may have is never said to be nothing.
//!
//! Source: `pg_stat_get_activity` in `src/backend/utils/adt/pgstatfuncs.c`, `pg_lock_status` in `lockfuncs.c`, PostgreSQL 14 to 18.

use std::net::{IpAddr, SocketAddr};
use std::time::SystemTime;

use arrow::array::{Array as _, ArrayRef, AsArray as _};
use arrow::datatypes::Int32Type;
use pagemill_format::Oid;
use pagemill_types::builtin::oid;

use super::super::keys::strings;
use super::super::rows::Outcome;
use super::super::system::comments::{class, comments};
use super::super::system::statement_error;
use super::super::text_form::payload_of_text;
use super::{Asked, Begin, NoRows, Series, SetCall, SetColumn, made_of_payloads, parameter};
use crate::error::{Result, StatementError};
use crate::scan::micros_of;
use crate::session::SessionFacts;
use crate::system_rows::for_each_row;
use crate::types::PgType;

/// Gives the sessions; [`SetCall::sessions`] has them.
pub(crate) const ACTIVITY: &str = "pg_stat_get_activity";

/// A number that stands for all sessions, as NULL does.
const EVERY: i32 = -1;

/// What a role may read that may read all statistics.
///
/// Source: `ROLE_PG_READ_ALL_STATS` in `src/include/catalog/pg_authid.dat`, PostgreSQL 14 to 18.
const READ_ALL_STATS: Oid = Oid(3375);

/// Families of addresses, and their bits.
///
/// Source: `PGSQL_AF_INET` in `src/include/utils/inet.h`, PostgreSQL 14 to 18.
const INET: [u8; 2] = [2, 32];
const INET6: [u8; 2] = [3, 128];

/// The call of a function that tells of the server; `None` for any other.
///
/// # Errors
/// When `pg_proc` cannot be read.
pub(super) fn find(asked: &Asked<'_>) -> Result<Option<SetCall>> {
    let (begin, gives_one): (Begin, bool) = match asked.key {
        ACTIVITY => (activity, false),
        "pg_prepared_xact" => (prepared, false),
        // One row of NULLs where nothing is received.
        "pg_stat_get_wal_receiver" => (one_without_values, true),
        "pg_stat_get_archiver" | "pg_stat_get_wal" => (nothing_counted, true),
        "pg_get_replication_slots" | "pg_stat_get_replication_slot" => (slots, false),
        "pg_stat_get_progress_info" => (progress, false),
        "pg_available_extensions" | "pg_available_extension_versions" => (extensions, false),
        "pg_lock_status" | "pg_stat_get_subscription" | "pg_stat_get_wal_senders" => (none, false),
        _ => return Ok(None),
    };
    Ok(Some(SetCall {
        catalog: asked.catalog.clone(),
        key: asked.key.into(),
        arguments: asked.arguments.iter().map(|argument| argument.ty).collect(),
        columns: columns(asked)?.into(),
        takes_null: true,
        gives_one,
        table: None,
        sessions: None,
        begin,
    }))
}

/// The arguments that the function gives out.
fn columns(asked: &Asked<'_>) -> Result<Vec<SetColumn>> {
    const GIVEN_OUT: [u8; 2] = [b'o', b't'];
    let mut columns = Vec::new();
    let wanted = ["prosrc", "proargmodes", "proallargtypes", "proargnames"];
    for_each_row(asked.catalog.values(), "pg_proc", &wanted, |row| {
        if row.text(0)?.as_deref() != Some(asked.key) || !columns.is_empty() {
            return Ok(());
        }
        let modes = row.payload(1)?.unwrap_or_default();
        let modes = modes.get(20..).unwrap_or_default().to_vec();
        let (types, names) = (row.oids(2)?, row.texts(3)?);
        let all = modes.into_iter().zip(types).zip(names);
        let out = all.filter(|((mode, _), _)| GIVEN_OUT.contains(mode));
        columns.extend(out.map(|((_, ty), name)| {
            SetColumn::new(asked.catalog, Some(name.into()), PgType::new(ty))
        }));
        Ok(())
    })?;
    Ok(columns)
}

fn none(_: &SetCall, _: &[ArrayRef], _: usize) -> Outcome<Box<dyn Series>> {
    Ok(Box::new(NoRows))
}

/// Nothing is under way of what commands of these names tell.
fn progress(_: &SetCall, arguments: &[ArrayRef], row: usize) -> Outcome<Box<dyn Series>> {
    const COMMANDS: [&str; 6] =
        ["VACUUM", "ANALYZE", "CLUSTER", "CREATE INDEX", "BASEBACKUP", "COPY"];
    let name = strings(&arguments[0]);
    let is_known = |name: &str| COMMANDS.iter().any(|known| known.eq_ignore_ascii_case(name));
    match name.is_null(row) || is_known(name.value(row)) {
        true => Ok(Box::new(NoRows)),
        false => Err(parameter(&format!("invalid command name: \"{}\"", name.value(row)))),
    }
}

/// Those that the database has, in their own versions. What else a server has to install lies beside its programs.
fn extensions(call: &SetCall, _: &[ArrayRef], _: usize) -> Outcome<Box<dyn Series>> {
    let class = class(&call.catalog, "pg_extension");
    let comments = comments(&call.catalog).map_err(statement_error)?;
    let mut rows = Vec::new();
    let wanted = ["oid", "extname", "extversion", "extrelocatable"];
    let read = for_each_row(call.catalog.values(), "pg_extension", &wanted, |row| {
        let (name, version) = (row.name(1), row.text(2)?);
        let comment = class.and_then(|class| comments.get(&(row.oid(0), class, 0)).cloned());
        let is_relocatable = row.bool(3);
        let value = |column: &SetColumn| match column.name.as_deref()? {
            "name" => Some(name.clone().into_bytes()),
            "version" => version.clone().map(String::into_bytes),
            "comment" => comment.clone().map(String::into_bytes),
            "relocatable" => Some(vec![u8::from(is_relocatable)]),
            _ => None,
        };
        rows.push(call.columns.iter().map(value).collect());
        Ok(())
    });
    read.map_err(statement_error)?;
    made_of_payloads(call, rows)
}

fn one_without_values(call: &SetCall, _: &[ArrayRef], _: usize) -> Outcome<Box<dyn Series>> {
    made_of_payloads(call, vec![vec![None; call.columns.len()]])
}

/// A row of counts that begin.
fn nothing_counted(call: &SetCall, _: &[ArrayRef], _: usize) -> Outcome<Box<dyn Series>> {
    let begin = |column: &SetColumn| match column.ty.oid {
        oid::INT8 | oid::FLOAT8 | oid::NUMERIC => {
            payload_of_text(&call.catalog, column.ty, "0").map(Some)
        }
        _ => Ok(None),
    };
    let counts = call.columns.iter().map(begin).collect::<Outcome<Vec<_>>>()?;
    made_of_payloads(call, vec![counts])
}

/// None is kept where their directory is empty.
fn slots(call: &SetCall, _: &[ArrayRef], _: usize) -> Outcome<Box<dyn Series>> {
    none_where_empty(call, "pg_replslot", "what is known of replication slots")
}

/// None is prepared in a cluster whose directory for them is empty.
fn prepared(call: &SetCall, _: &[ArrayRef], _: usize) -> Outcome<Box<dyn Series>> {
    none_where_empty(call, "pg_twophase", "what is known of prepared transactions")
}

fn none_where_empty(call: &SetCall, directory: &str, what: &str) -> Outcome<Box<dyn Series>> {
    let cluster = call.catalog.database().cluster();
    let files = cluster.storage().read_dir(&cluster.path().join(directory));
    let files =
        files.map_err(|error| statement_error(pagemill_cluster::Error::from(error).into()))?;
    match cluster.is_complete() && files.is_empty() {
        true => Ok(Box::new(NoRows)),
        false => Err(StatementError::unsupported(what)),
    }
}

fn activity(call: &SetCall, arguments: &[ArrayRef], row: usize) -> Outcome<Box<dyn Series>> {
    let wanted = arguments[0].as_primitive::<Int32Type>();
    let wanted = wanted.is_valid(row).then(|| wanted.value(row)).filter(|number| *number != EVERY);
    let sessions = call.sessions.as_deref().unwrap_or_default();
    let of_wanted = |session: &&SessionFacts| wanted.is_none_or(|number| session.process == number);
    let told = |session: &SessionFacts| {
        let is_seen = is_seen(call, session.role)?;
        let value = |column: &SetColumn| value(session, column.name.as_deref()?, is_seen);
        Ok(call.columns.iter().map(value).collect())
    };
    let rows = sessions.iter().filter(of_wanted).map(told).collect::<Outcome<_>>()?;
    made_of_payloads(call, rows)
}

/// Whether the session's user may see what a role's sessions do.
fn is_seen(call: &SetCall, role: Oid) -> Outcome<bool> {
    let (catalog, database) = (&call.catalog, call.catalog.database());
    let members = catalog.members().map_err(statement_error)?;
    let user = database.current_user().map_err(|error| statement_error(error.into()))?;
    let has_rights = |user: Oid| {
        members.has_rights_of(user, role) || members.has_rights_of(user, READ_ALL_STATS)
    };
    Ok(members.named(&user).is_some_and(has_rights))
}

/// The value of a column of `pg_stat_get_activity`, by its name.
fn value(session: &SessionFacts, column: &str, is_seen: bool) -> Option<Vec<u8>> {
    let text = |value: &str| Some(value.as_bytes().to_vec());
    match column {
        "datid" => number(session.database.0),
        "usesysid" => number(session.role.0),
        "pid" => number(session.process.cast_unsigned()),
        "application_name" => text(&session.application),
        "query" if !is_seen => text("<insufficient privilege>"),
        _ if !is_seen => None,
        "state" => text(session.state),
        "query" => text(&session.text),
        "wait_event_type" => (session.state != ACTIVE).then(|| b"Client".to_vec()),
        "wait_event" => (session.state != ACTIVE).then(|| b"ClientRead".to_vec()),
        "backend_type" => text("client backend"),
        "backend_start" => moment(Some(session.began)),
        "xact_start" => moment(session.transaction_began),
        "query_start" => moment(session.statement_began),
        "state_change" => moment(Some(session.since)),
        "client_addr" => session.client.map(address),
        // So a socket of the machine is told from one of the network.
        "client_port" => {
            let port = session.client.map_or(-1, |client| i32::from(client.port()));
            number(port.cast_unsigned())
        }
        "ssl" => Some(vec![u8::from(session.tls.is_some())]),
        "sslversion" => text(session.tls?.version),
        "sslcipher" => text(session.tls?.cipher),
        "sslbits" => number(session.tls?.bits.cast_unsigned()),
        "gss_auth" | "gss_enc" | "gss_delegation" => Some(vec![0]),
        _ => None,
    }
}

/// The state of a session that works on a statement.
const ACTIVE: &str = "active";

fn number(value: u32) -> Option<Vec<u8>> {
    Some(value.to_le_bytes().to_vec())
}

fn moment(moment: Option<SystemTime>) -> Option<Vec<u8>> {
    moment.map(|moment| micros_of(moment).to_le_bytes().to_vec())
}

fn address(client: SocketAddr) -> Vec<u8> {
    match client.ip().to_canonical() {
        IpAddr::V4(address) => [&INET[..], &address.octets()].concat(),
        IpAddr::V6(address) => [&INET6[..], &address.octets()].concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::TlsFacts;

    fn session() -> SessionFacts {
        SessionFacts {
            process: 7,
            database: Oid(5),
            role: Oid(10),
            application: "psql".to_owned(),
            state: "idle",
            text: "select 1".to_owned(),
            client: Some("[::ffff:127.0.0.1]:4000".parse().unwrap()),
            tls: Some(TlsFacts { version: "TLSv1.3", cipher: "TLS_AES_128_GCM_SHA256", bits: 128 }),
            began: SystemTime::UNIX_EPOCH,
            transaction_began: None,
            statement_began: Some(SystemTime::UNIX_EPOCH),
            since: SystemTime::UNIX_EPOCH,
        }
    }

    #[test]
    fn of_a_session_that_may_not_be_seen_its_client_and_work_are_hidden() {
        let of = |column, is_seen| value(&session(), column, is_seen);
        assert_eq!(of("query", true), Some(b"select 1".to_vec()));
        assert_eq!(of("query", false), Some(b"<insufficient privilege>".to_vec()));
        for column in ["state", "client_addr", "ssl", "backend_start", "wait_event"] {
            assert!(of(column, true).is_some() && of(column, false).is_none(), "{column}");
        }
        assert_eq!(of("pid", false), Some(vec![7, 0, 0, 0]));
        assert_eq!(of("sslbits", true), Some(vec![128, 0, 0, 0]));
        assert_eq!(of("xact_start", true), None);
        assert_eq!(of("no column", true), None);
    }

    #[test]
    fn addresses_are_stored_with_their_family_and_all_their_bits() {
        assert_eq!(address("127.0.0.1:1".parse().unwrap()), [2, 32, 127, 0, 0, 1]);
        assert_eq!(value(&session(), "client_addr", true).unwrap(), [2, 32, 127, 0, 0, 1]);
        let v6 = address("[2001:db8::1]:1".parse().unwrap());
        assert_eq!((v6[0], v6[1], v6.len()), (3, 128, 18));
    }
}
