//! Why values of a type, expressions or orders are not known here.
//!
//! Invariant: the type or expression is named as SQL spells it, never by its OID alone.

use pagemill_format::{Error as FormatError, Oid};

use super::Refusal;

/// Why `money` cannot be printed in a locale.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MoneyCause {
    /// It is in no table.
    #[error("whose way to print money is not known")]
    UnknownLocale,
    /// Its sign for the currency cannot be encoded.
    #[error("whose currency the encoding of the database does not have")]
    NotInEncoding,
}

/// What is in the way of a type's values.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TypeCause {
    /// It contains itself, or is nested deeper than any type can be.
    #[error("contains itself")]
    ContainsItself,
    /// `typlen` or `typalign` have values that they cannot have.
    #[error("cannot be read: {0}")]
    Layout(FormatError),
    /// It is a range or multirange without its row.
    #[error("is not in pg_range")]
    NotInPgRange,
    /// Its output function is not known.
    #[error("cannot be printed: {0}")]
    Output(OutputCause),
    /// Its input function is not known.
    #[error("cannot be read: its input function is not built in, and only a server can run it")]
    Input,
    /// It has no input function, or one that only refuses.
    #[error("has no values that could be read from a text")]
    NoInput,
    /// It is a pseudo-type.
    #[error("is a pseudo-type, which no column can have")]
    Pseudo,
    /// It is a domain with a constraint that is not evaluated here.
    #[error("is a domain whose CHECK constraint {constraint} only a server can check ({cause})")]
    DomainCheck {
        /// The constraint.
        constraint: String,
        /// Why not.
        cause: Box<Refusal>,
    },
    /// It is a range with a canonical function that is not built in.
    #[error("is a range with a canonical function of its own, which only a server can call")]
    CanonicalFunction,
    /// It is a range over something that cannot be ordered here.
    #[error("is a range over a type whose order only a server knows ({0})")]
    RangeOrder(Box<Refusal>),
    /// It is a multirange, and what it is over is not a range.
    #[error("is a multirange over a type that is no range")]
    MultirangeOverNoRange,
    /// Its default operator class is not the built-in one.
    #[error("has an operator class of its own")]
    OwnOperatorClass,
    /// Its values have an order in a collation only, and none is given.
    #[error("is in no collation")]
    NoCollation,
    /// It is a range, and its values are ordered by another operator class than by default.
    #[error("is ordered by the operator class {0}")]
    OperatorClass(String),
    /// Its order is not known here.
    #[error("orders its values in a way that is not known here")]
    UnknownOrder,
}

/// Why a type's output function is not known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OutputCause {
    /// It is in a shared library of an extension.
    #[error("its output function {function} is code of the library {library}")]
    Library {
        /// The function.
        function: String,
        /// The library, as `pg_proc` names it.
        library: String,
    },
    /// It is in no library, and not one of PostgreSQL's own.
    #[error("its output function {0} is not built in")]
    NotBuiltIn(String),
    /// There is none.
    #[error("its output function {0} is missing in pg_proc")]
    Missing(Oid),
}

/// Why an expression cannot be evaluated. The texts say it of the expression: "it …".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExpressionCause {
    /// Its text is in a TOAST table.
    #[error("it is stored out of line")]
    OutOfLine,
    /// Its text, or a constant in it, is not as PostgreSQL writes it.
    #[error("{0}")]
    Unreadable(String),
    /// Its text is something else.
    #[error("it is no expression")]
    NotAnExpression,
    /// A node of a kind that is not evaluated here.
    #[error("it has a node {0}")]
    Node(String),
    /// A node with fields that it should not have.
    #[error("it has a node {0} that is not understood")]
    OddNode(String),
    /// A reference to something else than a column.
    #[error("it refers to a whole row or to a column of the system")]
    NotAColumn,
    /// A pattern that differs by row.
    #[error("it matches a pattern that is no constant")]
    VariablePattern,
    /// A pattern whose meaning depends on what is not known here.
    #[error("it matches the pattern {0:?}")]
    Pattern(String),
    /// A cast of an array that calls a function per element.
    #[error("it casts the elements of an array")]
    ElementCast,
    /// A list that differs by row.
    #[error("it has a list that is no constant")]
    VariableList,
    /// `IS NULL` of a row.
    #[error("it asks whether a row is null")]
    RowIsNull,
    /// `CASE value WHEN …`.
    #[error("it has a CASE with a value")]
    CaseWithValue,
    /// A function whose meaning is not known here.
    #[error("it calls the function {0}")]
    Function(String),
    /// An operator of an extension or of a user.
    #[error("it uses an operator that is not built in")]
    OperatorNotBuiltIn,
    /// A built-in operator whose meaning is not known here.
    #[error("it uses the operator {name} of types {left} and {right}")]
    Operator {
        /// The operator.
        name: String,
        /// The type on its left.
        left: Oid,
        /// The type on its right.
        right: Oid,
    },
}

/// Why the order of an index or a partition key is not known. The texts say it of the index or key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OrderCause {
    /// Its row in `pg_index` does not fit together.
    #[error("has more columns than operator classes")]
    TooFewOperatorClasses,
    /// An operator class of an extension or of a user.
    #[error("uses the operator class {0}, which is not built in")]
    OperatorClass(String),
    /// An operator class without its row.
    #[error("uses operator class {0}, which is missing")]
    MissingOperatorClass(Oid),
    /// A collation without its row.
    #[error("uses collation {0}, which is missing")]
    MissingCollation(Oid),
    /// A collation in which different texts can be equal.
    #[error("uses a collation that is not deterministic")]
    NotDeterministic,
    /// A collation of ICU.
    #[error("uses a collation of ICU, whose order is not followed here")]
    Icu,
}
