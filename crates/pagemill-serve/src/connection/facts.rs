//! What a session is told of its server, of its own connection, and of the sessions beside it.
//!
//! Invariant: sessions are those of the same cluster, as they stand when they are asked for; who may see them is the asker's matter.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use pagemill_format::Oid;
use pagemill_sql::session::{ServerFacts, SessionFacts, Sessions};

use crate::activity::Activity;
use crate::opened::Opened;
use crate::registry::Registry;
use crate::server::Server;

/// Microseconds from 1970 to 2000, where PostgreSQL's time begins.
const EPOCH: i64 = 946_684_800_000_000;

/// A connection to a cluster.
pub(super) struct Connected<'c> {
    pub(super) process: i32,
    pub(super) client: Option<SocketAddr>,
    pub(super) server: Option<SocketAddr>,
    pub(super) cluster: &'c Arc<str>,
}

/// What the session of a connection is told.
pub(super) fn facts(server: &Server, opened: &Opened, own: &Connected<'_>) -> Arc<ServerFacts> {
    let (registry, cluster) = (server.registry.clone(), own.cluster.clone());
    Arc::new(ServerFacts {
        process: own.process,
        client: own.client,
        server: own.server,
        started: micros(server.started()),
        loaded: micros(opened.since()),
        sessions: Sessions(Arc::new(move || sessions(&registry, &cluster))),
    })
}

fn sessions(registry: &Registry, cluster: &str) -> Vec<SessionFacts> {
    let now = micros(SystemTime::now());
    let on_cluster = registry.on_cluster(cluster).into_iter();
    on_cluster
        .map(|(process, role, database, activity)| {
            session((process, role, database), activity, now)
        })
        .collect()
}

fn session(
    (process, role, database): (i32, Oid, Oid),
    activity: Activity,
    now: i64,
) -> SessionFacts {
    let moment = |then: Instant| {
        now - i64::try_from(then.elapsed().as_micros()).unwrap_or(now) // default: longer than clocks go
    };
    SessionFacts {
        process,
        database,
        role,
        state: activity.state.name(),
        text: activity.text.to_string(),
        client: activity.owner.address,
        tls: activity.owner.tls,
        began: moment(activity.began),
        transaction_began: activity.transaction_began.map(moment),
        statement_began: activity.statement_began.map(moment),
        since: moment(activity.since),
        application: activity.application,
    }
}

/// Microseconds from 2000-01-01 UTC.
fn micros(moment: SystemTime) -> i64 {
    let since_1970 = moment.duration_since(UNIX_EPOCH).unwrap_or_default(); // default: a clock before 1970
    i64::try_from(since_1970.as_micros()).map_or(i64::MAX, |micros| micros - EPOCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_begins_in_2000() {
        assert_eq!(micros(UNIX_EPOCH), -EPOCH);
        let in_2000 = UNIX_EPOCH + std::time::Duration::from_secs(946_684_801);
        assert_eq!(micros(in_2000), 1_000_000);
    }
}
