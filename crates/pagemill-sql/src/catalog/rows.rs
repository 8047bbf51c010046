//! Rows of the catalogs, as far as a statement's meaning follows from them.
//!
//! Source: `src/include/catalog/pg_type.h`, `pg_cast.h`, `pg_operator.h`, `pg_proc.h`, `pg_collation.h`, `pg_range.h`,
//! PostgreSQL 14 to 18.

use pagemill_format::Oid;

/// A row of `pg_type`.
#[derive(Debug, Clone)]
pub struct TypeRow {
    /// `oid`.
    pub oid: Oid,
    /// `typname`.
    pub name: String,
    /// `typnamespace`.
    pub namespace: Oid,
    /// `typtype`: b, c, d, e, m, p, r.
    pub kind: u8,
    /// `typcategory`.
    pub category: u8,
    /// `typispreferred`.
    pub is_preferred: bool,
    /// `typbasetype` of a domain, else 0.
    pub base: Oid,
    /// `typtypmod` of a domain.
    pub base_modifier: i32,
    /// `typelem`.
    pub element: Oid,
    /// `typarray`.
    pub array: Oid,
    /// `typlen`.
    pub length: i16,
    /// `typcollation`, 0 for none.
    pub collation: Oid,
    /// `typinput`.
    pub input: Oid,
    /// True for a type of an extension that is read, kept and printed as text is.
    pub is_like_text: bool,
}

impl TypeRow {
    /// True for a true array type: one that subscripts its elements.
    pub fn is_array(&self) -> bool {
        self.element != Oid(0) && self.length == -1 && self.category == b'A'
    }
}

/// A row of `pg_range`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RangeRow {
    /// `rngtypid`.
    pub range: Oid,
    /// `rngmultitypid`.
    pub multirange: Oid,
    /// `rngsubtype`: the type of the bounds.
    pub subtype: Oid,
    /// `rngcollation`, under which they are compared; 0 for none.
    pub collation: Oid,
}

/// How a cast comes about, `pg_cast.castcontext`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CastContext {
    /// Anywhere.
    Implicit,
    /// Where a value is assigned.
    Assignment,
    /// Where it is asked for.
    Explicit,
}

/// A row of `pg_cast`.
#[derive(Debug, Clone, Copy)]
pub struct CastRow {
    /// `castfunc`, 0 for none.
    pub function: Oid,
    /// `castcontext`.
    pub context: CastContext,
    /// `castmethod`: f, i, b.
    pub method: u8,
}

/// A row of `pg_operator` with two operands, or one on the right.
#[derive(Debug, Clone)]
pub struct OperatorRow {
    /// `oprname`.
    pub name: String,
    /// `oprnamespace`.
    pub namespace: Oid,
    /// `oprleft`, 0 for a prefix operator.
    pub left: Oid,
    /// `oprright`.
    pub right: Oid,
    /// `oprcode`.
    pub function: Oid,
}

/// A row of `pg_proc`.
#[derive(Debug, Clone)]
pub struct FunctionRow {
    /// `oid`.
    pub oid: Oid,
    /// `proname`.
    pub name: String,
    /// `pronamespace`.
    pub namespace: Oid,
    /// `prokind`: f, p, a, w.
    pub kind: u8,
    /// `proretset`.
    pub returns_set: bool,
    /// `proisstrict`.
    pub is_strict: bool,
    /// `provariadic`, 0 for none.
    pub variadic: Oid,
    /// `pronargdefaults`.
    pub defaults: usize,
    /// `prorettype`.
    pub result: Oid,
    /// `proargtypes`.
    pub arguments: Vec<Oid>,
    /// `prolang`.
    pub language: Oid,
    /// By what our own code is found: the name of the server's C function; library and name of one of an extension that is known; of
    /// all others, name and types of arguments.
    pub key: String,
}

/// A row of `pg_collation`, as far as an order follows from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CollationRow {
    /// `oid`.
    pub oid: Oid,
    /// `collname`.
    pub name: String,
    /// `collprovider`: b, c, d, i.
    pub provider: u8,
    /// `collisdeterministic`.
    pub is_deterministic: bool,
    /// `collcollate`, or the locale of a provider that has one.
    pub locale: String,
    /// `collctype`: what letters are, for the provider libc.
    pub letters: String,
    /// `collencoding`, -1 for any.
    pub encoding: i32,
    /// `collversion`: that of the library, as it was when the collation was made.
    pub version: Option<String>,
}
