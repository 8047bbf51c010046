//! The connections of a server: how many there may be, and whose statement a cancel request may end.
//!
//! ```text
//!   a connection ── Registration { process, key, statement } ──► dropped: its place is free again
//!   a cancel request ── (process, key) ──► the Interrupt of that connection
//! ```
//!
//! A role and a database may have limits of their own, which superusers do not keep to: `InitializeSessionUserId` and `CheckMyDatabase` in
//! `src/backend/utils/init`, PostgreSQL 14 to 18.
//!
//! Invariant: a statement is ended by its secret key only; a key that is wrong is answered with nothing, as it is by PostgreSQL.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pagemill_cluster::DatabaseRow;
use pagemill_engine::Progress;
use pagemill_format::Oid;
use pagemill_sql::roles::Role;
use pagemill_sql::{SqlState, StatementError};
use ring::hmac;
use ring::rand::{SecureRandom as _, SystemRandom};
use tokio::sync::Notify;

use crate::activity::Activity;

/// What runs in a connection, to be ended from another one.
#[derive(Debug, Default)]
pub struct Interrupt {
    running: Mutex<Option<Progress>>,
    called: Notify,
}

impl Interrupt {
    /// From now on a request ends this.
    pub fn begin(&self, cancel: &Progress) {
        *lock(&self.running) = Some(cancel.clone());
    }

    /// Nothing runs any more: a request that comes late ends nothing.
    pub fn end(&self) {
        *lock(&self.running) = None;
    }

    /// Ends what runs.
    pub fn call(&self) {
        if let Some(running) = &*lock(&self.running) {
            running.cancel();
            self.called.notify_waiters();
        }
    }

    /// Waits until this is called.
    pub async fn called(&self, cancel: &Progress) {
        let notified = self.called.notified();
        tokio::pin!(notified);
        // Registered before the look, so that no call between the two is missed.
        notified.as_mut().enable();
        if !cancel.is_cancelled() {
            notified.await;
        }
    }
}

/// All connections.
#[derive(Debug)]
pub struct Registry {
    most: usize,
    next: AtomicI32,
    known: Mutex<HashMap<i32, Known>>,
}

#[derive(Debug)]
struct Known {
    key: Vec<u8>,
    interrupt: Arc<Interrupt>,
    /// Whose it is, once that is known.
    of: Option<Belonging>,
    activity: Arc<Mutex<Activity>>,
}

/// Whose a connection is: a cluster's, and there a role's and a database's.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Belonging {
    cluster: Arc<str>,
    role: Oid,
    database: Oid,
}

/// A connection's place among them.
#[derive(Debug)]
pub struct Registration {
    registry: Arc<Registry>,
    /// The number that its client is told.
    pub process: i32,
    /// The secret that its client is told.
    pub key: Vec<u8>,
    /// Ends its statements.
    pub interrupt: Arc<Interrupt>,
    activity: Arc<Mutex<Activity>>,
}

impl Registry {
    /// Room for so many.
    pub fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, next: AtomicI32::new(1), known: Mutex::default() })
    }

    /// Takes a place, with a secret of so many bytes. `None` when all are taken.
    ///
    /// # Errors
    /// When the system has no random bytes.
    pub fn register(self: &Arc<Self>, key_bytes: usize) -> std::io::Result<Option<Registration>> {
        let mut key = vec![0; key_bytes];
        let filled = SystemRandom::new().fill(&mut key);
        filled.map_err(|_| std::io::Error::other("no random bytes for a secret key"))?;
        let interrupt = Arc::new(Interrupt::default());
        let mut known = lock(&self.known);
        if known.len() >= self.most {
            return Ok(None);
        }
        let process = self.free_number(&known);
        let activity = Arc::<Mutex<Activity>>::default();
        let (secret, own) = (key.clone(), activity.clone());
        let newcomer = Known { key: secret, interrupt: interrupt.clone(), of: None, activity: own };
        known.insert(process, newcomer);
        Ok(Some(Registration { registry: self.clone(), process, key, interrupt, activity }))
    }

    /// Numbers come again after two thousand million connections.
    fn free_number(&self, known: &HashMap<i32, Known>) -> i32 {
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed) & i32::MAX;
            if number != 0 && !known.contains_key(&number) {
                return number;
            }
        }
    }

    /// Ends the statement of a connection.
    pub fn cancel(&self, process: i32, key: &[u8]) {
        let known = lock(&self.known);
        if let Some(found) = known.get(&process)
            && is_same_secret(&found.key, key)
        {
            found.interrupt.call();
        }
    }

    /// Ends all statements.
    pub fn cancel_all(&self) {
        lock(&self.known).values().for_each(|known| known.interrupt.call());
    }

    /// How many there may be.
    pub fn most(&self) -> usize {
        self.most
    }

    /// What each of them does, by its number.
    pub fn activities(&self) -> Vec<(i32, Activity)> {
        let known = lock(&self.known);
        let seen = known.iter().map(|(number, known)| (*number, lock(&known.activity).clone()));
        let mut seen: Vec<_> = seen.collect();
        seen.sort_by_key(|(number, _)| *number);
        seen
    }

    /// The sessions on a cluster: number, role, database, and what each does.
    pub(crate) fn on_cluster(&self, cluster: &str) -> Vec<(i32, Oid, Oid, Activity)> {
        let known = lock(&self.known);
        let of_cluster = |(number, known): (&i32, &Known)| {
            let of = known.of.as_ref().filter(|of| *of.cluster == *cluster)?;
            Some((*number, of.role, of.database, lock(&known.activity).clone()))
        };
        let mut found: Vec<_> = known.iter().filter_map(of_cluster).collect();
        found.sort_by_key(|(number, ..)| *number);
        found
    }

    /// How many connections there are.
    pub fn count(&self) -> usize {
        lock(&self.known).len()
    }
}

