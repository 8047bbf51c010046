//! Each HTTP request on its way: counted, given time, made again where that may help, and its refusal remembered.
//!
//! Below object_store's clients and above the connections, so that nothing they ask for is missed: pages of listings and
//! requests for credentials included. What a server refuses is noted for the task that asked ([`noted`]), as the clients tell
//! of it in words only.
//!
//! Invariant: a request whose answer cannot get better is made once.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService,
    ReqwestConnector,
};

use crate::request_counts::{RequestCounts, RequestKind};
use crate::retry::{RetryPolicy, Tries};

/// How much of an answer that refuses is looked at.
const MOST_WORDS: usize = 300;
/// How long a machine that knows credentials has to answer, where there is one.
const CREDENTIALS_SILENCE: Duration = Duration::from_secs(3);

tokio::task_local! {
    static LAST: RefCell<Option<Refused>>;
}

/// Why the last request of a task failed.
#[derive(Debug, Clone)]
pub(crate) struct Refused {
    /// The status; 0 where there was no answer.
    pub(crate) status: u16,
    /// The server's code, or the reason why there was no answer.
    pub(crate) said: String,
    /// The region that the server named.
    pub(crate) region: Option<String>,
    pub(crate) tries: u32,
    pub(crate) waited: Duration,
    /// It was asked for credentials.
    pub(crate) for_credentials: bool,
}

/// Runs requests, and tells why the last of them failed, if it did.
pub(crate) async fn noted<T>(work: impl Future<Output = T>) -> (T, Option<Refused>) {
    LAST.scope(RefCell::new(None), async {
        let done = work.await;
        (done, LAST.with(|last| last.take()))
    })
    .await
}

fn note(refused: Option<Refused>) {
    // Requests outside of a task of ours have nobody who asks.
    let _ = LAST.try_with(|last| *last.borrow_mut() = refused);
}

/// Makes clients whose requests are counted and tried again.
#[derive(Debug, Clone)]
pub(crate) struct Connector {
    pub(crate) counts: Arc<RequestCounts>,
    pub(crate) policy: RetryPolicy,
}

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let client = ReqwestConnector::default().connect(options)?;
        Ok(HttpClient::new(Requests { client, with: self.clone() }))
    }
}

#[derive(Debug)]
struct Requests {
    client: HttpClient,
    with: Connector,
}

#[async_trait::async_trait]
impl HttpService for Requests {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let for_credentials = asks_for_credentials(&request);
        let kind = if for_credentials { RequestKind::Other } else { kind_of(&request) };
        let silence = if for_credentials { CREDENTIALS_SILENCE } else { self.with.policy.silence };
        let mut tries = Tries::begin(self.with.policy);
        loop {
            self.with.counts.count(kind);
            let sent = tokio::time::timeout(silence, self.client.execute(request.clone())).await;
            let answer = sent.unwrap_or_else(|_| {
                let reason = format!("nothing within {} s", silence.as_secs());
                Err(HttpError::new(HttpErrorKind::Timeout, std::io::Error::other(reason)))
            });
            let pause = match &answer {
                _ if for_credentials => None,
                Ok(answer) if !may_pass(answer.status().as_u16()) => None,
                Ok(answer) => tries.next(retry_after(answer)),
                Err(_) => tries.next(None),
            };
            let Some(pause) = pause else {
                let given_up = GivenUp { tries: &tries, for_credentials };
                return given_up.answer(answer).await;
            };
            tokio::time::sleep(pause).await;
            self.with.counts.count_retry();
        }
    }
}

/// A request that is not made again.
struct GivenUp<'a> {
    tries: &'a Tries,
    for_credentials: bool,
}

impl GivenUp<'_> {
    /// The last answer, noted where it is no success.
    async fn answer(
        self,
        answer: Result<HttpResponse, HttpError>,
    ) -> Result<HttpResponse, HttpError> {
        let answer = match answer {
            Ok(answer) if answer.status().is_success() => {
                note(None);
                return Ok(answer);
            }
            Ok(answer) => answer,
            Err(error) => {
                note(Some(self.refused(0, reason_of(&error), None)));
                return Err(error);
            }
        };
        let (parts, body) = answer.into_parts();
        let bytes = body.bytes().await.unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let header = |name: &str| parts.headers.get(name)?.to_str().ok().map(str::to_owned);
        let code = code_in(&text).or_else(|| header("x-ms-error-code"));
        let region = header("x-amz-bucket-region").or_else(|| element(&text, "Region"));
        note(Some(self.refused(parts.status.as_u16(), code.unwrap_or_default(), region)));
        Ok(HttpResponse::from_parts(parts, text.into()))
    }

    fn refused(&self, status: u16, said: String, region: Option<String>) -> Refused {
        let (tries, waited) = (self.tries.made(), self.tries.waited());
        let for_credentials = self.for_credentials;
        Refused { status, said, region, tries, waited, for_credentials }
    }
}

/// True for a status that says: later.
fn may_pass(status: u16) -> bool {
    matches!(status, 408 | 429 | 500 | 502..=504)
}

fn retry_after(answer: &HttpResponse) -> Option<Duration> {
    let seconds = answer.headers().get("retry-after")?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}

fn kind_of(request: &HttpRequest) -> RequestKind {
    let query = request.uri().query().unwrap_or_default();
    let lists = query.contains("list-type=") || query.contains("comp=list");
    match request.method().as_str() {
        "GET" if lists => RequestKind::List,
        "PROPFIND" => RequestKind::List,
        "GET" => RequestKind::Get,
        "HEAD" => RequestKind::Head,
        _ => RequestKind::Other,
    }
}

/// True for what is asked of those who hand out credentials: the machine's metadata service, and the clouds' own.
fn asks_for_credentials(request: &HttpRequest) -> bool {
    const HOSTS: [&str; 8] = [
        "169.254.169.254",
        "169.254.170.2",
        "169.254.170.23",
        "metadata.google.internal",
        "metadata",
        "oauth2.googleapis.com",
        "login.microsoftonline.com",
        "iamcredentials.googleapis.com",
    ];
    const PATHS: [&str; 4] =
        ["/latest/api/token", "/latest/meta-data/", "/computeMetadata/", "/metadata/identity/"];
    let host = request.uri().host().unwrap_or_default();
    let path = request.uri().path();
    let asks = PATHS.iter().any(|known| path.starts_with(known));
    asks || HOSTS.contains(&host) || host.starts_with("sts.")
}

/// The innermost reason, as the others only say that something failed.
fn reason_of(error: &HttpError) -> String {
    let mut reason: &dyn std::error::Error = error;
    while let Some(source) = reason.source() {
        reason = source;
    }
    let words = reason.to_string();
    words.chars().filter(|letter| !letter.is_control()).take(MOST_WORDS).collect()
}

/// The code that S3 and Azure put into an answer in XML, and Google too.
fn code_in(text: &str) -> Option<String> {
    element(text, "Code")
}

/// The text of the first element of a name.
fn element(text: &str, name: &str) -> Option<String> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    let (inner, _) = rest.split_once(&format!("</{name}>"))?;
    let is_word = |letter: &char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
    Some(inner.chars().filter(is_word).take(MOST_WORDS).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_of_an_answer_is_found_and_nothing_else_of_it_is_repeated() {
        let text = "<Error><Code>AccessDenied</Code><Message>key AKIA</Message></Error>";
        assert_eq!(code_in(text).as_deref(), Some("AccessDenied"));
        assert_eq!(code_in("<Code>a b<"), None);
        assert_eq!(code_in("<Code>a\u{7}\nb</Code>").as_deref(), Some("ab"));
    }
}
