//! Results on a store, or in a directory of this machine: objects below a place, which are there once they are whole.
//!
//! ```text
//! small   ── bytes ──────────► one PUT
//! large   ── bytes ─► parts of 8 MiB, some in flight ─► the upload is completed: from then on there is an object
//!                          dropped before ─► given up
//! ```
//!
//! Invariants: an object that was not finished is not there; nothing but what lies below the URL is asked for or written.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::TryStreamExt as _;
use object_store::buffered::BufWriter;
use object_store::local::LocalFileSystem;
use object_store::path::Path as Key;
use object_store::{Error as StoreError, GetOptions, GetRange, ObjectStore, ObjectStoreExt as _};
use pagemill_io::ByteSink;
use tokio::io::AsyncWriteExt as _;

use crate::connect;
use crate::error::{RemoteError, Result};
use crate::http_requests::{Connector, noted};
use crate::object::innermost;
use crate::refusals::refused;
use crate::request_counts::RequestCounts;
use crate::retry::RetryPolicy;
use crate::runtime;
use crate::url::Url;

/// Bytes of a part of an upload. S3 takes 10,000 of them: objects up to 78 GiB.
const PART_BYTES: usize = 8 << 20;
/// Parts in flight of one object.
const PARTS_IN_FLIGHT: usize = 4;

/// A place that objects are written to, on a store or in a directory.
#[derive(Debug, Clone)]
pub struct ObjectFolder {
    url: PathBuf,
    store: String,
    key: Key,
    client: Arc<dyn ObjectStore>,
}

impl ObjectFolder {
    /// The place that a URL names, or a directory of this machine that is there. What is written to a directory is left to the
    /// kernel to write back, as by COPY.
    ///
    /// # Errors
    /// When the URL is none, the settings in the environment do not make a client, or there is no such directory.
    pub fn open(place: &Path, retry: RetryPolicy) -> Result<Self> {
        let Some(url) = Url::of(place)? else {
            let files = LocalFileSystem::new_with_prefix(place);
            let client = files.map_err(|error| RemoteError::Other(innermost(&error)))?;
            let (store, key) = (place.display().to_string(), Key::default());
            return Ok(Self { url: place.to_owned(), store, key, client: Arc::new(client) });
        };
        let counts = Arc::<RequestCounts>::default();
        let client = connect::client(&url, &Connector { counts, policy: retry })?;
        Ok(Self { url: place.to_owned(), store: url.store, key: url.key, client })
    }

    #[cfg(test)]
    fn of_client(url: &Path, client: Arc<dyn ObjectStore>) -> Self {
        let Url { store, key, .. } = Url::of(url).unwrap().unwrap();
        Self { url: url.to_owned(), store, key, client }
    }

    fn key_of(&self, name: &str) -> Result<Key> {
        let key = Key::parse(name).map_err(|_| RemoteError::Url(name.to_owned()))?;
        Ok(self.key.parts().chain(key.parts()).collect())
    }

    /// Asks, and waits for what comes of it.
    fn ask<T: Send + 'static>(
        &self,
        request: &'static str,
        work: impl Future<Output = object_store::Result<T>> + Send + 'static,
    ) -> io::Result<T> {
        let store = self.store.clone();
        let done = runtime::wait(async move {
            let (done, why) = noted(work).await;
            done.map_err(|error| refused(&store, request, &error, why))
        })?;
        Ok(done?)
    }

    /// The objects that are there, by their names below the URL, and their sizes in bytes.
    ///
    /// # Errors
    /// When the store does not list them.
    pub fn sizes(&self) -> io::Result<HashMap<String, u64>> {
        let (client, key) = (self.client.clone(), self.key.clone());
        self.ask("listing", async move {
            let mut found = HashMap::new();
            let mut objects = client.list(Some(&key));
            while let Some(object) = objects.try_next().await? {
                let Some(rest) = object.location.prefix_match(&key) else { continue };
                let names: Vec<String> = rest.map(|part| part.as_ref().to_owned()).collect();
                found.insert(names.join("/"), object.size);
            }
            Ok(found)
        })
    }

    /// An object, or its last bytes; `None` where there is none.
    ///
    /// # Errors
    /// When the store does not give it.
    pub fn read(&self, name: &str, last: Option<u64>) -> io::Result<Option<Vec<u8>>> {
        let (client, key) = (self.client.clone(), self.key_of(name)?);
        let options = GetOptions { range: last.map(GetRange::Suffix), ..GetOptions::default() };
        self.ask("reading", async move {
            match client.get_opts(&key, options).await {
                Err(StoreError::NotFound { .. }) => Ok(None),
                found => Ok(Some(found?.bytes().await?.to_vec())),
            }
        })
    }

    /// Writes an object as a whole.
    ///
    /// # Errors
    /// When the store does not take it.
    pub fn write(&self, name: &str, bytes: Vec<u8>) -> io::Result<()> {
        let (client, key) = (self.client.clone(), self.key_of(name)?);
        self.ask("writing", async move { client.put(&key, bytes.into()).await.map(drop) })
    }

    /// An object that is written piece by piece.
    ///
    /// # Errors
    /// When its name is none that stores have.
    pub fn create(&self, name: &str) -> io::Result<ObjectOutput> {
        let writer = BufWriter::with_capacity(self.client.clone(), self.key_of(name)?, PART_BYTES)
            .with_max_concurrency(PARTS_IN_FLIGHT);
        let url = self.url.join(name);
        Ok(ObjectOutput { folder: self.clone(), url, writer: Some(writer), bytes: 0 })
    }
}

