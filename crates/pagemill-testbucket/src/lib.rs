#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod faults;
mod objects;
mod traffic;
mod uploads;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use s3s::auth::SimpleAuth;
use s3s::service::S3ServiceBuilder;
use tokio::runtime::{Builder, Runtime};

pub use faults::{Fault, Requests};
pub use traffic::{Logged, in_a_row};

use faults::Armed;
use objects::Objects;
use traffic::{Traffic, lock};
use uploads::Uploads;

/// The key that the server knows, and its secret.
pub const KEY: (&str, &str) = ("AKIATESTBUCKET", "secret of the test bucket");
/// What the bucket is called.
pub const BUCKET: &str = "snapshots";
/// Names in a page of a listing, fewer than [S3's](S3_PAGE): so that there are listings of several pages.
const PAGE: usize = 250;
/// Names in a page of a listing of S3 (its API reference, ListObjectsV2: "up to 1,000").
pub const S3_PAGE: usize = 1000;

/// A server that runs as long as this value lives.
#[derive(Debug)]
pub struct TestBucket {
    traffic: Arc<Traffic>,
    address: SocketAddr,
    /// Its threads end with it.
    _runtime: Runtime,
}

impl TestBucket {
    /// Serves the files in a directory, on a port of this machine that nobody else has.
    ///
    /// # Errors
    /// When no server can be started.
    pub fn start(root: &Path) -> Result<Self> {
        Self::start_with_pages(root, PAGE)
    }

    /// The same with so many names in a page of a listing.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_with_pages(root: &Path, page: usize) -> Result<Self> {
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let objects = Objects {
            root: root.to_owned(),
            bucket: BUCKET.into(),
            page,
            uploads: Uploads::default(),
        };
        let mut service = S3ServiceBuilder::new(objects);
        service.set_auth(SimpleAuth::from_single(KEY.0, KEY.1));
        let service = service.build();
        let traffic = Arc::new(Traffic::new(root.to_owned()));
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0"))?;
        let address = listener.local_addr()?;
        let shared = traffic.clone();
        runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                // As stores do: without, an answer in several pieces waits 40 ms for the client's kernel to acknowledge the first.
                let _ = stream.set_nodelay(true);
                let (traffic, service) = (shared.clone(), service.clone());
                let answer =
                    service_fn(move |request| traffic.clone().pass(request, service.clone()));
                tokio::spawn(async move {
                    // A connection that was broken on purpose is no failure of the server.
                    let _ =
                        http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await;
                });
            }
        });
        Ok(Self { traffic, address, _runtime: runtime })
    }

    /// Where it listens.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What a client needs in its environment.
    pub fn environment(&self) -> [(&'static str, String); 6] {
        [
            ("AWS_ENDPOINT_URL", self.endpoint()),
            ("AWS_ACCESS_KEY_ID", KEY.0.into()),
            ("AWS_SECRET_ACCESS_KEY", KEY.1.into()),
            ("AWS_REGION", "us-east-1".into()),
            ("AWS_CONFIG_FILE", "/dev/null".into()),
            ("NO_PROXY", "127.0.0.1".into()),
        ]
    }

    /// Each request takes so long before it is answered.
    pub fn set_latency(&self, latency: Duration) {
        *lock(&self.traffic.latency) = latency;
    }

    /// All answers together bring no more than so many bytes in a second; 0 for no limit.
    pub fn set_rate(&self, bytes: u64) {
        *lock(&self.traffic.rate) = bytes;
    }

    /// The next requests of this kind, whose address ends with `suffix`, go wrong: so many, or all for `None`.
    pub fn break_requests(
        &self,
        requests: Requests,
        suffix: &str,
        fault: Fault,
        times: Option<usize>,
    ) {
        let armed = Armed { fault, requests, suffix: suffix.into(), left: times };
        lock(&self.traffic.faults).push(armed);
    }

    /// Nothing goes wrong any more; how many faults had requests to come.
    pub fn mend(&self) -> usize {
        std::mem::take(&mut *lock(&self.traffic.faults)).len()
    }

    /// The requests since this was asked last.
    pub fn take_log(&self) -> Vec<Logged> {
        std::mem::take(&mut *lock(&self.traffic.log))
    }
}
