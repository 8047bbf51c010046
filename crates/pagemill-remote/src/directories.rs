//! The directories of a store: each is listed once, by one request a page of names, and then known for good.
//!
//! Sizes, etags and whether something is there at all are answered from the listing of the directory that it would lie in. So all
//! that a session sees of a store is as it was when it looked first, and costs nothing to ask again.
//!
//! Invariants: a directory is there when something lies below it; an object whose name ends with a slash, which some tools make
//! to stand for a directory, is none.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use object_store::path::Path as Key;
use tokio::sync::OnceCell;

use crate::error::Result;
use crate::http_requests::noted;
use crate::object::{Object, Store};
use crate::refusals::refused;

/// What a name in a directory stands for.
#[derive(Debug, Clone)]
pub(crate) enum Entry {
    Directory,
    Object(Arc<Object>),
}

/// What lies in a directory, by name.
pub(crate) type Listing = HashMap<String, Entry>;

/// `None` for a directory that is not there.
type Slot = Arc<OnceCell<Option<Arc<Listing>>>>;

/// A directory that somebody asked for.
#[derive(Debug, Default)]
struct Asked {
    slot: Slot,
    /// By who reads, and not only because it may be wanted.
    is_wanted: bool,
    /// What is expected to be asked for next was asked for.
    is_followed: bool,
}

/// The directories of a store, as far as somebody asked for them.
#[derive(Debug)]
pub(crate) struct Directories {
    pub(crate) store: Arc<Store>,
    asked: Mutex<HashMap<Key, Asked>>,
}

impl Directories {
    pub(crate) fn new(store: Arc<Store>) -> Self {
        Self { store, asked: Mutex::default() }
    }

    /// What lies in a directory; `None` where there is none. Of several who ask at once, one sends the request.
    ///
    /// # Errors
    /// When the store does not tell.
    pub(crate) async fn listing(&self, directory: &Key) -> Result<Option<Arc<Listing>>> {
        let slot = self.slot(directory);
        let listed = slot.get_or_try_init(|| self.list(directory)).await?;
        Ok(listed.clone())
    }

    /// The same where nobody needs to be asked; the outer `None` where somebody would.
    pub(crate) fn known(&self, directory: &Key) -> Option<Option<Arc<Listing>>> {
        self.lock().get(directory)?.slot.get().cloned()
    }

    /// Somebody reads what lies there.
    pub(crate) fn want(&self, directory: &Key) {
        self.lock().entry(directory.clone()).or_default().is_wanted = true;
    }

    /// The directories that were there and somebody read.
    pub(crate) fn wanted(&self) -> Vec<Key> {
        let asked = self.lock();
        let is_wanted =
            |asked: &Asked| asked.is_wanted && matches!(asked.slot.get(), Some(Some(_)));
        asked.iter().filter(|(_, asked)| is_wanted(asked)).map(|(key, _)| key.clone()).collect()
    }

    /// True for the first who comes to ask for what follows from a directory.
    pub(crate) fn follow(&self, directory: &Key) -> bool {
        !std::mem::replace(&mut self.lock().entry(directory.clone()).or_default().is_followed, true)
    }

    /// What a key stands for; `None` for nothing.
    ///
    /// # Errors
    /// As [`listing`](Self::listing).
    pub(crate) async fn entry(&self, key: &Key) -> Result<Option<Entry>> {
        let Some((directory, name)) = parted(key) else {
            return Ok(self.listing(key).await?.map(|_| Entry::Directory));
        };
        if let Some(Some(_)) = self.known(key) {
            return Ok(Some(Entry::Directory));
        }
        let listing = self.listing(&directory).await?;
        Ok(listing.and_then(|listing| listing.get(&name).cloned()))
    }

    fn slot(&self, directory: &Key) -> Slot {
        self.lock().entry(directory.clone()).or_default().slot.clone()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Asked>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn list(&self, directory: &Key) -> Result<Option<Arc<Listing>>> {
        if self.is_known_to_be_missing(directory) {
            return Ok(None);
        }
        let prefix = (!directory.as_ref().is_empty()).then_some(directory);
        let (listed, why) = noted(self.store.client.list_with_delimiter(prefix)).await;
        let listed = listed.map_err(|error| refused(&self.store.name, "listing", &error, why))?;
        let mut listing = Listing::new();
        for found in listed.common_prefixes {
            listing.extend(name_in(directory, &found).map(|name| (name, Entry::Directory)));
        }
        for found in listed.objects {
            let Some(name) = name_in(directory, &found.location) else { continue };
            let object = Object::new(self.store.clone(), found.location, found.size, found.e_tag);
            listing.entry(name).or_insert_with(|| Entry::Object(Arc::new(object)));
        }
        Ok((!listing.is_empty()).then(|| Arc::new(listing)))
    }

    /// True where the directory above was listed, and this one is not in it.
    fn is_known_to_be_missing(&self, directory: &Key) -> bool {
        let Some((above, name)) = parted(directory) else { return false };
        match self.known(&above) {
            None => false,
            Some(None) => true,
            Some(Some(listing)) => !matches!(listing.get(&name), Some(Entry::Directory)),
        }
    }
}

/// A key as the directory that it lies in, and its name there.
pub(crate) fn parted(key: &Key) -> Option<(Key, String)> {
    let name = key.filename()?.to_owned();
    let parts: Vec<_> = key.parts().collect();
    let above = parts[..parts.len() - 1].iter().cloned().collect();
    Some((above, name))
}

/// The name of a key right below a directory.
fn name_in(directory: &Key, key: &Key) -> Option<String> {
    let mut names = key.prefix_match(directory)?;
    let name = names.next()?.as_ref().to_owned();
    names.next().is_none().then_some(name)
}
