//! What is served: clusters as they were when they were opened, and the certificate.
//!
//! ```text
//!   one cluster        shop ─► its database shop
//!   several            a.shop ─► the database shop of the cluster a          shop ─► refused, with a.shop and b.shop as the remedy
//! ```
//!
//! Invariant: a session belongs to the clusters that were opened when its client came, also where they are opened anew meanwhile.

use std::sync::Arc;
use std::time::SystemTime;

use pagemill_sql::StatementError;

use crate::served_cluster::{ServedCluster, missing};
use crate::tls::Tls;

/// All that was opened at one time.
#[derive(Debug)]
pub struct Opened {
    clusters: Vec<Arc<ServedCluster>>,
    tls: Option<Tls>,
    since: SystemTime,
}

/// What a client means by the name of a database.
#[derive(Debug)]
pub(crate) enum Meant<'n> {
    /// A database of a cluster.
    Database(&'n str),
    /// None, as there are several clusters and it names none of them.
    Nothing,
}

impl Opened {
    /// These clusters, and a certificate where there is one.
    pub fn new(clusters: Vec<ServedCluster>, tls: Option<Tls>) -> Self {
        let clusters = clusters.into_iter().map(Arc::new).collect();
        Self { clusters, tls, since: SystemTime::now() }
    }

    /// The clusters.
    pub fn clusters(&self) -> &[Arc<ServedCluster>] {
        &self.clusters
    }

    /// When they were opened.
    pub fn since(&self) -> SystemTime {
        self.since
    }

    pub(crate) fn tls(&self) -> Option<&Tls> {
        self.tls.as_ref()
    }

    /// The cluster that a client means, and what there. One that names none is asked for a password of the first one: whose it is
    /// not learns nothing of the others.
    ///
    /// # Errors
    /// When nothing is served.
    pub(crate) fn meant<'n>(
        &self,
        asked: &'n str,
    ) -> Result<(&Arc<ServedCluster>, Meant<'n>), StatementError> {
        let first = self.clusters.first().ok_or_else(|| missing(asked))?;
        if self.clusters.len() == 1 {
            return Ok((first, Meant::Database(asked)));
        }
        let within = |cluster: &Arc<ServedCluster>| -> Option<&'n str> {
            asked.strip_prefix(&**cluster.name())?.strip_prefix('.')
        };
        // Names of directories may have dots in them, too.
        let found = self.clusters.iter().filter_map(|cluster| Some((cluster, within(cluster)?)));
        let longest = found.max_by_key(|(cluster, _)| cluster.name().len());
        Ok(longest
            .map_or((first, Meant::Nothing), |(cluster, name)| (cluster, Meant::Database(name))))
    }

    /// What a client is told that names no cluster. To one of this machine the databases that it can mean are named, and to all
    /// others no more than how a name is spelled. Looks into files.
    pub(crate) fn unnamed(&self, asked: &str, is_local: bool) -> StatementError {
        let holds = |cluster: &&Arc<ServedCluster>| !is_local || cluster.has(asked);
        let named = |of: &Arc<ServedCluster>| format!("{}.{asked}", of.name());
        let names: Vec<String> = self.clusters.iter().filter(holds).map(named).collect();
        let hint = match names.is_empty() {
            false => {
                format!("The name of a data directory stands before it: {}.", names.join(", "))
            }
            true => {
                let names: Vec<_> = self.clusters.iter().map(|of| of.name().to_string()).collect();
                let names = names.join(", ");
                format!("The name of a data directory stands before a database's: {names}.")
            }
        };
        missing(asked).with_hint(hint)
    }
}
