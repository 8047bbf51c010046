//! Object stores in a program that was built without them: a URL is answered with how to build them in.
//!
//! Invariant: nothing is opened before the answer.

use std::path::Path;

use anyhow::Result;
use pagemill_io::{Storage, is_url};
use serde_json::Value;

use crate::failure::UsageError;
use crate::remote_arguments::RemoteArguments;

const REMEDY: &str = "this program was built without object stores; the feature remote builds them in: cargo install --locked --path crates/pagemill --features remote";

/// No stores.
#[derive(Debug, Clone, Default)]
pub(super) struct Stores;

impl Stores {
    /// Refuses a URL.
    ///
    /// # Errors
    /// Names it, and how to build in what it takes.
    pub(super) fn laid_over(
        _: &Storage,
        paths: &[&Path],
        _: &RemoteArguments,
    ) -> Result<Option<(Storage, Self)>> {
        match paths.iter().find(|path| is_url(path)) {
            None => Ok(None),
            Some(url) => Err(UsageError(format!("{}: {REMEDY}", url.display())).into()),
        }
    }

    /// False.
    pub(super) fn are_there(&self) -> bool {
        false
    }

    /// Nothing.
    pub(super) fn finish(&self) {}

    /// Nothing.
    pub(super) fn record(&self) -> Vec<(&'static str, Value)> {
        Vec::new()
    }
}
