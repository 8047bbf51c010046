//! A request on its way to the bucket and back: logged, delayed, held to a rate, and struck by faults.
//!
//! Invariant: all answers together take as long as their bytes at the rate, whatever number of connections brings them.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::StreamExt as _;
use http_body_util::StreamBody;
use hyper::body::{Frame, Incoming};
use hyper::header::{HeaderValue, RANGE};
use hyper::{Request, Response};
use s3s::service::S3Service;

use crate::faults::{Armed, Fault};
use crate::objects::SHORT;

/// A request as the server saw it.
#[derive(Debug, Clone)]
pub struct Logged {
    /// When it came, after the server was started.
    pub begun: Duration,
    /// When the last piece of its answer was sent; `None` before there is one.
    pub ended: Option<Duration>,
    /// Its path, with the bucket.
    pub path: String,
    /// True when it lists.
    pub is_list: bool,
    /// The range that it asks for.
    pub range: Option<String>,
    /// Bytes of its answer that were sent.
    pub sent: u64,
}

/// How many of these requests came one after the other, at most: each of them after the one before had its answer.
pub fn in_a_row(log: &[Logged]) -> usize {
    let mut answered: Vec<_> =
        log.iter().filter_map(|logged| Some((logged.ended?, logged.begun))).collect();
    answered.sort_unstable();
    // What is answered first leaves most room for others behind it.
    let (mut in_a_row, mut last) = (0, Duration::ZERO);
    for (ended, begun) in answered {
        if begun >= last {
            (in_a_row, last) = (in_a_row + 1, ended);
        }
    }
    in_a_row
}

/// What all requests share.
#[derive(Debug)]
pub(crate) struct Traffic {
    pub(crate) started: Instant,
    pub(crate) root: PathBuf,
    pub(crate) latency: Mutex<Duration>,
    /// Bytes in a second; 0 for no limit.
    pub(crate) rate: Mutex<u64>,
    /// When the link is free again.
    free: Mutex<Instant>,
    pub(crate) faults: Mutex<Vec<Armed>>,
    pub(crate) log: Mutex<Vec<Logged>>,
}

type Chunks = futures_util::stream::BoxStream<'static, io::Result<Frame<Bytes>>>;

impl Traffic {
    pub(crate) fn new(root: PathBuf) -> Self {
        let started = Instant::now();
        Self {
            started,
            root,
            latency: Mutex::default(),
            rate: Mutex::default(),
            free: Mutex::new(started),
            faults: Mutex::default(),
            log: Mutex::default(),
        }
    }

    pub(crate) async fn pass(
        self: Arc<Self>,
        mut request: Request<Incoming>,
        bucket: S3Service,
    ) -> io::Result<Response<StreamBody<Chunks>>> {
        let path = request.uri().path().to_owned();
        let is_list = request.uri().query().is_some_and(|query| query.contains("list-type"));
        let number = self.note(&request, &path, is_list);
        let fault = self.fault(&path, is_list);
        let latency = *lock(&self.latency);
        tokio::time::sleep(latency).await;
        match &fault {
            Some(Fault::Refusal(status, code)) => {
                self.note_end(number);
                return Ok(refusal(*status, code));
            }
            Some(Fault::Dropped) => return Err(io::ErrorKind::ConnectionAborted.into()),
            Some(Fault::Silence(pause)) => {
                tokio::time::sleep(Duration::from_millis(*pause)).await;
            }
            Some(Fault::Short) => {
                // The range itself is signed.
                request.headers_mut().insert(SHORT, HeaderValue::from_static("1"));
            }
            Some(Fault::Replaced) => self.replace(&path)?,
            Some(Fault::Cut(_)) | None => {}
        }
        let cut = match fault {
            Some(Fault::Cut(bytes)) => bytes,
            _ => u64::MAX,
        };
        let answer = bucket.call(request.map(s3s::Body::from)).await.map_err(io::Error::other)?;
        // An answer without a body ends here.
        self.note_end(number);
        let (parts, body) = answer.into_parts();
        let body = http_body_util::BodyStream::new(body);
        let chunks = futures_util::stream::unfold((body, 0), move |(mut body, sent)| {
            let traffic = self.clone();
            async move {
                let chunk = match body.next().await {
                    None => return None,
                    Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
                    Some(Err(error)) => return Some((Err(io::Error::other(error)), (body, sent))),
                };
                if sent + chunk.len() as u64 > cut {
                    return Some((Err(io::ErrorKind::ConnectionReset.into()), (body, sent)));
                }
                let sent = sent + chunk.len() as u64;
                traffic.send(number, chunk.len() as u64).await;
                // Nobody asks for more of an answer that has its length.
                traffic.note_end(number);
                Some((Ok(Frame::data(chunk)), (body, sent)))
            }
        });
        Ok(Response::from_parts(parts, StreamBody::new(chunks.boxed())))
    }