impl Registration {
    /// Takes note of what the session does.
    pub(crate) fn act(&self, act: impl FnOnce(&mut Activity)) {
        act(&mut lock(&self.activity));
    }

    /// Counts it among the connections of a role and of a database of a cluster.
    ///
    /// # Errors
    /// When the role is no superuser's, and one of both has as many as it may have.
    pub fn settle(
        &self,
        cluster: &Arc<str>,
        role: &Role,
        database: &DatabaseRow,
    ) -> Result<(), StatementError> {
        let mut known = lock(&self.registry.known);
        let own = Belonging { cluster: cluster.clone(), role: role.oid, database: database.oid };
        let beside = || {
            let of = known.values().filter_map(|known| known.of.as_ref());
            of.filter(|of| of.cluster == own.cluster)
        };
        let roles = beside().filter(|of| of.role == own.role).count();
        let databases = beside().filter(|of| of.database == own.database).count();
        let is_full = |limit: i32, count: usize| {
            !role.is_superuser && usize::try_from(limit).is_ok_and(|limit| count >= limit)
        };
        let full = |what: &str, name: &str| {
            let message = format!("too many connections for {what} \"{name}\"");
            Err(StatementError::new(SqlState("53300"), message))
        };
        if is_full(database.connection_limit, databases) {
            return full("database", &String::from_utf8_lossy(&database.name));
        }
        if is_full(role.connection_limit, roles) {
            return full("role", &role.name);
        }
        if let Some(known) = known.get_mut(&self.process) {
            known.of = Some(own);
        }
        Ok(())
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        lock(&self.registry.known).remove(&self.process);
    }
}

/// Whether two secrets are the same, without a word of how far they are by the time that it takes: their digests under a key that
/// nobody knows are compared.
fn is_same_secret(known: &[u8], given: &[u8]) -> bool {
    let Ok(key) = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new()) else {
        return false;
    };
    hmac::verify(&key, given, hmac::sign(&key, known).as_ref()).is_ok()
}

/// What is behind a lock is whole at any time, also where a thread that held it panicked.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_is_ended_by_its_key_only() {
        let registry = Registry::new(2);
        let one = registry.register(4).unwrap().unwrap();
        let other = registry.register(32).unwrap().unwrap();
        assert!(registry.register(4).unwrap().is_none());
        let (first, second) = (Progress::default(), Progress::default());
        one.interrupt.begin(&first);
        other.interrupt.begin(&second);
        registry.cancel(one.process, &other.key);
        registry.cancel(other.process, &other.key[..4]);
        assert!(!first.is_cancelled() && !second.is_cancelled());
        registry.cancel(other.process, &other.key);
        assert!(!first.is_cancelled() && second.is_cancelled());
        one.interrupt.end();
        registry.cancel(one.process, &one.key);
        assert!(!first.is_cancelled());
        drop(one);
        assert_eq!(registry.count(), 1);
    }

    #[tokio::test]
    async fn who_waits_is_told() {
        let (interrupt, cancel) = (Arc::new(Interrupt::default()), Progress::default());
        interrupt.begin(&cancel);
        let caller = interrupt.clone();
        let calling = tokio::spawn(async move { caller.call() });
        interrupt.called(&cancel).await;
        assert!(cancel.is_cancelled());
        calling.await.unwrap();
        interrupt.called(&cancel).await;
    }
}
