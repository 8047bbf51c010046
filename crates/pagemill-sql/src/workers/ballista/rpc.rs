//! What goes over the network: a stream of tasks with how they ended, and rows of files.
//!
//! Invariants: a request without the secret has been refused before; a worker's answer that is an error of a statement keeps what it was;
//! rows that cannot be had name the worker that had them.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use arrow_flight::FlightData;
use arrow_flight::decode::FlightRecordBatchStream;
use arrow_flight::error::FlightError;
use ballista_core::serde::scheduler::PartitionLocation;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::Result as QueryResult;
use datafusion::error::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt as _, Stream, StreamExt as _, TryStreamExt as _};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue};
use prost::Message as _;
use serde::{Deserialize, Serialize};
use tonic::body::Body;
use tonic::metadata::MetadataMap;
use tonic::server::{NamedService, ServerStreamingService, StreamingService};
use tonic::{Code, Extensions, Request, Response, Status, Streaming};
use tower::Service;
use url::Url;

use super::super::accounts::ACCOUNT;
use super::super::channels::Connections;
use super::super::errors::{LostRows, is_refusal, received, to_send};
use super::super::plain_codec::Plain;
use super::super::travelling::HEADER;
use super::executor::Stages;
use crate::error::Error;

const RUN: &str = "/pagemill.Stages/Run";
const FETCH: &str = "/pagemill.Stages/Fetch";
/// The header that says what the coordinator calls the worker.
const WORKER: &str = "x-pagemill-worker";
/// The header that has the name of the statement's job.
const JOB: &str = "x-pagemill-job";
/// Bytes of a task, which has a plan, or of a question for a file.
const MOST_MESSAGE: usize = 16 << 20;

/// A statement that a worker is to be ready for.
#[derive(Debug, Clone)]
pub(super) struct Job {
    pub(super) name: String,
    pub(super) statement: HeaderValue,
    pub(super) account: Option<HeaderValue>,
}

/// A file with rows, as its worker is asked for it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct AskedFile {
    pub(super) job: String,
    pub(super) stage: usize,
    pub(super) part: usize,
    pub(super) file: Option<u64>,
    pub(super) is_sorted: bool,
}

/// Opens the stream of a statement's tasks with a worker: what is given is sent to it, what it answers is how tasks ended. An error in
/// place of the stream is that the worker is not there.
///
/// # Errors
/// When it does not take the statement.
pub(super) async fn run(
    connections: &Connections,
    url: &Url,
    job: &Job,
    tasks: impl Stream<Item = Vec<u8>> + Send + 'static,
) -> QueryResult<QueryResult<Streaming<Vec<u8>>>> {
    let mut headers = connections.headers();
    headers.insert(HEADER, job.statement.clone());
    headers.extend(job.account.clone().map(|name| (HeaderName::from_static(ACCOUNT), name)));
    let texts = [(WORKER, worker_name(url)), (JOB, job.name.clone())];
    for (header, text) in texts {
        let value = HeaderValue::from_str(&text);
        headers.insert(header, value.map_err(|error| DataFusionError::External(error.into()))?);
    }
    let request =
        Request::from_parts(MetadataMap::from_headers(headers), Extensions::default(), tasks);
    let channel = match connections.get(url).await {
        Ok(channel) => channel,
        Err(refused) if is_refusal(&refused) => return Err(refused),
        Err(lost) => return Ok(Err(lost)),
    };
    let mut client = tonic::client::Grpc::new(channel);
    let sent = async {
        let ready = client.ready().await;
        ready.map_err(|error| Status::unavailable(error.to_string()))?;
        client.streaming(request, PathAndQuery::from_static(RUN), Plain).await
    };
    match sent.await {
        Ok(answer) => Ok(Ok(answer.into_inner())),
        // Its words are an error as it was sent.
        Err(status) if status.code() == Code::FailedPrecondition => {
            Err(received(url, &DataFusionError::External(status.message().into())))
        }
        Err(status) => {
            connections.forget(url);
            let is_stranger = status.code() == Code::Unauthenticated;
            let error = received(url, &DataFusionError::External(Box::new(status)));
            if is_stranger || is_refusal(&error) { Err(error) } else { Ok(Err(error)) }
        }
    }
}

/// What a worker is called.
pub(super) fn worker_name(url: &Url) -> String {
    let (host, port) = (url.host_str().unwrap_or_default(), url.port_or_known_default());
    format!("{host}:{}", port.unwrap_or_default())
}

