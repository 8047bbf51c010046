//! The requests that keep stages of statements open on a worker: when one ends, so does what its statement has going here.
//!
//! ```text
//! coordinator ── CoordinatorChannel, open as long as the statement runs ──► Watching ──► the engine ──► the stage's plan
//!                                                  ends, or is cut off ──► cancelled ─────────────────► scans, joins
//! ```
//!
//! The engine has tasks of its own going that hand on rows as they come; what has no rows yet would go on until it has.
//!
//! Invariant: what one request keeps open is ended by the end of no other.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use http::{HeaderMap, HeaderValue};
use http_body_util::BodyExt as _;
use pagemill_engine::Progress;
use tonic::body::Body;
use tonic::server::NamedService;
use tower::Service;

/// The header that has the number of a request; what a client says there is replaced.
const NUMBER: &str = "x-pagemill-request";
/// The requests that are kept open.
const CHANNEL: &str = "/worker.WorkerService/CoordinatorChannel";

/// Those that are open.
#[derive(Default)]
pub(super) struct Requests {
    open: Mutex<OpenRequests>,
}

#[derive(Default)]
struct OpenRequests {
    last: u64,
    by_number: HashMap<u64, Progress>,
}

impl fmt::Debug for Requests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Requests").finish_non_exhaustive()
    }
}

impl Requests {
    fn change<T>(&self, change: impl FnOnce(&mut OpenRequests) -> T) -> T {
        change(&mut self.open.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn begin(self: &Arc<Self>) -> OpenRequest {
        let number = self.change(|open| {
            open.last += 1;
            open.by_number.insert(open.last, Progress::default());
            open.last
        });
        OpenRequest { requests: self.clone(), number }
    }

    /// What is cancelled when the request with these headers ends; nothing cancels it where the request is none that is kept open.
    pub(super) fn progress(&self, headers: &HeaderMap) -> Progress {
        let number = headers.get(NUMBER).and_then(|value| value.to_str().ok()?.parse().ok());
        let known =
            number.and_then(|number: u64| self.change(|open| open.by_number.get(&number).cloned()));
        known.unwrap_or_default() // default: as the words above say
    }
}

/// A request that is open; what it keeps open ends with it.
struct OpenRequest {
    requests: Arc<Requests>,
    number: u64,
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        if let Some(progress) = self.requests.change(|open| open.by_number.remove(&self.number)) {
            progress.cancel();
        }
    }
}

/// A service whose requests are watched.
#[derive(Debug, Clone)]
pub(super) struct Watching<S> {
    pub(super) inner: S,
    pub(super) requests: Arc<Requests>,
}

impl<S: NamedService> NamedService for Watching<S> {
    const NAME: &'static str = S::NAME;
}

impl<S: Service<http::Request<Body>>> Service<http::Request<Body>> for Watching<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<Body>) -> S::Future {
        if request.uri().path() != CHANNEL {
            return self.inner.call(request);
        }
        let open = self.requests.begin();
        let (mut parts, body) = request.into_parts();
        parts.headers.insert(NUMBER, HeaderValue::from(open.number));
        // It is gone when nobody reads the request any more.
        let body = body.map_frame(move |frame| {
            let _ = &open;
            frame
        });
        self.inner.call(http::Request::from_parts(parts, Body::new(body)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_request_cancels_what_it_kept_open_and_nothing_else() {
        let requests = Arc::new(Requests::default());
        let (first, second) = (requests.begin(), requests.begin());
        let headers = |number: u64| {
            HeaderMap::from_iter([(
                http::HeaderName::from_static(NUMBER),
                HeaderValue::from(number),
            )])
        };
        let ended = requests.progress(&headers(first.number));
        let other = requests.progress(&headers(second.number));
        let unknown = requests.progress(&HeaderMap::new());
        drop(first);
        assert!(ended.is_cancelled() && !other.is_cancelled() && !unknown.is_cancelled());
        assert!(!requests.progress(&headers(1)).is_cancelled(), "it is open no more");
    }
}
