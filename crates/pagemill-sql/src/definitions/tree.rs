//! Reading of stored trees: what a field holds, and the type of an expression.
//!
//! Source: `src/include/nodes/primnodes.h`, `exprType` in `src/backend/nodes/nodeFuncs.c`, PostgreSQL 14 to 18. Some nodes have
//! two names: the first up to 15, the second from 16 on.

use std::str::FromStr;

use pagemill_format::Oid;
use pagemill_format::node_tree::{Node, NodeStruct, text_of};
use pagemill_types::builtin::oid;

use super::Unwritten;
use super::dictionary::Dictionary;
use super::xml::{IS_DOCUMENT, SERIALIZE};
use crate::types::DEFAULT_COLLATION;

/// How a call or a conversion was written: `CoercionForm`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Call,
    Cast,
    Implicit,
    Syntax,
}

pub(super) fn form(node: &NodeStruct<'_>, label: &str) -> Result<Form, Unwritten> {
    Ok(match node.number::<u8>(label)? {
        0 => Form::Call,
        1 => Form::Cast,
        2 => Form::Implicit,
        _ => Form::Syntax,
    })
}

/// A field that is a word.
pub(super) fn word<'t>(node: &NodeStruct<'t>, label: &str) -> Result<&'t [u8], Unwritten> {
    match node.value(label)? {
        Node::Token(token) => Ok(token),
        _ => Err(Unwritten::node(node)),
    }
}

/// A field that is a text; `None` where it is empty.
pub(super) fn text(node: &NodeStruct<'_>, label: &str) -> Result<Option<String>, Unwritten> {
    match node.value(label)? {
        Node::Token(token) => Ok(Some(owned(token))),
        Node::Null => Ok(None),
        _ => Err(Unwritten::node(node)),
    }
}

fn owned(token: &[u8]) -> String {
    String::from_utf8_lossy(&text_of(token)).into_owned()
}

/// A field that is a list of texts.
pub(super) fn texts(node: &NodeStruct<'_>, label: &str) -> Result<Vec<String>, Unwritten> {
    let one = |member: &Node<'_>| match member {
        Node::Token(token) => Ok(owned(token)),
        _ => Err(Unwritten::node(node)),
    };
    node.value(label)?.as_list()?.iter().map(one).collect()
}

/// A field that is a list of OIDs: `(o 1 2)`.
pub(super) fn oids(node: &NodeStruct<'_>, label: &str) -> Result<Vec<Oid>, Unwritten> {
    Ok(numbers(node, label)?.into_iter().map(Oid).collect())
}

/// A field that is a list of numbers: `(i 1 2)`.
pub(super) fn numbers<N: FromStr>(node: &NodeStruct<'_>, label: &str) -> Result<Vec<N>, Unwritten> {
    let one = |member: &Node<'_>| match member {
        Node::Token(token) => std::str::from_utf8(token).ok().and_then(|text| text.parse().ok()),
        _ => None,
    };
    let members = node.value(label)?.as_list()?.iter().skip(1);
    members.map(|member| one(member).ok_or_else(|| Unwritten::node(node))).collect()
}

/// A field that is a node, where there is one.
pub(super) fn optional<'n, 't>(
    node: &'n NodeStruct<'t>,
    label: &str,
) -> Option<&'n NodeStruct<'t>> {
    match node.values(label) {
        Some([Node::Struct(found)]) => Some(found),
        _ => None,
    }
}

/// A field that is true; false where the version has none.
pub(super) fn flag(node: &NodeStruct<'_>, label: &str) -> bool {
    node.boolean(label).unwrap_or(false)
}

pub(super) fn is_var(node: &NodeStruct<'_>) -> bool {
    node.name == b"VAR"
}

pub(super) fn is_const(node: &NodeStruct<'_>) -> bool {
    node.name == b"CONST"
}

/// The type of what an expression gives, where that is known from the node.
pub(super) fn expr_type(dictionary: &Dictionary, node: &NodeStruct<'_>) -> Result<Oid, Unwritten> {
    let field = |label: &str| node.oid(label).map_err(Unwritten::from);
    match node.name {
        b"VAR" => field("vartype"),
        b"CONST" => field("consttype"),
        b"PARAM" => field("paramtype"),
        b"AGGREF" => field("aggtype"),
        b"WINDOWFUNC" => field("wintype"),
        b"GROUPINGFUNC" => Ok(oid::INT4),
        b"SUBSCRIPTINGREF" => field("refrestype"),
        b"FUNCEXPR" => field("funcresulttype"),
        b"NAMEDARGEXPR" | b"TARGETENTRY" | b"PLACEHOLDERVAR" => {
            let inner = optional(node, "arg").or_else(|| optional(node, "expr"));
            expr_type(dictionary, inner.ok_or_else(|| Unwritten::node(node))?)
        }
        b"OPEXPR" | b"DISTINCTEXPR" | b"NULLIFEXPR" => field("opresulttype"),
        b"FIELDSELECT"
        | b"RELABELTYPE"
        | b"COERCEVIAIO"
        | b"ARRAYCOERCEEXPR"
        | b"CONVERTROWTYPEEXPR"
        | b"COERCETODOMAIN" => field("resulttype"),
        b"COLLATE" | b"COLLATEEXPR" => expr_type(dictionary, node.node("arg")?),
        b"CASE" | b"CASEEXPR" => field("casetype"),
        b"CASETESTEXPR" => field("typeId"),
        b"ARRAY" | b"ARRAYEXPR" => field("array_typeid"),
        b"ROW" | b"ROWEXPR" => field("row_typeid"),
        b"COALESCE" | b"COALESCEEXPR" => field("coalescetype"),
        b"MINMAX" | b"MINMAXEXPR" => field("minmaxtype"),
        b"XMLEXPR" => Ok(match node.number::<usize>("op")? {
            IS_DOCUMENT => oid::BOOL,
            SERIALIZE => oid::TEXT,
            _ => oid::XML,
        }),
        b"SQLVALUEFUNCTION" => field("type"),
        b"COERCETODOMAINVALUE" | b"SETTODEFAULT" => field("typeId"),
        b"NEXTVALUEEXPR" => field("typeId"),
        b"SUBLINK" => sublink_type(dictionary, node),
        b"MERGESUPPORTFUNC" => field("msftype"),
        b"JSONVALUEEXPR" => expr_type(dictionary, json_value(node)?),
        b"JSONCONSTRUCTOREXPR" | b"JSONEXPR" => Ok(node.node("returning")?.oid("typid")?),
        b"JSONISPREDICATE" => Ok(oid::BOOL),
        b"SCALARARRAYOPEXPR" | b"BOOLEXPR" | b"NULLTEST" | b"BOOLEANTEST" | b"ROWCOMPARE"
        | b"ROWCOMPAREEXPR" => Ok(oid::BOOL),
        _ => Err(Unwritten::node(node)),
    }
}

