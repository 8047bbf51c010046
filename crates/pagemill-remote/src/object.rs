//! One object of a store, and how a range of its bytes comes: [`Object`].
//!
//! A body that breaks off goes on from where it broke off, by another request.
//!
//! Invariants: all bytes are of one version: the first answer tells its etag, where the listing did not, and every request asks
//! for that one; what came is exactly what was asked for, in order.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::StreamExt as _;
use object_store::path::Path as Key;
use object_store::{Error as StoreError, GetOptions, GetRange, GetResult, ObjectStore};

use crate::error::{RemoteError, Result};
use crate::http_requests::noted;
use crate::refusals::refused;
use crate::request_counts::RequestCounts;
use crate::retry::{RetryPolicy, Tries};

/// Requests in flight at once, of all readers of a store.
pub(crate) const MOST_IN_FLIGHT: usize = 64;

/// How a store is asked.
#[derive(Debug)]
pub(crate) struct Store {
    /// What it calls itself: `s3://bucket`.
    pub(crate) name: String,
    pub(crate) client: Arc<dyn ObjectStore>,
    pub(crate) counts: Arc<RequestCounts>,
    pub(crate) policy: RetryPolicy,
    pub(crate) in_flight: tokio::sync::Semaphore,
}

/// An object as it was when it was first seen.
#[derive(Debug)]
pub(crate) struct Object {
    /// Tells it from others of this process.
    pub(crate) id: u64,
    pub(crate) store: Arc<Store>,
    pub(crate) key: Key,
    pub(crate) len: u64,
    etag: Mutex<Option<String>>,
}

/// Why a body ended before its end.
enum Broken {
    /// It may come another time.
    ForNow(String),
    ForGood(RemoteError),
}

impl Object {
    pub(crate) fn new(store: Arc<Store>, key: Key, len: u64, etag: Option<String>) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        Self { id, store, key, len, etag: Mutex::new(etag) }
    }

    /// What tells this version from others, once it is known.
    pub(crate) fn etag(&self) -> Option<String> {
        self.etag.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A range of the bytes, which the object has, handed on as they come.
    ///
    /// # Errors
    /// When they do not come, or are not of the version that was seen first.
    pub(crate) async fn fetch(
        &self,
        range: Range<u64>,
        mut take: impl FnMut(&[u8]) + Send,
    ) -> Result<()> {
        let mut tries = Tries::begin(self.store.policy);
        let mut at = range.start;
        while at < range.end {
            let begun = at;
            let stopped = self.fetch_once(at..range.end, |bytes| {
                at += bytes.len() as u64;
                take(bytes);
            });
            let reason = match stopped.await {
                Ok(()) => break,
                Err(Broken::ForGood(error)) => return Err(error),
                Err(Broken::ForNow(reason)) => reason,
            };
            if at > begun {
                tries.progressed();
            }
            let Some(wait) = tries.next(None) else {
                return Err(given_up(&tries, at - range.start..range.end - range.start, reason));
            };
            tokio::time::sleep(wait).await;
            self.store.counts.count_retry();
        }
        Ok(())
    }

    /// All of a range in one piece of memory.
    ///
    /// # Errors
    /// As [`fetch`](Self::fetch).
    pub(crate) async fn fetch_whole(&self, range: Range<u64>) -> Result<Vec<u8>> {
        let len = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
        let mut bytes = Vec::with_capacity(len);
        self.fetch(range, |more| bytes.extend_from_slice(more)).await?;
        Ok(bytes)
    }

    async fn fetch_once(
        &self,
        range: Range<u64>,
        mut take: impl FnMut(&[u8]) + Send,
    ) -> std::result::Result<(), Broken> {
        let _permit = self.store.in_flight.acquire().await;
        let mut body = self.ask(range.clone()).await?.into_stream();
        let mut left = range.end - range.start;
        loop {
            let more = tokio::time::timeout(self.store.policy.silence, body.next()).await;
            let Ok(more) = more else { return Err(Broken::ForNow("no more bytes came".into())) };
            match more {
                None if left == 0 => return Ok(()),
                None => return Err(Broken::ForNow("the answer ended early".into())),
                Some(Err(error)) => return Err(Broken::ForNow(innermost(&error))),
                Some(Ok(bytes)) if bytes.len() as u64 > left => {
                    return Err(Broken::ForNow("the answer is too long".into()));
                }
                Some(Ok(bytes)) => {
                    self.store.counts.count_received(bytes.len());
                    left -= bytes.len() as u64;
                    take(&bytes);
                }
            }
        }
    }

    /// Asks for a range of the version that is known.
    async fn ask(&self, range: Range<u64>) -> std::result::Result<GetResult, Broken> {
        let known = self.etag();
        // One that only says that two versions are as good as each other is no condition (RFC 9110, 13.1.1).
        let if_match = known.clone().filter(|etag| !etag.starts_with("W/"));
        let options =
            GetOptions { if_match, range: Some(GetRange::Bounded(range)), ..GetOptions::default() };
        let (answer, why) = noted(self.store.client.get_opts(&self.key, options)).await;
        let answer = answer.map_err(|error| match error {
            StoreError::Precondition { .. } | StoreError::NotFound { .. } => {
                Broken::ForGood(RemoteError::Replaced)
            }
            // An answer that is not of the form that was asked for: what stands between may have made it.
            error if why.is_none() => Broken::ForNow(innermost(&error)),
            error => Broken::ForGood(refused(&self.store.name, "reading", &error, why)),
        })?;
        let same = |etag: &String| answer.meta.e_tag.as_ref().is_none_or(|now| is_same(etag, now));
        if answer.meta.size != self.len || !known.as_ref().is_none_or(same) {
            return Err(Broken::ForGood(RemoteError::Replaced));
        }
        if known.is_none() {
            let mut etag = self.etag.lock().unwrap_or_else(PoisonError::into_inner);
            etag.clone_from(&answer.meta.e_tag);
        }
        Ok(answer)
    }
}

fn given_up(tries: &Tries, part: Range<u64>, reason: String) -> RemoteError {
    let (tries, waited) = (tries.made(), tries.waited());
    match part.start {
        0 => RemoteError::Unreachable { reason, tries, waited },
        got => RemoteError::WrongLength { expected: part.end, got, tries },
    }
}

/// Listings and answers spell the same etag with quotation marks and without.
fn is_same(one: &str, other: &str) -> bool {
    fn bare(etag: &str) -> &str {
        etag.strip_prefix("W/").unwrap_or(etag).trim_matches('"')
    }
    bare(one) == bare(other)
}

/// The innermost reason.
pub(crate) fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let mut reason = error;
    while let Some(source) = reason.source() {
        reason = source;
    }
    let words = reason.to_string();
    words.chars().filter(|letter| !letter.is_control()).take(300).collect()
}
