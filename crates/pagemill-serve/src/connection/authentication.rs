//! A client of TCP proves that it has its role's password.
//!
//! ```text
//!   server ── AuthenticationSASL: SCRAM-SHA-256-PLUS (within TLS), SCRAM-SHA-256
//!   client ── its choice, client-first        server ── AuthenticationSASLContinue: server-first
//!   client ── client-final                    server ── AuthenticationSASLFinal: server-final │ 28P01
//! ```
//!
//! Invariant: until it has done so, a client makes the server keep a kilobyte of a message, and learns of no role or database whether
//! there is one.
//!
//! Source: `CheckSASLAuth` in `src/backend/libpq/auth-sasl.c`, and `auth_failed` in `auth.c`, PostgreSQL 18.

use pagemill_sql::{SqlState, StatementError};

use super::channel::Channel;
use crate::access::{Access, now};
use crate::error::{Error, Result};
use crate::protocol::{ResponseBuffer, SaslInitialResponse};
use crate::scram::{ChannelBinding, Exchange, Mechanism};
use crate::served_cluster::ServedCluster;
use crate::server::Server;

/// `AUTH_REQ_SASL`, `AUTH_REQ_SASL_CONT` and `AUTH_REQ_SASL_FIN` in `src/include/libpq/protocol.h`.
const SASL: i32 = 10;
const SASL_CONTINUE: i32 = 11;
const SASL_FINAL: i32 = 12;

/// A client on its way in.
pub(super) struct Login<'a> {
    /// Who it says it is.
    pub(super) user: &'a str,
    /// What it is told before it proves that, and what behind.
    pub(super) out: &'a mut ResponseBuffer,
}

/// Has a client prove its password, where it has to.
pub(super) async fn authenticate(
    server: &Server,
    cluster: &ServedCluster,
    channel: &mut Channel,
    login: Login<'_>,
) -> Result<()> {
    if channel.address.is_none() {
        // The system has seen to it that this is who started the server.
        return Ok(());
    }
    let Some(access) = cluster.access() else {
        let message = "the server lets nobody in over TCP";
        return Err(StatementError::new(SqlState("28000"), message).into());
    };
    let deadline = channel.deadline;
    let proof = prove(server, access, channel, login);
    tokio::time::timeout_at(deadline, proof).await.unwrap_or_else(|_| {
        let message = "canceling authentication due to timeout";
        Err(StatementError::new(SqlState::QUERY_CANCELED, message).into())
    })
}

async fn prove(
    server: &Server,
    access: &Access,
    channel: &mut Channel,
    login: Login<'_>,
) -> Result<()> {
    let Login { user, out } = login;
    let opened = channel.opened.clone();
    let tls = opened.tls().filter(|_| channel.is_encrypted);
    let end_point = tls.and_then(|tls| tls.end_point());
    let offered = Mechanism::offered(end_point.is_some());
    let (verifier, denial) = access.verifier(user, now());
    let names = offered.iter().map(|mechanism| format!("{}\0", mechanism.name()));
    let names: String = names.chain([String::from("\0")]).collect();
    let response = asked(channel, out, SASL, &names).await?;
    let response = SaslInitialResponse::parse(&response)?;
    let chosen = offered.iter().find(|mechanism| mechanism.name() == response.mechanism);
    let chosen = chosen.ok_or_else(|| {
        Error::protocol("client selected an invalid SASL authentication mechanism")
    })?;
    let binding = ChannelBinding { mechanism: *chosen, end_point };
    let exchange = Exchange::begin(&verifier, binding, response.data);
    let exchange = exchange.map_err(StatementError::from)?;
    let last = asked(channel, out, SASL_CONTINUE, exchange.server_first()).await?;
    let answer = exchange.finish(&last).map_err(StatementError::from)?;
    let Some(answer) = answer else {
        server.tell(|| {
            let why = denial.map_or_else(|| "a wrong password".into(), |denial| denial.to_string());
            format!("{}: role \"{user}\" is refused: {why}", channel.place())
        });
        let message = format!("password authentication failed for user \"{user}\"");
        return Err(StatementError::new(SqlState("28P01"), message).into());
    };
    out.authentication(SASL_FINAL, answer.as_bytes());
    server.tell(|| format!("{}: role \"{user}\" is let in", channel.place()));
    Ok(())
}

/// What the client answers to a request.
async fn asked(
    channel: &mut Channel,
    out: &mut ResponseBuffer,
    code: i32,
    text: &str,
) -> Result<Vec<u8>> {
    out.authentication(code, text.as_bytes());
    channel.send(&out.take()).await?;
    let answer = channel.reader.password().await?;
    // A client that has no password leaves, to ask its user for one.
    answer.ok_or_else(|| std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into())
}
