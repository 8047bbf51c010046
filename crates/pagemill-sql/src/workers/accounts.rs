//! What scans of a statement met on workers, for EXPLAIN ANALYZE: a worker keeps the plans of such a statement under the name of its
//! account, until who ran the statement asks for it.
//!
//! Invariants: nothing is told of a statement that still reads; an account that was given up, or is too large, is never told in part; as many
//! are kept as are asked for at a time, and no more.

use std::collections::VecDeque;
use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use datafusion::common::Result as QueryResult;
use datafusion::error::DataFusionError;
use datafusion::physical_plan::ExecutionPlan;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::HeaderMap;
use http::uri::PathAndQuery;
use tokio::time::timeout;
use tonic::metadata::MetadataMap;
use tonic::{Extensions, Request, Status};
use url::Url;

use super::channels::Connections;
use super::coordinator::Workers;
use super::errors::received;
use super::one_question::{Answers, as_json};
use super::plain_codec::Plain;
use crate::error::Error;
use crate::scan::{Counts, ScanContext, account_line, counts};

/// The header that has the name of a statement's account.
pub(super) const ACCOUNT: &str = "x-pagemill-account";
const PATH: &str = "/pagemill.Accounts/Take";
/// Bytes of a message.
const MOST_MESSAGE: usize = 1 << 20;
/// Characters of a name.
const LONGEST_NAME: usize = 64;
/// Accounts that are kept at a time: who has others asks late, or not any more.
const MOST_ACCOUNTS: usize = 64;
/// Names of those that were given up.
const MOST_NAMES: usize = 4096;
/// Parts of one statement.
const MOST_PARTS: usize = 4096;
/// How long scans may take to notice that nobody listens any more.
const PATIENCE: Duration = Duration::from_secs(10);

/// Scans in the order of their plan, each with its relation.
type Met = Vec<(String, Counts)>;
/// A part of a statement: the plan of the whole, of whose scans it ran parts.
type Part = (Arc<dyn ExecutionPlan>, Arc<ScanContext>);

/// A name that no other statement has.
pub(crate) fn account_name() -> String {
    // Each has keys of its own.
    let random = || RandomState::new().hash_one(0_u8);
    format!("{:016x}{:016x}", random(), random())
}

/// Adds what a part of the same plan met; false where it is another plan's.
fn add(sum: &mut [(String, Counts)], met: &[(String, Counts)]) -> bool {
    let is_same = sum.len() == met.len() && sum.iter().zip(met).all(|(own, new)| own.0 == new.0);
    if is_same {
        for ((_, own), (_, new)) in sum.iter_mut().zip(met) {
            for (own, new) in own.iter_mut().zip(new) {
                *own = own.saturating_add(*new);
            }
        }
    }
    is_same
}

/// Those that a worker keeps, the oldest first.
#[derive(Default)]
pub(super) struct Accounts {
    kept: Mutex<VecDeque<Account>>,
}

struct Account {
    name: String,
    /// Nothing, where it was given up.
    parts: Option<Vec<Part>>,
}

impl fmt::Debug for Accounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Accounts").finish_non_exhaustive()
    }
}

impl Accounts {
    /// Keeps a part of a statement, if its request names an account.
    pub(super) fn keep(
        &self,
        headers: &HeaderMap,
        plan: &Arc<dyn ExecutionPlan>,
        scans: &Arc<ScanContext>,
    ) {
        let name = headers.get(ACCOUNT).and_then(|value| value.to_str().ok());
        let Some(name) = name.filter(|name| name.len() <= LONGEST_NAME) else { return };
        let part = (plan.clone(), scans.clone());
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = kept.iter_mut().find(|account| account.name == name) {
            if let Some(parts) = &mut known.parts {
                parts.push(part);
            }
            drop(known.parts.take_if(|parts| parts.len() > MOST_PARTS));
            return;
        }
        kept.push_back(Account { name: name.to_owned(), parts: Some(vec![part]) });
        let open = kept.iter_mut().rev().filter(|account| account.parts.is_some());
        open.skip(MOST_ACCOUNTS).for_each(|account| account.parts = None);
        if kept.len() > MOST_NAMES {
            kept.pop_front();
        }
    }

