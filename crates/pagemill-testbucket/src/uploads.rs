//! Objects that a client puts into the bucket, whole or in parts, as tools of backups do it.
//!
//! Invariant: an object is there once it is whole, and not before.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::StreamExt as _;
use s3s::dto::StreamingBlob;
use s3s::{S3Result, s3_error};

use crate::traffic::lock;

/// Uploads in parts that were begun, by their numbers.
#[derive(Debug, Default)]
pub(crate) struct Uploads(Mutex<Vec<BTreeMap<i32, Vec<u8>>>>);

impl Uploads {
    /// Begins one, and says what it is called.
    pub(crate) fn begin(&self) -> String {
        let mut uploads = lock(&self.0);
        uploads.push(BTreeMap::new());
        (uploads.len() - 1).to_string()
    }

    /// Takes a part.
    pub(crate) fn add(&self, upload: &str, part: i32, bytes: Vec<u8>) -> S3Result<()> {
        let mut uploads = lock(&self.0);
        let found = upload.parse().ok().and_then(|at: usize| uploads.get_mut(at));
        found.ok_or_else(|| s3_error!(NoSuchUpload))?.insert(part, bytes);
        Ok(())
    }

    /// Ends one: all its parts, one behind the other.
    pub(crate) fn end(&self, upload: &str) -> S3Result<Vec<u8>> {
        let mut uploads = lock(&self.0);
        let found = upload.parse().ok().and_then(|at: usize| uploads.get_mut(at));
        let parts = std::mem::take(found.ok_or_else(|| s3_error!(NoSuchUpload))?);
        Ok(parts.into_values().flatten().collect())
    }
}

/// All that a client sends.
pub(crate) async fn received(body: Option<StreamingBlob>) -> S3Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(mut body) = body {
        while let Some(chunk) = body.next().await {
            let chunk = chunk.map_err(|_| s3_error!(IncompleteBody))?;
            bytes.extend_from_slice(&chunk);
        }
    }
    Ok(bytes)
}

/// What the names of files begin with that are no objects yet.
pub(crate) const UNFINISHED: &str = ".unfinished-";

/// Makes an object.
pub(crate) fn put(path: &Path, bytes: &[u8]) -> io::Result<()> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let above = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    std::fs::create_dir_all(above)?;
    let unfinished = above.join(format!("{UNFINISHED}{}", NEXT.fetch_add(1, Ordering::Relaxed)));
    std::fs::write(&unfinished, bytes)?;
    std::fs::rename(unfinished, path)
}
