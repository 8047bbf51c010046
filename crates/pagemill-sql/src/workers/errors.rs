//! Errors on their way from a worker: what a statement ended in keeps its SQLSTATE.
//!
//! The engine sends an error as its text. So a worker makes the text of what it is to a client, and whoever gets it makes an error
//! of that again.
//!
//! Invariant: an error that was put together once is handed on as it is.

use std::collections::HashSet;
use std::error::Error as _;
use std::io;
use std::sync::{Mutex, OnceLock, PoisonError};

use datafusion::error::DataFusionError;
use pagemill_arrow::{Error as ArrowError, Remedy, RowPlace, Unfit};
use serde::{Deserialize, Serialize};
use url::Url;

use super::tls::WITHIN_TLS;
use crate::error::{Error, SqlState, StatementError};

/// What such a text begins with.
const MARK: &str = "pagemill-error:";
/// A server knows some hundreds.
const MOST_STATES: usize = 1000;
/// The connection failed.
pub(super) const CONNECTION_FAILURE: SqlState = SqlState("08006");
/// One of the two sides refuses the other: a statement does not begin anew without such a worker.
const CONNECTION_REFUSED: SqlState = SqlState("08004");
const CERTIFICATES: &str = "Give a certificate, its key and the authority's certificates, by --worker-tls-cert, --worker-tls-key and \
    --worker-tls-ca, and to a worker by --tls-cert, --tls-key and --tls-ca.";

/// What went wrong with certificates, as a cause of the transport's error.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Distrust(pub(super) String);

#[derive(Debug, Serialize, Deserialize)]
struct TravellingError {
    state: String,
    message: String,
    detail: Option<Box<str>>,
    hint: Option<String>,
    /// A numeric of a declared size is none that a decimal is.
    is_no_decimal: bool,
}

/// Rows of a stage that the worker which kept them does not give: what they are made again by.
#[cfg(feature = "ballista")]
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(super) struct LostRows {
    pub(super) worker: String,
    pub(super) stage: usize,
    /// Of the stage's input.
    pub(super) part: usize,
    pub(super) message: String,
}

#[cfg(feature = "ballista")]
impl LostRows {
    pub(super) fn of(error: &DataFusionError) -> Option<&Self> {
        match error.find_root() {
            DataFusionError::External(inner) => inner.downcast_ref(),
            _ => None,
        }
    }
}

#[cfg(feature = "ballista")]
impl From<LostRows> for DataFusionError {
    fn from(lost: LostRows) -> Self {
        Self::External(Box::new(lost))
    }
}

/// An error as it is sent.
pub(super) fn to_send(error: DataFusionError) -> DataFusionError {
    #[cfg(feature = "ballista")]
    if LostRows::of(&error).is_some() {
        return error;
    }
    if error.to_string().contains(MARK) {
        return error;
    }
    let error = Error::from(error);
    let is_no_decimal = error.is_no_decimal();
    let StatementError { state, message, detail, hint, .. } = error.report();
    let sent = TravellingError { state: state.0.to_owned(), message, detail, hint, is_no_decimal };
    match serde_json::to_string(&sent) {
        Ok(json) => DataFusionError::External(format!("{MARK}{json}").into()),
        Err(_) => DataFusionError::External(sent.message.into()),
    }
}

/// The error that came from a worker, or with the connection to it.
pub(super) fn received(url: &Url, error: &DataFusionError) -> DataFusionError {
    let text = error.to_string();
    if let Some(error) = read(&text) {
        return error;
    }
    let host = url.host_str().unwrap_or_default();
    let port = url.port_or_known_default().unwrap_or_default();
    let why = plain(error, &text);
    let message = format!("the worker {host}:{port} failed: {why}");
    match why == WITHIN_TLS {
        true => StatementError::new(CONNECTION_REFUSED, message).with_hint(CERTIFICATES).into(),
        false => StatementError::new(CONNECTION_FAILURE, message).into(),
    }
}

