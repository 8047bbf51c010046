//! Functions of extensions: what they take and give, and by what they are found.
//!
//! A value is what a query carries: numbers, truths and texts as such, everything else (arrays too) as its payload, the bytes of a tuple
//! without their length word. What depends on the database's locale is asked of [`Letters`].
//!
//! Invariant: a function gives what the extension's own code gives for every argument, errors in its words included; bytes that are no
//! value of their type are an error, never a panic.

use pagemill_format::Error as FormatError;

/// An argument.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Argument<'a> {
    /// NULL of any type; no strict function sees one.
    Null,
    /// `boolean`.
    Bool(bool),
    /// `integer`.
    Int4(i32),
    /// `bigint`.
    Int8(i64),
    /// `real`.
    Float4(f32),
    /// `double precision`.
    Float8(f64),
    /// `text` and what is kept like one.
    Text(&'a str),
    /// A value of any other type, as its payload.
    Payload(&'a [u8]),
}

/// A result, of the kind that the function declares.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// NULL.
    Null,
    /// `boolean`.
    Bool(bool),
    /// `integer`.
    Int4(i32),
    /// `bigint`.
    Int8(i64),
    /// `real`.
    Float4(f32),
    /// `double precision`.
    Float8(f64),
    /// `text` and what is kept like one.
    Text(String),
    /// A value of any other type, as its payload.
    Payload(Vec<u8>),
}

/// Why a call has no result, in the words of the extension.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct CallError {
    /// The SQLSTATE.
    pub state: &'static str,
    /// The primary message.
    pub message: String,
    /// The detail.
    pub detail: Option<String>,
    /// The hint.
    pub hint: Option<String>,
}

impl CallError {
    /// An error without a detail.
    #[cold]
    pub fn new(state: &'static str, message: impl Into<String>) -> Self {
        Self { state, message: message.into(), detail: None, hint: None }
    }

    /// A call with arguments of other types than those that the extension declares for this function.
    #[cold]
    pub fn other_arguments() -> Self {
        Self::new("42804", "arguments of other types than the extension's functions take")
    }
}

impl From<FormatError> for CallError {
    fn from(error: FormatError) -> Self {
        Self::new("XX001", error.to_string())
    }
}

/// What the database's locale says of characters, and its version.
pub trait Letters {
    /// The major version of the server.
    fn major(&self) -> u32;
    /// The text in lower case, as `lower` of the database's collation has it.
    fn lower(&self, text: &str) -> String;
    /// True for a letter or a digit.
    fn is_alphanumeric(&self, character: char) -> bool;
}

/// A function of an extension.
pub struct ExtensionFunction {
    /// By the name of the server's C function, `pg_proc.prosrc`.
    pub symbol: &'static str,
    /// True where NULL in any place gives NULL, `pg_proc.proisstrict`.
    pub is_strict: bool,
    /// What it computes.
    pub call: Call,
}

/// What a function makes of its arguments.
pub type Call = fn(&dyn Letters, &[Argument<'_>]) -> Result<Value, CallError>;

/// A strict function.
pub const fn strict(symbol: &'static str, call: Call) -> ExtensionFunction {
    ExtensionFunction { symbol, is_strict: true, call }
}
