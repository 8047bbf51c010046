//! One check on several versions of PostgreSQL, as many at a time as there are processors.
//!
//! Must hold: every version is checked, whatever becomes of the others, and failures are told in the order of versions.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use anyhow::Result;

use crate::install::{PgInstall, REQUIRED_MAJOR};
use crate::server::TestCluster;

/// Runs a check with each of these installations, and fails with all that failed.
///
/// # Panics
/// When the required version is not among those installed, or the check fails.
pub fn each_of(installs: &[PgInstall], check: impl Fn(&PgInstall) -> Result<()> + Sync) {
    assert!(
        PgInstall::find(REQUIRED_MAJOR).is_some(),
        "PostgreSQL {REQUIRED_MAJOR} is needed (ci/install-postgres.sh)"
    );
    let (next, failures) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some(install) = installs.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Err(error) = check(install) {
                let told = format!("PostgreSQL {}: {error:#}", install.major);
                let mut failures = failures.lock().unwrap_or_else(PoisonError::into_inner);
                failures.push((install.major, told));
            }
        }
    };
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..processors.min(installs.len()) {
            scope.spawn(work);
        }
    });
    let mut failures = failures.into_inner().unwrap_or_else(PoisonError::into_inner);
    failures.sort();
    let told: Vec<String> = failures.into_iter().map(|(_, told)| told).collect();
    assert!(told.is_empty(), "\n{}", told.join("\n"));
}

/// Whether a server is of a minor version before 15.20, which says and sends some things otherwise.
///
/// # Errors
/// When it does not answer.
pub fn is_before_15_20(cluster: &TestCluster) -> Result<bool> {
    let number = cluster.psql("postgres", "show server_version_num")?;
    Ok(number.trim().parse::<u32>()? < 150_020)
}
