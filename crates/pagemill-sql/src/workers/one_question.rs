//! A worker's service of one question: a message of bounded size in, one out.
//!
//! Invariants: a question whose asker is gone is not answered any more; another path is no question.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde::Serialize;
use tonic::body::Body;
use tonic::server::{NamedService, UnaryService};
use tonic::{Request, Response, Status};
use tower::Service;

use super::plain_codec::Plain;

/// Who answers.
pub(super) trait Answers: Send + Sync + 'static {
    /// The service, as gRPC names it.
    const NAME: &'static str;
    /// The question.
    const PATH: &'static str;
    /// Bytes that it has at most.
    const LONGEST: usize;

    /// The answer, as JSON.
    fn respond(self: Arc<Self>, asked: Vec<u8>) -> BoxFuture<'static, Result<Vec<u8>, Status>>;
}

/// An answer as JSON.
///
/// # Errors
/// When it has no form there.
pub(super) fn as_json(answer: &impl Serialize) -> Result<Vec<u8>, Status> {
    serde_json::to_vec(answer).map_err(|error| Status::internal(error.to_string()))
}

/// The service.
pub(super) struct OneQuestion<A>(pub(super) Arc<A>);

impl<A> Clone for OneQuestion<A> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<A: Answers> NamedService for OneQuestion<A> {
    const NAME: &'static str = A::NAME;
}

impl<A: Answers> Service<http::Request<Body>> for OneQuestion<A> {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<http::Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let call = Call(self.0.clone());
        async move {
            if request.uri().path() != A::PATH {
                return Ok(Status::unimplemented("there is one question").into_http());
            }
            let mut server = tonic::server::Grpc::new(Plain).max_decoding_message_size(A::LONGEST);
            Ok(server.unary(call, request).await)
        }
        .boxed()
    }
}

struct Call<A>(Arc<A>);

impl<A: Answers> UnaryService<Vec<u8>> for Call<A> {
    type Response = Vec<u8>;
    type Future = BoxFuture<'static, Result<Response<Vec<u8>>, Status>>;

    fn call(&mut self, request: Request<Vec<u8>>) -> Self::Future {
        let answer = self.0.clone().respond(request.into_inner());
        answer.map(|answer| answer.map(Response::new)).boxed()
    }
}
