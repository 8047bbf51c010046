//! The catalog columns that decide how an object's name is printed, one struct per catalog, and
//! the trait through which the owner of the catalogs hands them over.
//!
//! Names are bytes without their padding zeros, in the encoding of the database (those of roles
//! and of databases: in whatever encoding they were created under).
//!
//! Sources: `src/include/catalog/pg_{namespace,class,proc,type,operator,collation,ts_config,
//! ts_dict,authid}.h`, PostgreSQL 14 to 18.

use pagemill_format::Oid;

/// An object that is found by its name alone: a row of `pg_class`, `pg_ts_config` or
/// `pg_ts_dict`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedRow {
    /// Its OID.
    pub oid: Oid,
    /// `relname`, `cfgname` or `dictname`.
    pub name: Box<[u8]>,
    /// The schema it is in.
    pub namespace: Oid,
}

/// A row without a schema: of `pg_namespace` or `pg_authid`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GlobalRow {
    /// Its OID.
    pub oid: Oid,
    /// `nspname` or `rolname`.
    pub name: Box<[u8]>,
}

/// A row of `pg_proc`, of any kind: function, procedure, aggregate, window function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcRow {
    /// Its OID.
    pub oid: Oid,
    /// `proname`.
    pub name: Box<[u8]>,
    /// `pronamespace`.
    pub namespace: Oid,
    /// `proargtypes`: the types of the input arguments.
    pub args: Box<[Oid]>,
}

/// A row of `pg_type`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypeRow {
    /// Its OID.
    pub oid: Oid,
    /// `typname`.
    pub name: Box<[u8]>,
    /// `typnamespace`.
    pub namespace: Oid,
    /// `typelem`: what subscripting yields, 0 for none.
    pub element: Oid,
    /// `typsubscript`: the handler of subscripting, 0 for none.
    pub subscript: Oid,
    /// `typstorage`: `p`, `e`, `m` or `x`.
    pub storage: u8,
}

/// A row of `pg_operator`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperatorRow {
    /// Its OID.
    pub oid: Oid,
    /// `oprname`.
    pub name: Box<[u8]>,
    /// `oprnamespace`.
    pub namespace: Oid,
    /// `oprleft`: the left operand's type, 0 for a prefix operator.
    pub left: Oid,
    /// `oprright`: the right operand's type.
    pub right: Oid,
}

/// A row of `pg_collation`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CollationRow {
    /// Its OID.
    pub oid: Oid,
    /// `collname`.
    pub name: Box<[u8]>,
    /// `collnamespace`.
    pub namespace: Oid,
    /// `collprovider`: `d`, `c`, `i`, or `b` from 17 on.
    pub provider: u8,
    /// `collencoding`: the one encoding it works with, or -1 for any.
    pub encoding: i32,
}

/// Reads the rows of each catalog when they are asked for: once, unless two threads ask at the
/// same moment.
pub trait NameRows {
    /// Why rows could not be read.
    type Error;

    /// `pg_namespace`.
    ///
    /// # Errors
    /// When the catalog cannot be read; the same holds for every function here.
    fn namespaces(&self) -> Result<Vec<GlobalRow>, Self::Error>;
    /// `pg_authid`.
    fn roles(&self) -> Result<Vec<GlobalRow>, Self::Error>;
    /// `pg_class`, of every kind.
    fn classes(&self) -> Result<Vec<NamedRow>, Self::Error>;
    /// `pg_type`.
    fn types(&self) -> Result<Vec<TypeRow>, Self::Error>;
    /// `pg_proc`.
    fn procs(&self) -> Result<Vec<ProcRow>, Self::Error>;
    /// `pg_operator`.
    fn operators(&self) -> Result<Vec<OperatorRow>, Self::Error>;
    /// `pg_collation`.
    fn collations(&self) -> Result<Vec<CollationRow>, Self::Error>;
    /// `pg_ts_config`.
    fn ts_configs(&self) -> Result<Vec<NamedRow>, Self::Error>;
    /// `pg_ts_dict`.
    fn ts_dicts(&self) -> Result<Vec<NamedRow>, Self::Error>;
}

/// Names can be printed from rows that are only lent.
impl<R: NameRows + ?Sized> NameRows for &R {
    type Error = R::Error;

    fn namespaces(&self) -> Result<Vec<GlobalRow>, Self::Error> {
        (**self).namespaces()
    }
    fn roles(&self) -> Result<Vec<GlobalRow>, Self::Error> {
        (**self).roles()
    }
    fn classes(&self) -> Result<Vec<NamedRow>, Self::Error> {
        (**self).classes()
    }
    fn types(&self) -> Result<Vec<TypeRow>, Self::Error> {
        (**self).types()
    }
    fn procs(&self) -> Result<Vec<ProcRow>, Self::Error> {
        (**self).procs()
    }
    fn operators(&self) -> Result<Vec<OperatorRow>, Self::Error> {
        (**self).operators()
    }
    fn collations(&self) -> Result<Vec<CollationRow>, Self::Error> {
        (**self).collations()
    }
    fn ts_configs(&self) -> Result<Vec<NamedRow>, Self::Error> {
        (**self).ts_configs()
    }
    fn ts_dicts(&self) -> Result<Vec<NamedRow>, Self::Error> {
        (**self).ts_dicts()
    }
}
