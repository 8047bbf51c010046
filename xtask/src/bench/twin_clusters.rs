//! A cluster that pagemill reads, stopped, and a copy of it that a server of PostgreSQL 18 answers from at the same time.
//!
//! Both have the same bytes: the copy is made after the last checkpoint, and the server only reads.

use std::path::{Path, PathBuf};

use anyhow::Result;
use pagemill_testkit::page_cache::read_files;

use super::files_below;
use super::server::{Cluster, Contents, LaunchOptions, Server};

const MAJOR: u32 = 18;

/// The two, and what the server runs with.
pub(super) struct TwinClusters {
    /// What pagemill reads.
    pub(super) stopped: Cluster,
    /// What the server answers from.
    pub(super) served: Cluster,
    /// Where both lie.
    pub(super) directory: PathBuf,
    shared_buffers: String,
    settings: &'static [&'static str],
}

/// What the two are made of.
pub(super) struct TwinContents<'c> {
    pub(super) contents: Contents<'c>,
    /// In words, and how many bytes of a disk one of the two takes.
    pub(super) announced: (&'c str, u64),
    pub(super) shared_buffers: &'c str,
    pub(super) settings: &'static [&'static str],
}

impl TwinClusters {
    /// Makes both in a directory; what `fill` does belongs to the first.
    pub(super) fn make(
        directory: &Path,
        of: TwinContents<'_>,
        fill: impl FnOnce(&Cluster, LaunchOptions<'_>) -> Result<()>,
    ) -> Result<Self> {
        let TwinContents { contents, announced: (what, bytes), shared_buffers, settings } = of;
        std::fs::create_dir_all(directory)?;
        let served = directory.join("served");
        if served.exists() {
            // A run that was killed may have left its server there.
            drop(Cluster::open(&served, MAJOR)?);
            std::fs::remove_dir_all(&served)?;
        }
        let stopped = Cluster::open(&directory.join("stopped"), MAJOR)?;
        stopped.announce(what, 2 * bytes)?;
        eprintln!("filling a cluster of PostgreSQL {MAJOR} ...");
        let launch = launch(shared_buffers, settings);
        stopped.make(&contents, launch, |cluster| fill(cluster, launch))?;
        let served = stopped.copy_to(&served)?;
        let (directory, shared_buffers) = (directory.canonicalize()?, shared_buffers.to_owned());
        Ok(Self { stopped, served, directory, shared_buffers, settings })
    }

    /// Starts the server.
    pub(super) fn start(&self) -> Result<Server<'_>> {
        self.served.start(launch(&self.shared_buffers, self.settings))
    }

    /// Reads all files of the stopped cluster, so that they are in the page cache.
    pub(super) fn cache(&self) -> Result<()> {
        read_files(&files_below(&self.stopped.data())?)
    }

    /// A directory for files of the benchmark's own.
    pub(super) fn scratch(&self) -> Result<PathBuf> {
        let scratch = self.directory.join("scratch");
        std::fs::create_dir_all(&scratch)?;
        Ok(scratch)
    }

    /// Removes everything.
    pub(super) fn remove(self) -> Result<()> {
        for name in ["stopped", "served", "scratch"] {
            let directory = self.directory.join(name);
            if directory.exists() {
                std::fs::remove_dir_all(directory)?;
            }
        }
        Ok(())
    }

    /// A text with words for the directories of this machine.
    pub(super) fn without_places(&self, text: &str) -> String {
        text.replace(&*self.directory.to_string_lossy(), "DIR")
    }

    /// What the server runs with.
    pub(super) fn settings(&self) -> String {
        format!("shared_buffers={} {} jit=off", self.shared_buffers, self.settings.join(" "))
    }
}

fn launch<'l>(shared_buffers: &'l str, settings: &'l [&'l str]) -> LaunchOptions<'l> {
    LaunchOptions { core: None, shared_buffers, group: None, settings }
}
