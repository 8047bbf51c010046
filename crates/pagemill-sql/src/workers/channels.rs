//! Connections to workers, from the coordinator and from each other.
//!
//! Invariants: a worker that does not answer the pings of its connection ends what waits for it within [`PING_EVERY`] and
//! [`PING_TIMEOUT`]; every request of a statement has the secret; who has certificates makes no connection without TLS, whatever a URL says;
//! what goes wrong names the worker.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arrow::record_batch::RecordBatch;
use async_trait::async_trait;
use datafusion::common::Result as QueryResult;
use datafusion::error::DataFusionError;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion_distributed::grpc::{BoxCloneSyncChannel, create_worker_client};
use datafusion_distributed::{
    ChannelResolver, CoordinatorToWorkerMsg, ExecuteTaskRequest, GetWorkerInfoRequest,
    GetWorkerInfoResponse, MaybeEncoded, SetPlanRequest, WorkerChannel, WorkerToCoordinatorMsg,
};
use futures::StreamExt as _;
use futures::stream::BoxStream;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, Uri};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tonic::transport::{Channel as Transport, Endpoint};
use tower::service_fn;
use url::Url;

use super::accounts::ACCOUNT;
use super::coordinator::Sent;
use super::errors::{not_connected, received};
use super::secret::Secret;
use super::stage::Envelope;
use super::tls::Tls;
use super::travelling::HEADER;

/// How long a connection may take to come about.
const CONNECTING: Duration = Duration::from_secs(5);
/// How often a worker is asked whether it is there.
const PING_EVERY: Duration = Duration::from_secs(2);
/// How long it may take to say so.
const PING_TIMEOUT: Duration = Duration::from_secs(6);

/// The port that a URL of a worker leaves out.
const PLAIN_PORT: u16 = 80;

/// Bytes of an answer that may be on their way and not read yet.
const STREAM_WINDOW: u32 = 2 << 20;
/// Of all answers on a connection: as many as HTTP/2 has numbers for. A step that waits for one answer would wait without end if others,
/// which it does not read meanwhile, could take all that there is.
const CONNECTION_WINDOW: u32 = (1 << 31) - 1;

/// What workers and those who ask them have to know and to show.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// What requests have to have.
    pub secret: Option<Secret>,
    /// What connections are made by.
    pub tls: Option<Tls>,
}

/// Connections that are open.
#[derive(Debug, Default)]
pub(super) struct Connections {
    open: Mutex<HashMap<Url, BoxCloneSyncChannel>>,
    access: Access,
}

impl Connections {
    pub(super) fn new(access: Access) -> Self {
        Self { open: Mutex::default(), access }
    }

    /// The headers of a request, with the secret among them.
    pub(super) fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if let Some(secret) = &self.access.secret {
            headers.insert(AUTHORIZATION, secret.header());
        }
        headers
    }

    pub(super) async fn get(&self, url: &Url) -> QueryResult<BoxCloneSyncChannel> {
        let known = || self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(open) = known().get(url) {
            return Ok(open.clone());
        }
        let failed = |error| not_connected(url, &error);
        let endpoint = Endpoint::from_shared(url.to_string()).map_err(failed)?;
        let endpoint = endpoint
            .connect_timeout(CONNECTING)
            .tcp_nodelay(true)
            .http2_keep_alive_interval(PING_EVERY)
            .keep_alive_timeout(PING_TIMEOUT)
            .keep_alive_while_idle(true)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW);
        let channel = match &self.access.tls {
            Some(tls) => within(tls, &endpoint).await,
            None => endpoint.connect().await,
        };
        let channel = BoxCloneSyncChannel::new(channel.map_err(failed)?);
        known().insert(url.clone(), channel.clone());
        Ok(channel)
    }

    pub(super) fn forget(&self, url: &Url) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(url);
    }
}

