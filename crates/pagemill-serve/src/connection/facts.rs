//! What a session is told of its server, of its own connection, and of the sessions beside it.
//!
//! Invariant: sessions are those of the same cluster, as they stand when they are asked for; who may see them is the asker's matter.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use pagemill_format::Oid;
use pagemill_sql::session::{ServerFacts, SessionFacts, Sessions};

use crate::activity::Activity;
use crate::opened::Opened;
use crate::registry::Registry;
use crate::server::Server;

/// A connection to a cluster.
pub(super) struct Connected<'c> {
    pub(super) process: i32,
    pub(super) client: Option<SocketAddr>,
    pub(super) server: Option<SocketAddr>,
    pub(super) identity: Option<String>,
    pub(super) cluster: &'c Arc<str>,
}

/// What the session of a connection is told.
pub(super) fn facts(server: &Server, opened: &Opened, own: &Connected<'_>) -> Arc<ServerFacts> {
    let (registry, cluster) = (server.registry.clone(), own.cluster.clone());
    Arc::new(ServerFacts {
        process: own.process,
        client: own.client,
        identity: own.identity.clone(),
        server: own.server,
        started: server.started(),
        loaded: opened.since(),
        sessions: Sessions(Arc::new(move || sessions(&registry, &cluster))),
    })
}

fn sessions(registry: &Registry, cluster: &str) -> Vec<SessionFacts> {
    let on_cluster = registry.on_cluster(cluster).into_iter();
    let session = |(process, role, database, activity): (i32, Oid, Oid, Activity)| SessionFacts {
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
    };
    on_cluster.map(session).collect()
}

/// When that was by the clock on the wall.
fn moment(then: Instant) -> SystemTime {
    let now = SystemTime::now();
    now.checked_sub(then.elapsed()).unwrap_or(now) // default: the clock was set back behind where it begins
}
