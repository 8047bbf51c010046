//! One question and its answer, over the connections that statements go over: gRPC with JSON in it.
//!
//! Invariants: a message is of bounded size; a question whose asker is gone is not answered any more.

use std::sync::Arc;

use datafusion::error::DataFusionError;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::uri::PathAndQuery;
use tonic::metadata::MetadataMap;
use tonic::{Code, Extensions, Request, Status};
use url::Url;

use super::super::channels::Connections;
use super::super::errors::{received, to_send};
use super::super::one_question::{Answers, as_json};
use super::super::plain_codec::Plain;
use super::doing::Exporter;
use super::sent::{Answered, Asked};
use crate::error::Error;

const PATH: &str = "/pagemill.Export/Ask";
/// Bytes of a message.
const MOST_MESSAGE: usize = 1 << 20;

/// Why a worker gave no answer.
#[derive(Debug)]
pub(super) enum NoAnswer {
    /// Another one may give it: the worker is gone.
    Lost(Error),
    /// It is what any worker would say.
    Refused(Error),
}

/// Asks a worker.
///
/// # Errors
/// When it does not answer, or refuses.
pub(super) async fn ask(
    connections: &Connections,
    url: &Url,
    asked: &Asked,
) -> Result<Answered, NoAnswer> {
    let lost = |error: DataFusionError| NoAnswer::Lost(error.into());
    let channel = connections.get(url).await.map_err(lost)?;
    let json = |error: serde_json::Error| lost(DataFusionError::External(error.into()));
    let message = serde_json::to_vec(asked).map_err(json)?;
    let request = Request::from_parts(
        MetadataMap::from_headers(connections.headers()),
        Extensions::default(),
        message,
    );
    let mut client = tonic::client::Grpc::new(channel).max_decoding_message_size(MOST_MESSAGE);
    let sent = async {
        let ready = client.ready().await;
        ready.map_err(|error| Status::unavailable(error.to_string()))?;
        client.unary(request, PathAndQuery::from_static(PATH), Plain).await
    };
    match sent.await {
        Ok(answer) => serde_json::from_slice(answer.get_ref()).map_err(json),
        Err(status) => {
            let is_refusal = status.code() == Code::FailedPrecondition;
            let error = match is_refusal {
                // Its words are an error as it was sent.
                true => DataFusionError::External(status.message().into()),
                false => DataFusionError::External(Box::new(status)),
            };
            let error = Error::from(received(url, &error));
            if is_refusal {
                return Err(NoAnswer::Refused(error));
            }
            connections.forget(url);
            Err(NoAnswer::Lost(error))
        }
    }
}

impl Answers for Exporter {
    const NAME: &'static str = "pagemill.Export";
    const PATH: &'static str = PATH;
    const LONGEST: usize = MOST_MESSAGE;

    fn respond(self: Arc<Self>, asked: Vec<u8>) -> BoxFuture<'static, Result<Vec<u8>, Status>> {
        async move {
            let refused =
                |error: Error| Status::failed_precondition(to_send(error.into()).to_string());
            let asked = serde_json::from_slice(&asked);
            let asked: Asked =
                asked.map_err(|_| Status::failed_precondition("a question of another program"))?;
            as_json(&self.answer(asked).await.map_err(refused)?)
        }
        .boxed()
    }
}
