//! Which directories the session before listed, so that this one asks for all of them at once: opening a cluster then takes one
//! round trip, and not one for each level of directories.
//!
//! Invariants: only the names of directories are kept, and what lies in them is asked for again; a name that no session asks for any
//! more is forgotten with the next one.

use std::path::Path;
use std::sync::Arc;

use object_store::path::Path as Key;

use crate::disk_cache::{DiskCache, PieceKey};
use crate::url::Url;

/// Directories that are asked for at once; a request for each costs as much as one that is needed.
const MOST: usize = 32;

/// What was listed of the store that a session reads.
#[derive(Debug)]
pub(crate) struct EarlierListings {
    disk: Arc<DiskCache>,
    place: PieceKey,
    /// As the store calls itself.
    pub(crate) store: String,
    pub(crate) directories: Vec<Key>,
}

impl EarlierListings {
    /// What was kept for a path; `None` where it is not on a store.
    pub(crate) fn of(path: &Path, disk: &Arc<DiskCache>) -> Option<Self> {
        // Who reads it says what is wrong with it.
        let url = Url::of(path).ok()??;
        let place = PieceKey::listed(&format!("{}/{}", url.store, url.key));
        let text = disk.read_now(&place).unwrap_or_default();
        let names = std::str::from_utf8(&text).unwrap_or_default().lines();
        let directories = names.filter_map(|name| Key::parse(name).ok()).take(MOST).collect();
        Some(Self { disk: disk.clone(), place, store: url.store, directories })
    }

    /// Keeps what this session asked for.
    pub(crate) fn replace(&self, mut asked: Vec<Key>) {
        asked.sort();
        asked.truncate(MOST);
        if asked != self.directories {
            let names: Vec<&str> = asked.iter().map(AsRef::as_ref).collect();
            self.disk.keep_now(&self.place, names.join("\n").as_bytes());
        }
    }
}