    /// The parts that were kept under this name, which are then kept no more; `None` where they were given up.
    fn take(&self, name: &str) -> Option<Vec<Part>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        match kept.iter().position(|account| account.name == name) {
            Some(at) => kept.remove(at)?.parts,
            None => Some(Vec::new()),
        }
    }

    /// What they met; nothing where there were none.
    async fn met(&self, name: &str) -> Result<Met, Status> {
        let parts = self.take(name);
        let parts = parts.ok_or_else(|| Status::not_found("the account was given up"))?;
        let mut sum: Option<Met> = None;
        for (plan, scans) in parts {
            let quiet = timeout(PATIENCE, scans.quiet()).await;
            quiet.map_err(|_| Status::aborted("the statement still reads"))?;
            let met = counts(&*plan);
            let is_same = match &mut sum {
                Some(sum) => add(sum, &met),
                none => none.replace(met).is_none(),
            };
            if !is_same {
                return Err(Status::aborted("the account is of several statements"));
            }
        }
        Ok(sum.unwrap_or_default()) // default: as the words above say
    }
}

/// Asks a worker for what a statement met there.
async fn asked(connections: &Connections, url: &Url, name: &str) -> QueryResult<Met> {
    let headers = MetadataMap::from_headers(connections.headers());
    let request = Request::from_parts(headers, Extensions::default(), name.as_bytes().to_vec());
    let channel = connections.get(url).await?;
    let mut client = tonic::client::Grpc::new(channel).max_decoding_message_size(MOST_MESSAGE);
    let sent = async {
        let ready = client.ready().await;
        ready.map_err(|error| Status::unavailable(error.to_string()))?;
        client.unary(request, PathAndQuery::from_static(PATH), Plain).await
    };
    let answer = sent.await.map_err(|status| {
        connections.forget(url);
        received(url, &DataFusionError::External(Box::new(status)))
    })?;
    serde_json::from_slice(answer.get_ref())
        .map_err(|error| received(url, &DataFusionError::External(error.into())))
}

impl Workers {
    /// A line for each scan of a statement that has run, with what all machines met of it, and one for each worker that does not tell.
    pub(crate) async fn met(&self, account: &str, here: Met) -> Vec<String> {
        let (mut sum, mut untold) = (here, Vec::new());
        for url in &self.urls {
            let why = match asked(&self.connections, url, account).await {
                Ok(met) if met.is_empty() || add(&mut sum, &met) => continue,
                Ok(_) => "it tells of another plan".to_owned(),
                Err(error) => Error::from(error).to_string(),
            };
            untold.push(format!("Without what scans met on the worker {}: {why}", place(url)));
        }
        let lines = sum.iter().map(|(name, counts)| account_line(name, counts));
        lines.chain(untold).collect()
    }
}

fn place(url: &Url) -> String {
    let (host, port) = (url.host_str().unwrap_or_default(), url.port_or_known_default());
    format!("{host}:{}", port.unwrap_or_default())
}

impl Answers for Accounts {
    const NAME: &'static str = "pagemill.Accounts";
    const PATH: &'static str = PATH;
    const LONGEST: usize = LONGEST_NAME;

    fn respond(self: Arc<Self>, asked: Vec<u8>) -> BoxFuture<'static, Result<Vec<u8>, Status>> {
        async move {
            let name = std::str::from_utf8(&asked);
            let name = name.map_err(|_| Status::invalid_argument("a name of another program"))?;
            as_json(&self.met(name).await?)
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_differ_and_fit() {
        let names = [account_name(), account_name()];
        assert!(names[0] != names[1] && names[0].len() <= LONGEST_NAME);
    }

    #[test]
    fn only_scans_of_one_plan_are_added_up() {
        let mut sum = vec![("a".to_owned(), [1; 7]), ("b".to_owned(), [u64::MAX; 7])];
        assert!(add(&mut sum, &[("a".to_owned(), [2; 7]), ("b".to_owned(), [1; 7])]));
        assert_eq!(sum[0].1, [3; 7]);
        assert_eq!(sum[1].1, [u64::MAX; 7]);
        assert!(!add(&mut sum, &[("b".to_owned(), [2; 7]), ("a".to_owned(), [1; 7])]));
        assert!(!add(&mut sum, &[]));
        assert_eq!(sum[0].1, [3; 7]);
    }

    #[tokio::test]
    async fn what_is_not_known_met_nothing_and_what_was_given_up_is_not_told() {
        let accounts = Accounts::default();
        assert!(accounts.met("none").await.unwrap().is_empty());
        let given_up = Account { name: "old".to_owned(), parts: None };
        accounts.kept.lock().unwrap().push_back(given_up);
        assert!(accounts.met("old").await.is_err());
    }
}