/// The value that a constructor of JSON takes, as it is then.
fn json_value<'n>(node: &'n NodeStruct<'n>) -> Result<&'n NodeStruct<'n>, Unwritten> {
    let formatted = optional(node, "formatted_expr").or_else(|| optional(node, "raw_expr"));
    formatted.ok_or_else(|| Unwritten::node(node))
}

/// A query for a value has the type of its column.
fn sublink_type(dictionary: &Dictionary, node: &NodeStruct<'_>) -> Result<Oid, Unwritten> {
    match node.number::<u8>("subLinkType")? {
        EXPR_SUBLINK => {
            let targets = node.node("subselect")?.nodes("targetList")?;
            expr_type(dictionary, targets.first().ok_or_else(|| Unwritten::node(node))?)
        }
        ARRAY_SUBLINK => Err(Unwritten::node(node)),
        _ => Ok(oid::BOOL),
    }
}

/// `SubLinkType`.
pub(super) const EXISTS_SUBLINK: u8 = 0;
pub(super) const ALL_SUBLINK: u8 = 1;
pub(super) const ANY_SUBLINK: u8 = 2;
pub(super) const ROWCOMPARE_SUBLINK: u8 = 3;
pub(super) const EXPR_SUBLINK: u8 = 4;
pub(super) const MULTIEXPR_SUBLINK: u8 = 5;
pub(super) const ARRAY_SUBLINK: u8 = 6;

/// What an expression is, under conversions that nobody wrote.
pub(super) fn without_implicit<'n, 't>(node: &'n NodeStruct<'t>) -> &'n NodeStruct<'t> {
    let (label, format) = match node.name {
        b"FUNCEXPR" => {
            let args = node.nodes("args").unwrap_or_default();
            let is_implicit = matches!(form(node, "funcformat"), Ok(Form::Implicit));
            return match args.first() {
                Some(first) if is_implicit => without_implicit(first),
                _ => node,
            };
        }
        b"RELABELTYPE" => ("arg", "relabelformat"),
        b"COERCEVIAIO" | b"ARRAYCOERCEEXPR" => ("arg", "coerceformat"),
        b"CONVERTROWTYPEEXPR" => ("arg", "convertformat"),
        b"COERCETODOMAIN" => ("arg", "coercionformat"),
        _ => return node,
    };
    match (form(node, format), optional(node, label)) {
        (Ok(Form::Implicit), Some(inner)) => without_implicit(inner),
        _ => node,
    }
}

/// The collation of what an expression gives.
///
/// Source: `exprCollation` in `src/backend/nodes/nodeFuncs.c`, PostgreSQL 18.
pub(super) fn expr_collation(node: &NodeStruct<'_>) -> Result<Oid, Unwritten> {
    let label = match node.name {
        b"VAR" => "varcollid",
        b"CONST" => "constcollid",
        b"FUNCEXPR" => "funccollid",
        b"OPEXPR" | b"NULLIFEXPR" => "opcollid",
        b"RELABELTYPE" | b"COERCEVIAIO" | b"ARRAYCOERCEEXPR" | b"COERCETODOMAIN"
        | b"FIELDSELECT" => "resultcollid",
        b"COLLATE" | b"COLLATEEXPR" => "collOid",
        b"CASE" | b"CASEEXPR" => "casecollid",
        b"COALESCE" | b"COALESCEEXPR" => "coalescecollid",
        b"MINMAX" | b"MINMAXEXPR" => "minmaxcollid",
        b"ARRAY" | b"ARRAYEXPR" => "array_collid",
        b"SUBSCRIPTINGREF" => "refcollid",
        b"XMLEXPR" if node.number::<usize>("op")? == SERIALIZE => return Ok(DEFAULT_COLLATION),
        b"MERGESUPPORTFUNC" => "msfcollid",
        b"JSONEXPR" => "collation",
        b"JSONVALUEEXPR" => return expr_collation(json_value(node)?),
        b"JSONCONSTRUCTOREXPR" => {
            return optional(node, "coercion").map_or(Ok(Oid(0)), expr_collation);
        }
        b"SCALARARRAYOPEXPR"
        | b"BOOLEXPR"
        | b"NULLTEST"
        | b"BOOLEANTEST"
        | b"XMLEXPR"
        | b"DISTINCTEXPR"
        | b"JSONISPREDICATE"
        | b"ROW"
        | b"ROWEXPR"
        | b"CONVERTROWTYPEEXPR" => return Ok(Oid(0)),
        _ => return Err(Unwritten::node(node)),
    };
    Ok(node.oid(label)?)
}