/// The rows of a file that another worker has.
///
/// # Errors
/// When they cannot be had.
pub(super) async fn fetch(
    connections: &Connections,
    location: PartitionLocation,
    schema: SchemaRef,
) -> QueryResult<SendableRecordBatchStream> {
    let lost = {
        let location = location.clone();
        move |message: String| {
            DataFusionError::from(LostRows {
                worker: location.executor_meta.id.clone(),
                stage: location.partition_id.stage_id,
                part: location.map_partition_id,
                message,
            })
        }
    };
    let address = format!("http://{}", location.executor_meta.id);
    let url = Url::parse(&address).map_err(|error| lost(error.to_string()))?;
    let failed = |status: Status| {
        connections.forget(&url);
        let error = received(&url, &DataFusionError::External(Box::new(status)));
        match is_refusal(&error) {
            true => error,
            false => lost(Error::from(error).to_string()),
        }
    };
    let question = serde_json::to_vec(&AskedFile {
        job: location.partition_id.job_id.to_string(),
        stage: location.partition_id.stage_id,
        part: location.partition_id.partition_id,
        file: location.file_id,
        is_sorted: location.is_sort_shuffle,
    });
    let question = question.map_err(|error| lost(error.to_string()))?;
    let metadata = MetadataMap::from_headers(connections.headers());
    let request = Request::from_parts(metadata, Extensions::default(), question);
    let channel = connections.get(&url).await.map_err(|error| match is_refusal(&error) {
        true => error,
        false => lost(Error::from(error).to_string()),
    })?;
    // As large as a row may be.
    let mut client = tonic::client::Grpc::new(channel).max_decoding_message_size(usize::MAX);
    client.ready().await.map_err(|error| failed(Status::unavailable(error.to_string())))?;
    let answer = client.server_streaming(request, PathAndQuery::from_static(FETCH), Plain).await;
    let messages = answer.map_err(failed)?.into_inner();
    let data = messages.map(|message| {
        FlightData::decode(&message?[..])
            .map_err(|error| FlightError::DecodeError(error.to_string()))
    });
    let rows = FlightRecordBatchStream::new_from_flight_data(data);
    let rows = rows.map_err(move |error| lost(error.to_string()));
    Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
}

/// What answers.
#[derive(Clone)]
pub(in super::super) struct StagesService(pub(in super::super) Arc<Stages>);

impl NamedService for StagesService {
    const NAME: &'static str = "pagemill.Stages";
}

impl Service<http::Request<Body>> for StagesService {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<http::Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let stages = self.0.clone();
        async move {
            let mut server =
                tonic::server::Grpc::new(Plain).max_decoding_message_size(MOST_MESSAGE);
            Ok(match request.uri().path() {
                RUN => server.streaming(RunCall(stages), request).await,
                FETCH => server.server_streaming(FetchCall(stages), request).await,
                _ => Status::unimplemented("there are two questions").into_http(),
            })
        }
        .boxed()
    }
}

type Messages = BoxStream<'static, Result<Vec<u8>, Status>>;
type Answering = BoxFuture<'static, Result<Response<Messages>, Status>>;

struct RunCall(Arc<Stages>);

impl StreamingService<Vec<u8>> for RunCall {
    type Response = Vec<u8>;
    type ResponseStream = Messages;
    type Future = Answering;

    fn call(&mut self, request: Request<Streaming<Vec<u8>>>) -> Self::Future {
        let stages = self.0.clone();
        async move {
            let (metadata, _, tasks) = request.into_parts();
            let refused =
                |error: Error| Status::failed_precondition(to_send(error.into()).to_string());
            let headers = metadata.into_headers();
            let names = (text(&headers, WORKER)?, text(&headers, JOB)?);
            let running = stages.open(names, &headers).await.map_err(refused)?;
            Ok(Response::new(running.answers(tasks)))
        }
        .boxed()
    }
}

fn text(headers: &HeaderMap, name: &str) -> Result<String, Status> {
    let value = headers.get(name).and_then(|value| value.to_str().ok());
    value
        .map(str::to_owned)
        .ok_or_else(|| Status::failed_precondition("a request of another program"))
}

struct FetchCall(Arc<Stages>);

impl ServerStreamingService<Vec<u8>> for FetchCall {
    type Response = Vec<u8>;
    type ResponseStream = Messages;
    type Future = Answering;

    fn call(&mut self, request: Request<Vec<u8>>) -> Self::Future {
        let stages = self.0.clone();
        async move {
            let asked = serde_json::from_slice(request.get_ref());
            let asked: AskedFile =
                asked.map_err(|_| Status::failed_precondition("a question of another program"))?;
            let rows = stages.rows(&asked).await?;
            Ok(Response::new(rows.map_ok(|data| data.encode_to_vec()).boxed()))
        }
        .boxed()
    }
}