/// An object in the making. It comes to be when it is finished; dropped before, it is given up.
pub struct ObjectOutput {
    folder: ObjectFolder,
    url: PathBuf,
    /// Not there while a request is under way, and after one that failed.
    writer: Option<BufWriter>,
    bytes: u64,
}

impl std::fmt::Debug for ObjectOutput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ObjectOutput").field("url", &self.url).finish_non_exhaustive()
    }
}

impl ObjectOutput {
    fn writer(&mut self) -> pagemill_io::Result<BufWriter> {
        let gone = || io::Error::other("an earlier part of it was not written");
        self.writer.take().ok_or_else(|| pagemill_io::Error::new(gone(), &self.url))
    }

    fn named(&self, error: io::Error) -> pagemill_io::Error {
        pagemill_io::Error::new(error, &self.url)
    }

    /// Gives the object its name; how many bytes it has.
    ///
    /// # Errors
    /// When the store does not take it.
    pub fn finish(mut self) -> pagemill_io::Result<u64> {
        let mut writer = self.writer()?;
        let ended = self.folder.ask("writing", async move {
            let ended = writer.shutdown().await.map_err(store_error);
            if ended.is_err() {
                // What cannot be given up now is left to the bucket's rules for unfinished uploads.
                let _ = writer.abort().await;
            }
            ended
        });
        ended.map_err(|error| self.named(error))?;
        Ok(self.bytes)
    }
}

impl ByteSink for ObjectOutput {
    fn write_all(&mut self, bytes: &[u8]) -> pagemill_io::Result<()> {
        let mut writer = self.writer()?;
        let data = bytes.to_vec();
        let written = self.folder.ask("writing", async move {
            match writer.write_all(&data).await.map_err(store_error) {
                Ok(()) => Ok(writer),
                Err(error) => {
                    let _ = writer.abort().await;
                    Err(error)
                }
            }
        });
        self.writer = Some(written.map_err(|error| self.named(error))?);
        self.bytes += bytes.len() as u64;
        Ok(())
    }
}

impl Drop for ObjectOutput {
    fn drop(&mut self) {
        if let Some(mut writer) = self.writer.take()
            && let Ok(runtime) = runtime::handle()
        {
            runtime.spawn(async move {
                let _ = writer.abort().await;
            });
        }
    }
}

/// What the store said, which a writer wraps.
fn store_error(error: io::Error) -> StoreError {
    match error.downcast::<StoreError>() {
        Ok(inner) => inner,
        Err(error) => StoreError::Generic { store: "writer", source: error.into() },
    }
}

#[cfg(test)]
mod tests {
    use object_store::memory::InMemory;

    use super::*;

    #[test]
    fn an_object_is_there_once_it_is_finished() {
        let store = Arc::new(InMemory::new());
        let folder = ObjectFolder::of_client(Path::new("s3://bucket/out"), store.clone());
        let mut large = folder.create("t/part-0.parquet").unwrap();
        for piece in 0..20_u8 {
            large.write_all(&vec![piece; 1 << 20]).unwrap();
        }
        assert!(folder.sizes().unwrap().is_empty());
        assert_eq!(large.finish().unwrap(), 20 << 20);
        folder.write("_plan.json", b"{}".to_vec()).unwrap();
        let mut dropped = folder.create("t/part-1.parquet").unwrap();
        dropped.write_all(&vec![1; 20 << 20]).unwrap();
        drop(dropped);
        let sizes = folder.sizes().unwrap();
        assert_eq!(
            sizes,
            [("t/part-0.parquet".to_owned(), 20 << 20), ("_plan.json".to_owned(), 2)].into()
        );
        assert_eq!(folder.read("_plan.json", None).unwrap().unwrap(), b"{}");
        assert_eq!(folder.read("t/part-0.parquet", Some(3)).unwrap().unwrap(), [19; 3]);
        assert!(folder.read("none", None).unwrap().is_none());
        // What lies beside the folder is none of its own.
        let beside = ObjectFolder::of_client(Path::new("s3://bucket/outer"), store);
        assert!(beside.sizes().unwrap().is_empty());
        assert!(folder.create("a//b").is_err() && folder.create("../x").is_err());
    }

    #[test]
    fn a_directory_is_as_good() {
        let place = tempfile::tempdir().unwrap();
        let folder = ObjectFolder::open(place.path(), RetryPolicy::default()).unwrap();
        let mut output = folder.create("sales.orders%2F/part-0.parquet").unwrap();
        output.write_all(&vec![7; 9 << 20]).unwrap();
        assert!(folder.sizes().unwrap().is_empty());
        output.finish().unwrap();
        drop(folder.create("t/part-1.parquet").unwrap());
        let sizes = folder.sizes().unwrap();
        assert_eq!(sizes, [("sales.orders%2F/part-0.parquet".to_owned(), 9 << 20)].into());
        assert!(place.path().join("sales.orders%2F/part-0.parquet").is_file());
        let missing = place.path().join("missing");
        assert!(ObjectFolder::open(&missing, RetryPolicy::default()).is_err());
    }
}
