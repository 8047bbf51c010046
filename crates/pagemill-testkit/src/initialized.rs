//! Clusters as `initdb` leaves them: made once for all tests that ask for the same, and copied, since `initdb` takes ten times the
//! processor's time of a copy.
//!
//! Must hold: no two clusters of one process have the same system identifier, as no two that `initdb` makes have. So who asks for
//! the same again gets a copy of the next one.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use anyhow::Result;

use crate::install::PgInstall;
use crate::prepared::copy_to;
use crate::scratch::{CachedDir, fingerprint};
use crate::server::{ClusterOptions, TestCluster};

/// As many of the same are kept; whoever asks for more in one process waits for `initdb`.
const KEPT: usize = 3;

/// A stopped cluster under `root`, with these options but for their settings.
pub(crate) fn initialized(
    install: &PgInstall,
    options: &ClusterOptions,
    root: &Path,
) -> Result<TestCluster> {
    let name = name_of(install, options);
    let nth = asked_before(&name);
    if nth >= KEPT {
        let cluster = TestCluster::at(install, root.to_owned())?;
        cluster.initialize(options)?;
        return Ok(cluster);
    }
    let cached = CachedDir::new(&format!("{name}-{nth}"), fingerprint(install, "")?, |dir| {
        let cluster = TestCluster::at(install, dir.join("cluster"))?;
        cluster.initialize(options)?;
        cluster.keep().map(drop)
    })?;
    copy_to(install, cached.dir(), root)
}

/// Names what is the same for all that `initdb` looks at.
fn name_of(install: &PgInstall, options: &ClusterOptions) -> String {
    let ClusterOptions { data_checksums, encoding, locale, initdb_flags, .. } = options;
    let mut hasher = DefaultHasher::new();
    (data_checksums, encoding, locale, initdb_flags).hash(&mut hasher);
    format!("initdb{}-{:016x}", install.major, hasher.finish())
}

/// How often this process has asked for it.
fn asked_before(name: &str) -> usize {
    static ASKED: Mutex<BTreeMap<String, usize>> = Mutex::new(BTreeMap::new());
    let mut asked = ASKED.lock().unwrap_or_else(PoisonError::into_inner);
    let count = asked.entry(name.to_owned()).or_default();
    *count += 1;
    *count - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_and_places_make_no_other_cluster() {
        let install = PgInstall { bindir: "/nowhere".into(), major: 15 };
        let name = |options: &ClusterOptions| name_of(&install, options);
        let plain = ClusterOptions::default();
        let set = ClusterOptions {
            settings: vec!["work_mem = 1MB".into()],
            root: Some("/elsewhere".into()),
            ..ClusterOptions::default()
        };
        let checked = ClusterOptions { data_checksums: Some(true), ..ClusterOptions::default() };
        assert_eq!(name(&plain), name(&set));
        assert_ne!(name(&plain), name(&checked));
    }
}
