//! Why rows cannot be loaded into a table, or its indexes not built.
//!
//! Invariant: each names the constraint, index, trigger or column that is in the way.

use pagemill_format::Oid;

use super::{OrderCause, Refusal};
use crate::relation::RelationKind;

/// What is in the way of loading rows into a table.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadObstacle {
    /// It has no rows of its own, or not in files.
    #[error("it is {} {}", article(.0.name()), .0.name())]
    Kind(RelationKind),
    /// It is a catalog.
    #[error("it is a table of the system")]
    SystemTable,
    /// It is a temporary table.
    #[error("it is temporary, left over from a session")]
    Temporary,
    /// Its access method is not `heap`.
    #[error("its access method is not heap")]
    AccessMethod,
    /// Row security is enabled for it.
    #[error("row security is enabled for it")]
    RowSecurity,
    /// The catalogs do not have its TOAST table or the index of that.
    #[error("its TOAST table or the index of that is missing")]
    MissingToast,
    /// A column that is computed from others.
    #[error("its column {0} is generated, and only a server can fill it")]
    GeneratedColumn(String),
    /// It is to be truncated, and another table refers to its rows.
    #[error("the foreign key {0} of another table refers to it")]
    ReferringKey(String),
    /// A check constraint that is not evaluated here.
    #[error("the check constraint {name} of it cannot be checked without a server ({cause})")]
    Check {
        /// The constraint.
        name: String,
        /// Why not.
        cause: Box<Refusal>,
    },
    /// A constraint of a kind that is not checked here.
    #[error("the {kind} {name} of it cannot be checked without a server")]
    Constraint {
        /// Its kind, as PostgreSQL calls it.
        kind: &'static str,
        /// The constraint.
        name: String,
    },
    /// A trigger that would fire.
    #[error("its trigger {0} would have to run")]
    Trigger(String),
    /// An index without its row in `pg_class`.
    #[error("its index {0} has no row in pg_class")]
    MissingIndex(Oid),
    /// An index that cannot be built.
    #[error("its index {name} {cause}")]
    Index {
        /// The index.
        name: String,
        /// What is in the way.
        cause: IndexCause,
    },
    /// A partition key with an expression.
    #[error("its partition key has an expression, which only a server can evaluate")]
    PartitionExpression,
    /// A partition key whose order is not known.
    #[error("its partition key {0}")]
    PartitionKey(OrderCause),
}

impl LoadObstacle {
    /// What can be done about it, on the server or in SQL.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Kind(_) | Self::AccessMethod => "use COPY on a running server",
            Self::SystemTable => "load your own tables only",
            Self::Temporary => "create a table",
            Self::RowSecurity => "use COPY",
            Self::MissingToast => "restore it",
            Self::GeneratedColumn(_) => "drop that property for the load, or use COPY",
            Self::ReferringKey(_) => "drop that first",
            Self::Check { .. } | Self::Constraint { .. } => {
                "drop it and add it again after the load, or use COPY"
            }
            Self::Trigger(_) => "disable it (ALTER TABLE … DISABLE TRIGGER), or use COPY",
            Self::MissingIndex(_) => "REINDEX the catalogs",
            Self::Index { .. } => "drop it and create it again after the load, or use COPY",
            Self::PartitionExpression | Self::PartitionKey(_) => {
                "load its partitions one by one, or use COPY"
            }
        }
    }
}

/// Why an index cannot be built. The texts say it of the index.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IndexCause {
    /// Another access method.
    #[error("is no B-tree")]
    NotABtree,
    /// What a failed `CREATE INDEX CONCURRENTLY` leaves.
    #[error("is not valid")]
    Invalid,
    /// A partial index.
    #[error("has a WHERE clause, which only a server can evaluate")]
    Predicate,
    /// An index over expressions.
    #[error("is over an expression, which only a server can evaluate")]
    Expression,
    /// Its order is not known.
    #[error(transparent)]
    Order(#[from] OrderCause),
}

fn article(noun: &str) -> &'static str {
    if noun.starts_with('i') { "an" } else { "a" }
}