/// The error of a connection that has not come about.
pub(super) fn not_connected(url: &Url, error: &tonic::transport::Error) -> DataFusionError {
    let (mut text, mut next) = (error.to_string(), error.source());
    while let Some(cause) = next {
        let inner = cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        if let Some(distrust) = inner.and_then(|inner| inner.downcast_ref::<Distrust>()) {
            let host = url.host_str().unwrap_or_default();
            let port = url.port_or_known_default().unwrap_or_default();
            let message = format!("the worker {host}:{port} failed: {distrust}");
            return StatementError::new(CONNECTION_REFUSED, message).into();
        }
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    received(url, &DataFusionError::External(text.into()))
}

/// Whether one of the two sides of a connection refuses the other.
#[cfg(feature = "ballista")]
pub(super) fn is_refusal(error: &DataFusionError) -> bool {
    match error.find_root() {
        DataFusionError::External(inner) => inner
            .downcast_ref::<StatementError>()
            .is_some_and(|error| error.state == CONNECTION_REFUSED),
        _ => false,
    }
}

/// What a transport says, without what it says beside.
fn plain<'e>(error: &'e DataFusionError, text: &'e str) -> String {
    let mut next: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(current) = next {
        if let Some(status) = current.downcast_ref::<tonic::Status>() {
            return match status.message() {
                "" => status.code().to_string(),
                message => message.to_owned(),
            };
        }
        next = match current.downcast_ref::<DataFusionError>() {
            Some(DataFusionError::External(inner)) => Some(&**inner),
            Some(DataFusionError::Shared(inner)) => Some(&**inner),
            _ => current.source(),
        };
    }
    text.to_owned()
}

fn read(text: &str) -> Option<DataFusionError> {
    let (_, json) = text.split_once(MARK)?;
    let mut values = serde_json::Deserializer::from_str(json).into_iter::<TravellingError>();
    let TravellingError { state, message, detail, hint, is_no_decimal } = values.next()?.ok()?;
    if is_no_decimal {
        let (row, column) = (RowPlace::Answer(0), String::new());
        let unfit = Unfit { row, column, what: message, remedy: Remedy::Numeric };
        let error = Error::Arrow(ArrowError::Unfit(Box::new(unfit)));
        return Some(DataFusionError::External(Box::new(error)));
    }
    let error =
        StatementError { detail, hint, ..StatementError::new(known_state(&state), message) };
    Some(error.into())
}

/// The SQLSTATE of this text. Those that were met are kept until the process ends.
fn known_state(text: &str) -> SqlState {
    static STATES: OnceLock<Mutex<HashSet<&'static str>>> = OnceLock::new();
    let states = STATES.get_or_init(Mutex::default);
    let mut states = states.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = states.get(text) {
        return SqlState(known);
    }
    let is_one =
        text.len() == 5 && text.bytes().all(|b| b.is_ascii_digit() || b.is_ascii_uppercase());
    if !is_one || states.len() >= MOST_STATES {
        return SqlState("XX000");
    }
    let kept: &'static str = Box::leak(Box::from(text));
    states.insert(kept);
    SqlState(kept)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn there_and_back(error: DataFusionError) -> Error {
        let url = Url::parse("http://w1.example:5999").unwrap();
        let sent = DataFusionError::External(to_send(to_send(error)).to_string().into());
        received(&url, &DataFusionError::Shared(Arc::new(sent))).into()
    }

    #[test]
    fn a_statement_s_error_comes_back_as_it_was() {
        let error = StatementError::new(SqlState::DIVISION_BY_ZERO, "division by zero");
        let back = there_and_back(error.clone().with_hint("none").into()).report();
        assert_eq!((back.state, back.message), (error.state, error.message));
        assert_eq!(back.hint.as_deref(), Some("none"));
        let back =
            there_and_back(DataFusionError::ResourcesExhausted("much\nmore".into())).report();
        assert_eq!((back.state.0, back.message.as_str()), ("53200", "out of memory: much"));
    }

    #[test]
    fn a_number_that_no_decimal_is_is_told_as_that() {
        let row = RowPlace::Answer(1);
        let unfit = Unfit { row, column: "n".into(), what: "NaN".into(), remedy: Remedy::Numeric };
        let error = Error::Arrow(ArrowError::Unfit(Box::new(unfit)));
        assert!(there_and_back(DataFusionError::External(Box::new(error))).is_no_decimal());
    }

    #[test]
    fn a_lost_connection_names_the_worker() {
        let url = Url::parse("http://w1.example:5999").unwrap();
        let status = tonic::Status::unavailable("connection reset");
        let error = received(&url, &DataFusionError::External(Box::new(status)));
        let told = Error::from(error).report();
        assert_eq!(told.state, CONNECTION_FAILURE);
        assert_eq!(told.message, "the worker w1.example:5999 failed: connection reset");
    }
}
