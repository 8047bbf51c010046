//! The one error: what PostgreSQL would say with its SQLSTATE, what is not supported here, or what the engine below says.
//!
//! Invariant: a statement whose meaning is not known here to the last digit ends in an error; it is never answered by guess.

use std::fmt;

use datafusion::error::DataFusionError;
use pagemill_cluster::Refusal;
use pagemill_cluster::refusal::TypeCause;
use pagemill_io::ErrorKind;

/// What went wrong.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The statement is wrong, not supported, or failed on a value.
    #[error(transparent)]
    Statement(#[from] StatementError),
    /// A table could not be read.
    #[error(transparent)]
    Engine(pagemill_engine::Error),
    /// A value has no place in a batch.
    #[error(transparent)]
    Arrow(#[from] pagemill_arrow::Error),
    /// The query engine.
    #[error("{0}")]
    Query(Box<DataFusionError>),
    /// The operating system.
    #[error("{0}")]
    System(#[from] std::io::Error),
}

impl Error {
    /// True where a stored numeric is one that no decimal is, NaN for one.
    /// True for what PostgreSQL can do and this cannot.
    pub(crate) fn is_unsupported(&self) -> bool {
        let is_it = |error: &StatementError| error.state == SqlState::FEATURE_NOT_SUPPORTED;
        matches!(self, Self::Statement(error) if is_it(error))
    }

    /// True where the memory that is allowed did not do.
    pub(crate) fn is_of_memory(&self) -> bool {
        self.report().state == SqlState::OUT_OF_MEMORY
    }

    /// True where a query of one value that was made a join found several.
    pub(crate) fn is_of_several_rows(&self) -> bool {
        let is_it = |error: &StatementError| error.message.starts_with(SEVERAL_ROWS);
        matches!(self, Self::Statement(error) if is_it(error))
    }

    /// True for an error that the values of some row gave, SQLSTATE class 22.
    pub(crate) fn is_of_values(&self) -> bool {
        matches!(self, Self::Statement(error) if error.state.0.starts_with("22"))
    }

    pub(crate) fn is_no_decimal(&self) -> bool {
        let is_it = |error: &pagemill_arrow::Error| match error {
            pagemill_arrow::Error::Unfit(unfit) => unfit.remedy == pagemill_arrow::Remedy::Numeric,
            _ => false,
        };
        let Self::Query(error) = self else {
            return matches!(self, Self::Arrow(error) if is_it(error));
        };
        let mut next: Option<&(dyn std::error::Error + 'static)> = Some(&**error);
        while let Some(current) = next {
            if current.downcast_ref().is_some_and(is_it)
                || current.downcast_ref().is_some_and(Self::is_no_decimal)
            {
                return true;
            }
            next = inside(current);
        }
        false
    }
}

impl Error {
    /// The error as a server reports it: with an SQLSTATE, whatever part it came from.
    pub fn report(&self) -> StatementError {
        let mut next: Option<&(dyn std::error::Error + 'static)> = Some(self.wrapped());
        while let Some(current) = next {
            if let Some(found) = known(current) {
                return found;
            }
            next = inside(current);
        }
        match self {
            Self::System(error) => StatementError::new(SqlState::IO_ERROR, error.to_string()),
            other => StatementError::new(SqlState("XX000"), other.to_string()),
        }
    }

    fn wrapped(&self) -> &(dyn std::error::Error + 'static) {
        match self {
            Self::Query(error) => &**error,
            Self::Engine(error) => error,
            Self::Arrow(error) => error,
            Self::Statement(error) => error,
            Self::System(error) => error,
        }
    }
}

/// What one error of a chain is to a client.
fn known(error: &(dyn std::error::Error + 'static)) -> Option<StatementError> {
    if let Some(own) = error.downcast_ref::<Error>() {
        return Some(own.report());
    }
    if let Some(statement) = error.downcast_ref::<StatementError>() {
        return Some(statement.clone());
    }
    if let Some(engine) = error.downcast_ref::<pagemill_engine::Error>() {
        return Some(of_engine(engine));
    }
    match error.downcast_ref::<pagemill_arrow::Error>() {
        Some(pagemill_arrow::Error::Engine(engine)) => return Some(of_engine(engine)),
        Some(unfit) => {
            return Some(StatementError::new(SqlState::FEATURE_NOT_SUPPORTED, unfit.to_string()));
        }
        None => {}
    }
    match error.downcast_ref::<DataFusionError>() {
        Some(DataFusionError::ResourcesExhausted(what)) => {
            let what = what.lines().next().unwrap_or_default();
            Some(StatementError::new(SqlState::OUT_OF_MEMORY, format!("out of memory: {what}")))
        }
        _ => None,
    }
}

fn of_engine(error: &pagemill_engine::Error) -> StatementError {
    match error {
        pagemill_engine::Error::Cancelled => {
            let message = "canceling statement due to user request";
            StatementError::new(SqlState::QUERY_CANCELED, message)
        }
        pagemill_engine::Error::Refused(refusal) => {
            StatementError::new(SqlState::FEATURE_NOT_SUPPORTED, refusal.to_string())
        }
        pagemill_engine::Error::Cluster(pagemill_cluster::Error::Refused(refusal))
            if is_unknown_type(refusal) =>
        {
            StatementError::new(SqlState::FEATURE_NOT_SUPPORTED, refusal.to_string())
        }
        pagemill_engine::Error::Cluster(pagemill_cluster::Error::Io(error))
        | pagemill_engine::Error::Output(error)
        | pagemill_engine::Error::Input(error) => {
            StatementError::new(state_of_io(error), error.to_string())
        }
        other => StatementError::new(SqlState::DATA_CORRUPTED, other.to_string()),
    }
}

/// True for a type whose values only its own library knows, and false for one that the catalogs have wrong.
fn is_unknown_type(refusal: &Refusal) -> bool {
    let Refusal::Type { cause, .. } = refusal else { return false };
    let is_damage = matches!(
        cause,
        TypeCause::ContainsItself
            | TypeCause::Layout(_)
            | TypeCause::NotInPgRange
            | TypeCause::MultirangeOverNoRange
    );
    !is_damage
}

/// As the server tells what the system does not let it do, and files that are not as it left them.
fn state_of_io(error: &pagemill_io::Error) -> SqlState {
    match error.kind() {
        ErrorKind::ShortRead { .. } | ErrorKind::PastEnd { .. } | ErrorKind::TooLarge { .. } => {
            SqlState::DATA_CORRUPTED
        }
        ErrorKind::NotFound => SqlState("58P01"),
        ErrorKind::NoSpace | ErrorKind::Quota => SqlState("53100"),
        _ => SqlState::IO_ERROR,
    }
}

impl From<pagemill_engine::Error> for Error {
    fn from(error: pagemill_engine::Error) -> Self {
        Self::Engine(error)
    }
}

impl From<pagemill_cluster::Error> for Error {
    fn from(error: pagemill_cluster::Error) -> Self {
        Self::Engine(error.into())
    }
}

/// Of a query of one value that was made a join.
pub(crate) const SEVERAL_ROWS: &str =
    "a query of one value that refers to the query around it and finds several rows";

/// Results here.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What PostgreSQL calls an error's SQLSTATE.
///
/// Source: `src/backend/utils/errcodes.txt`, PostgreSQL 18.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SqlState(pub &'static str);

#[allow(missing_docs, reason = "each is named as PostgreSQL names it")]
impl SqlState {
    pub const FEATURE_NOT_SUPPORTED: Self = Self("0A000");
    pub const CARDINALITY_VIOLATION: Self = Self("21000");
    pub const NUMERIC_OUT_OF_RANGE: Self = Self("22003");
    pub const STRING_TOO_LONG: Self = Self("22001");
    pub const DATETIME_OVERFLOW: Self = Self("22008");
    pub const SUBSTRING_ERROR: Self = Self("22011");
    pub const DIVISION_BY_ZERO: Self = Self("22012");
    pub const INVALID_PARAMETER: Self = Self("22023");
    pub const INVALID_TEXT: Self = Self("22P02");
    pub const SUCCESS: Self = Self("00000");
    pub const READ_ONLY: Self = Self("25006");
    pub const OUT_OF_MEMORY: Self = Self("53200");
    pub const INVALID_LOGARITHM: Self = Self("2201E");
    pub const INVALID_POWER: Self = Self("2201F");
    pub const INVALID_REGULAR_EXPRESSION: Self = Self("2201B");
    pub const SYNTAX_ERROR: Self = Self("42601");
    pub const AMBIGUOUS_COLUMN: Self = Self("42702");
    pub const UNDEFINED_COLUMN: Self = Self("42703");
    pub const UNDEFINED_OBJECT: Self = Self("42704");
    pub const DUPLICATE_ALIAS: Self = Self("42712");
    pub const AMBIGUOUS_FUNCTION: Self = Self("42725");
    pub const GROUPING_ERROR: Self = Self("42803");
    pub const DATATYPE_MISMATCH: Self = Self("42804");
    pub const UNDEFINED_FUNCTION: Self = Self("42883");
    pub const UNDEFINED_TABLE: Self = Self("42P01");
    pub const INVALID_COLUMN_REFERENCE: Self = Self("42P10");
    pub const DENIED: Self = Self("42501");
    pub const INDETERMINATE_COLLATION: Self = Self("42P22");
    /// Two collations are named for one value.
    pub const COLLATION_MISMATCH: Self = Self("42P21");
    pub const WINDOWING_ERROR: Self = Self("42P20");
    pub const CANNOT_COERCE: Self = Self("42846");
    pub const QUERY_CANCELED: Self = Self("57014");
    pub const DATA_CORRUPTED: Self = Self("XX001");
    pub const IO_ERROR: Self = Self("58030");
}

/// An error of a statement, in PostgreSQL's words where it has such an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatementError {
    /// Its class.
    pub state: SqlState,
    /// The primary message.
    pub message: String,
    /// More of what is wrong.
    pub detail: Option<Box<str>>,
    /// What to do instead.
    pub hint: Option<String>,
    /// Where in the statement, line and column from 1.
    pub position: Option<(u64, u64)>,
    /// The same as a number of characters of all that was sent, from 1, once that is known.
    pub character: Option<usize>,
}

impl StatementError {
    /// An error with this message.
    pub fn new(state: SqlState, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { state, message, detail: None, hint: None, position: None, character: None }
    }

    /// What PostgreSQL can do and this cannot.
    pub fn unsupported(what: impl fmt::Display) -> Self {
        Self::new(SqlState::FEATURE_NOT_SUPPORTED, format!("{what} is not supported here"))
    }

    /// With more of what is wrong.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<Box<str>>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// With what to do instead.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// With where it is, unless that is known already.
    #[must_use]
    pub fn at(mut self, line: u64, column: u64) -> Self {
        if self.position.is_none() && line > 0 {
            self.position = Some((line, column));
        }
        self
    }

    /// Of a statement that begins at this byte of what was sent.
    #[must_use]
    pub fn within(mut self, sent: &str, begin: usize) -> Self {
        self.character = self.position.and_then(|(line, column)| {
            let line = usize::try_from(line).ok()?.checked_sub(1)?;
            let ends = sent[begin..].match_indices('\n').map(|(at, _)| begin + at + 1);
            let start = std::iter::once(begin).chain(ends).nth(line)?;
            Some(sent[..start].chars().count() + usize::try_from(column).ok()?)
        });
        self
    }

    /// Of a text that nobody sent as it stands.
    #[must_use]
    pub fn without_position(self) -> Self {
        Self { position: None, character: None, ..self }
    }
}

impl fmt::Display for StatementError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if let Some((line, column)) = self.position {
            write!(f, ", at line {line}, column {column}")?;
        }
        Ok(())
    }
}

impl std::error::Error for StatementError {}

impl From<StatementError> for DataFusionError {
    fn from(error: StatementError) -> Self {
        Self::External(Box::new(error))
    }
}

impl From<Error> for DataFusionError {
    fn from(error: Error) -> Self {
        match error {
            Error::Statement(error) => error.into(),
            Error::Query(error) => *error,
            other => Self::External(Box::new(other)),
        }
    }
}

impl From<DataFusionError> for Error {
    fn from(error: DataFusionError) -> Self {
        if let Some(found) = statement_error(&error) {
            return Self::Statement(found.clone());
        }
        match error.find_root() {
            DataFusionError::Execution(what) if what.contains("returned more than one row") => {
                let message = "more than one row returned by a subquery used as an expression";
                StatementError::new(SqlState::CARDINALITY_VIOLATION, message).into()
            }
            // Plans that the engine has no way to run.
            DataFusionError::NotImplemented(what)
            | DataFusionError::Plan(what)
            | DataFusionError::Internal(what) => {
                let what = what.lines().next().unwrap_or_default();
                StatementError::unsupported(format!("a statement of this shape ({what})")).into()
            }
            DataFusionError::SchemaError(what, _) => {
                StatementError::unsupported(format!("a statement of this shape ({what})")).into()
            }
            _ => Self::Query(Box::new(error)),
        }
    }
}

/// The error that an expression ended in, however deep the query engine wrapped it.
fn statement_error(error: &DataFusionError) -> Option<&StatementError> {
    let mut next: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(current) = next {
        if let Some(found) = current.downcast_ref::<StatementError>() {
            return Some(found);
        }
        next = inside(current);
    }
    None
}

/// What an error of the query engine has in it.
fn inside<'e>(
    error: &'e (dyn std::error::Error + 'static),
) -> Option<&'e (dyn std::error::Error + 'static)> {
    match error.downcast_ref::<DataFusionError>() {
        Some(DataFusionError::External(inner)) => Some(&**inner),
        Some(DataFusionError::Shared(inner)) => Some(&**inner),
        _ => error.source(),
    }
}

/// `not supported here`, as an error to return.
pub fn unsupported<T>(what: impl fmt::Display) -> Result<T> {
    Err(StatementError::unsupported(what).into())
}

/// A statement's error to return.
pub fn fail<T>(state: SqlState, message: impl Into<String>) -> Result<T> {
    Err(StatementError::new(state, message).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_of_an_extension_is_no_damage() {
        let state = |cause: TypeCause| {
            let name = "hstore".to_owned();
            let error = pagemill_cluster::Error::refused(Refusal::Type { name, cause });
            Error::from(error).report().state
        };
        assert_eq!(state(TypeCause::Input), SqlState::FEATURE_NOT_SUPPORTED);
        assert_eq!(state(TypeCause::CanonicalFunction), SqlState::FEATURE_NOT_SUPPORTED);
        assert_eq!(state(TypeCause::ContainsItself), SqlState::DATA_CORRUPTED);
    }
}