/// A connection within TLS.
async fn within(tls: &Tls, endpoint: &Endpoint) -> Result<Transport, tonic::transport::Error> {
    let tls = tls.clone();
    let connector = service_fn(move |uri: Uri| {
        let tls = tls.clone();
        async move {
            let host = uri.host().unwrap_or_default(); // default: nobody has the empty name
            let host = host.trim_start_matches('[').trim_end_matches(']');
            let stream = TcpStream::connect((host, uri.port_u16().unwrap_or(PLAIN_PORT))).await?;
            stream.set_nodelay(true)?;
            tls.connect(host, stream).await.map(TokioIo::new)
        }
    });
    endpoint.connect_with_connector(connector).await
}

/// The workers as one statement sees them.
#[derive(Clone)]
pub(super) struct StatementChannels {
    pub(super) connections: Arc<Connections>,
    /// On the coordinator: the statement.
    pub(super) sent: Option<Sent>,
}

#[async_trait]
impl ChannelResolver for StatementChannels {
    async fn get_worker_client_for_url(&self, url: &Url) -> QueryResult<Box<dyn WorkerChannel>> {
        let inner = create_worker_client(self.connections.get(url).await?);
        Ok(Box::new(Channel { inner, url: url.clone(), channels: self.clone() }))
    }
}

struct Channel {
    inner: Box<dyn WorkerChannel>,
    url: Url,
    channels: StatementChannels,
}

impl Channel {
    fn with_secret(&self, mut headers: HeaderMap) -> HeaderMap {
        headers.extend(self.channels.connections.headers());
        headers
    }

    /// The error with its worker; the next request makes a connection anew.
    fn failed(&self, error: &DataFusionError) -> DataFusionError {
        self.channels.connections.forget(&self.url);
        received(&self.url, error)
    }

    fn named<T: Send + 'static>(
        &self,
        stream: BoxStream<'static, QueryResult<T>>,
    ) -> BoxStream<'static, QueryResult<T>> {
        let (url, connections) = (self.url.clone(), self.channels.connections.clone());
        stream
            .map(move |item| {
                item.map_err(|error| {
                    connections.forget(&url);
                    received(&url, &error)
                })
            })
            .boxed()
    }
}

#[async_trait]
impl WorkerChannel for Channel {
    async fn coordinator_channel(
        &mut self,
        headers: HeaderMap,
        mut request: SetPlanRequest,
        messages: BoxStream<'static, CoordinatorToWorkerMsg>,
        metrics: ExecutionPlanMetricsSet,
        context: &Arc<TaskContext>,
    ) -> QueryResult<BoxStream<'static, QueryResult<WorkerToCoordinatorMsg>>> {
        let mut headers = self.with_secret(headers);
        if let (Some(Sent { statement, account, codec }), MaybeEncoded::Decoded(plan)) =
            (&self.channels.sent, &request.plan)
        {
            headers.insert(HEADER, statement.clone());
            headers.extend(account.clone().map(|name| (HeaderName::from_static(ACCOUNT), name)));
            request.plan = MaybeEncoded::Decoded(Arc::new(Envelope::seal(plan.clone(), codec)?));
        }
        let sent =
            self.inner.coordinator_channel(headers, request, messages, metrics, context).await;
        match sent {
            Ok(messages) => Ok(self.named(messages)),
            Err(error) => Err(self.failed(&error)),
        }
    }

    async fn execute_task(
        &mut self,
        headers: HeaderMap,
        request: ExecuteTaskRequest,
        metrics: ExecutionPlanMetricsSet,
        context: &Arc<TaskContext>,
    ) -> QueryResult<Vec<BoxStream<'static, QueryResult<RecordBatch>>>> {
        let headers = self.with_secret(headers);
        match self.inner.execute_task(headers, request, metrics, context).await {
            Ok(streams) => Ok(streams.into_iter().map(|rows| self.named(rows)).collect()),
            Err(error) => Err(self.failed(&error)),
        }
    }

    async fn get_worker_info(
        &mut self,
        request: GetWorkerInfoRequest,
    ) -> QueryResult<GetWorkerInfoResponse> {
        self.inner.get_worker_info(request).await
    }
}