    fn note(&self, request: &Request<Incoming>, path: &str, is_list: bool) -> usize {
        let mut log = lock(&self.log);
        let range = request.headers().get(RANGE).and_then(|range| range.to_str().ok());
        log.push(Logged {
            begun: self.started.elapsed(),
            ended: None,
            path: path.to_owned(),
            is_list,
            range: range.map(str::to_owned),
            sent: 0,
        });
        log.len() - 1
    }

    fn note_end(&self, number: usize) {
        let now = self.started.elapsed();
        if let Some(logged) = lock(&self.log).get_mut(number) {
            logged.ended = Some(now);
        }
    }

    fn fault(&self, path: &str, is_list: bool) -> Option<Fault> {
        let mut faults = lock(&self.faults);
        let struck = faults
            .iter_mut()
            .find_map(|armed| armed.strikes(path, is_list).then(|| armed.fault.clone()));
        faults.retain(|armed| armed.left != Some(0));
        struck
    }

    /// Waits until the link has brought so many bytes.
    async fn send(&self, number: usize, bytes: u64) {
        if let Some(logged) = lock(&self.log).get_mut(number) {
            logged.sent += bytes;
        }
        let rate = *lock(&self.rate);
        if rate == 0 {
            return;
        }
        let takes = Duration::from_secs_f64(bytes as f64 / rate as f64);
        let until = {
            let mut free = lock(&self.free);
            *free = (*free).max(Instant::now()) + takes;
            *free
        };
        tokio::time::sleep_until(until.into()).await;
    }

    fn replace(&self, path: &str) -> io::Result<()> {
        let key = path.trim_start_matches('/').split_once('/').map_or("", |(_, key)| key);
        let file = self.root.join(key);
        let mut bytes = std::fs::read(&file)?;
        bytes.iter_mut().for_each(|byte| *byte ^= 1);
        // Another file, as a store has it.
        let new = file.with_extension("new");
        std::fs::write(&new, bytes)?;
        std::fs::rename(new, file)
    }
}

fn refusal(status: u16, code: &str) -> Response<StreamBody<Chunks>> {
    let text = format!("<?xml version=\"1.0\"?><Error><Code>{code}</Code></Error>");
    let chunks = futures_util::stream::once(async move { Ok(Frame::data(Bytes::from(text))) });
    let mut answer = Response::new(StreamBody::new(chunks.boxed()));
    *answer.status_mut() = hyper::StatusCode::from_u16(status).unwrap_or_default();
    answer
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_beside_each_other_are_not_in_a_row() {
        let logged = |begun, ended: Option<u64>| Logged {
            begun: Duration::from_millis(begun),
            ended: ended.map(Duration::from_millis),
            path: String::new(),
            is_list: false,
            range: None,
            sent: 0,
        };
        assert_eq!(in_a_row(&[]), 0);
        let beside = [logged(0, Some(30)), logged(5, Some(40)), logged(6, Some(35))];
        assert_eq!(in_a_row(&beside), 1);
        let log = [
            logged(0, Some(100)),
            logged(0, Some(30)),
            logged(31, Some(60)),
            logged(33, Some(61)),
            logged(62, Some(92)),
            logged(93, None),
        ];
        assert_eq!(in_a_row(&log), 3);
    }
}
