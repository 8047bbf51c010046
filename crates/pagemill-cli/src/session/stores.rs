//! Object stores that a session reads: the file system that knows URLs, laid over this machine's where one was named, and what is
//! told of it at the end.
//!
//! Invariant: without a URL on the command line nothing of this is there.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Result;
use pagemill_io::{Storage, is_url};
use pagemill_remote::{RemoteFiles, RemoteOptions};
use serde_json::{Value, json};

use crate::failure::say;
use crate::remote_arguments::RemoteArguments;

/// The stores of a session, where it has any.
#[derive(Debug, Clone, Default)]
pub(super) struct Stores(Option<Arc<RemoteFiles>>);

impl Stores {
    /// Lays the stores over a storage where one of the paths is a URL.
    ///
    /// # Errors
    /// None: whoever reads finds out what is wrong with a URL.
    pub(super) fn laid_over(
        storage: &Storage,
        paths: &[&Path],
        arguments: &RemoteArguments,
    ) -> Result<Option<(Storage, Self)>> {
        let Some(first) = paths.first().filter(|_| paths.iter().any(|path| is_url(path))) else {
            return Ok(None);
        };
        let options = RemoteOptions { cache: cache(arguments), ..RemoteOptions::default() };
        let mut files = None;
        let storage = storage
            .over(|below| files.insert(Arc::new(RemoteFiles::new(below, first, &options))).clone());
        Ok(Some((storage, Self(files))))
    }

    /// True where there are any.
    pub(super) fn are_there(&self) -> bool {
        self.0.is_some()
    }

    /// Waits for the cache on disk, and says why it was given up, if it was.
    pub(super) fn finish(&self) {
        if let Some(trouble) = self.0.as_ref().and_then(|files| files.finish()) {
            say(format!("--remote-cache: {trouble}: what came since then is not kept there"));
        }
    }

    /// What was asked of stores, for the statistics.
    pub(super) fn record(&self) -> Vec<(&'static str, Value)> {
        let Some(files) = &self.0 else { return Vec::new() };
        let requests = files.requests();
        vec![
            ("list_requests", json!(requests.lists)),
            ("get_requests", json!(requests.gets)),
            ("head_requests", json!(requests.heads)),
            ("login_requests", json!(requests.others)),
            ("retries", json!(requests.retries)),
            ("network_bytes", json!(requests.network_bytes)),
            ("cache_bytes", json!(requests.cache_bytes)),
            // What S3 Standard asks for such requests by its price list; other stores differ.
            ("s3_list_price", json!(format!("{:.6} USD for requests", requests.price()))),
        ]
    }
}

/// Where pieces are kept, and how many bytes of them.
fn cache(arguments: &RemoteArguments) -> Option<(PathBuf, u64)> {
    let directory = match &arguments.remote_cache {
        Some(none) if none.as_os_str() == "none" => return None,
        Some(directory) => directory.clone(),
        None => default_directory()?,
    };
    Some((directory, arguments.remote_cache_size))
}

/// As the XDG Base Directory Specification has it; `None` for who has no home.
fn default_directory() -> Option<PathBuf> {
    let absolute = |path: PathBuf| path.is_absolute().then_some(path);
    let named = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).and_then(absolute);
    let at_home = || absolute(PathBuf::from(std::env::var_os("HOME")?).join(".cache"));
    Some(named.or_else(at_home)?.join("pagemill"))
}
