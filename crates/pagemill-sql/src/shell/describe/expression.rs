//! Stored expressions as the server writes them: `pg_get_expr` with its pretty parentheses.
//!
//! Only nodes whose text is known to the character are written; for any other there is no text at all.
//!
//! Source: `get_rule_expr`, `get_const_expr`, `get_coercion_expr`, `isSimpleNode` in
//! `src/backend/utils/adt/ruleutils.c`, PostgreSQL 15.

use std::collections::HashMap;

use pagemill_format::Oid;
use pagemill_format::node_tree::{Const, Node, NodeStruct};
use pagemill_types::builtin::oid;

use super::names::{Names, literal, text_of_value};
use crate::catalog::quote_identifier;
use crate::system_rows::{PG_CATALOG, for_each_row};
use crate::types::UNKNOWN;

/// What stands where the text is not known.
pub(super) const UNWRITTEN: &str = "(expression)";

/// How a call or a conversion was written: `CoercionForm`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Call,
    Cast,
    Implicit,
    Syntax,
}

/// How a type is shown behind a constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Label {
    Never,
    WhereNeeded,
}

/// Writes expressions over the columns of one relation.
pub(super) struct Writer<'n, 'c> {
    names: &'n Names<'c>,
    columns: HashMap<i16, String>,
    /// Operators by OID: name and schema.
    operators: HashMap<Oid, (String, Oid)>,
}

impl<'n, 'c> Writer<'n, 'c> {
    pub(super) fn new(names: &'n Names<'c>, relation: Oid) -> crate::Result<Self> {
        let mut operators = HashMap::new();
        let columns = ["oid", "oprname", "oprnamespace"];
        for_each_row(names.catalog.values(), "pg_operator", &columns, |row| {
            operators.insert(row.oid(0), (row.name(1), row.oid(2)));
            Ok(())
        })?;
        Ok(Self { names, columns: names.column_names(relation)?, operators })
    }

    /// The text of a stored tree; `None` where it is not known here.
    pub(super) fn text(&self, tree: &str) -> Option<String> {
        let node = Node::parse(tree.as_bytes()).ok()?;
        self.node(node.structure()?, false)
    }

    /// The texts of a stored list of trees.
    pub(super) fn texts(&self, tree: &str) -> Vec<Option<Written>> {
        let Ok(node) = Node::parse(tree.as_bytes()) else { return Vec::new() };
        let members = node.as_list().unwrap_or_default();
        let written = |member: &Node<'_>| {
            let node = member.structure()?;
            let is_call =
                matches!(node.name, b"FUNCEXPR") && form(node, "funcformat") == Some(Form::Call);
            Some(Written { text: self.node(node, false)?, is_call })
        };
        members.iter().map(written).collect()
    }

    /// A constant of a partition's bound.
    pub(super) fn bound(&self, value: &Const) -> Option<String> {
        self.constant(value, Label::Never)
    }

    fn node(&self, node: &NodeStruct<'_>, shows_implicit: bool) -> Option<String> {
        match node.name {
            b"VAR" => {
                let name = self.columns.get(&node.number("varattno").ok()?)?;
                Some(quote_identifier(name))
            }
            b"CONST" => self.constant(&Const::of(node).ok()?, Label::WhereNeeded),
            b"OPEXPR" => self.operation(node),
            b"SCALARARRAYOPEXPR" => self.any_or_all(node),
            b"BOOLEXPR" => self.logic(node),
            b"FUNCEXPR" => self.call(node, shows_implicit),
            b"RELABELTYPE" => self.relabel(node, "relabelformat", shows_implicit),
            b"COERCEVIAIO" | b"ARRAYCOERCEEXPR" => {
                self.relabel(node, "coerceformat", shows_implicit)
            }
            b"COERCETODOMAIN" => self.relabel(node, "coercionformat", shows_implicit),
            b"COERCETODOMAINVALUE" => Some("VALUE".to_owned()),
            b"NULLTEST" if !node.boolean("argisrow").ok()? => {
                let text = self.side(node.node("arg").ok()?, node, true)?;
                Some(match node.number::<u8>("nulltesttype").ok()? {
                    0 => format!("{text} IS NULL"),
                    _ => format!("{text} IS NOT NULL"),
                })
            }
            b"BOOLEANTEST" => {
                let text = self.side(node.node("arg").ok()?, node, false)?;
                let tests = ["TRUE", "NOT TRUE", "FALSE", "NOT FALSE", "UNKNOWN", "NOT UNKNOWN"];
                Some(format!(
                    "{text} IS {}",
                    tests.get(node.number::<usize>("booltesttype").ok()?)?
                ))
            }
            b"COALESCE" | b"COALESCEEXPR" => {
                Some(format!("COALESCE({})", self.list(&node.nodes("args").ok()?, true)?))
            }
            b"MINMAX" | b"MINMAXEXPR" => {
                let name = if node.number::<u8>("op").ok()? == 0 { "GREATEST" } else { "LEAST" };
                Some(format!("{name}({})", self.list(&node.nodes("args").ok()?, true)?))
            }
            b"ARRAY" | b"ARRAYEXPR" => {
                let elements = node.nodes("elements").ok()?;
                let text = format!("ARRAY[{}]", self.list(&elements, true)?);
                match elements.is_empty() {
                    true => {
                        let of = self.names.type_name(node.oid("array_typeid").ok()?, -1);
                        Some(format!("{text}::{of}"))
                    }
                    false => Some(text),
                }
            }
            b"SQLVALUEFUNCTION" => sql_value(node),
            _ => None,
        }
    }

    fn list(&self, nodes: &[&NodeStruct<'_>], shows_implicit: bool) -> Option<String> {
        let texts: Option<Vec<String>> =
            nodes.iter().map(|node| self.node(node, shows_implicit)).collect();
        Some(texts?.join(", "))
    }

    /// Part of another expression, in parentheses where it would be read otherwise.
    fn side(
        &self,
        node: &NodeStruct<'_>,
        parent: &NodeStruct<'_>,
        shows_implicit: bool,
    ) -> Option<String> {
        let text = self.node(node, shows_implicit)?;
        Some(if self.is_simple(node, parent)? { text } else { format!("({text})") })
    }

    pub(super) fn operator(&self, of: Oid) -> Option<String> {
        let (name, schema) = self.operators.get(&of)?;
        // Another schema's has to be written with its schema, unless nothing hides it.
        (*schema == PG_CATALOG).then(|| name.clone())
    }

    fn operation(&self, node: &NodeStruct<'_>) -> Option<String> {
        let operator = self.operator(node.oid("opno").ok()?)?;
        match node.nodes("args").ok()?.as_slice() {
            [left, right] => {
                let (left, right) = (self.side(left, node, true)?, self.side(right, node, true)?);
                Some(format!("{left} {operator} {right}"))
            }
            [only] => Some(format!("{operator} {}", self.side(only, node, true)?)),
            _ => None,
        }
    }

    fn any_or_all(&self, node: &NodeStruct<'_>) -> Option<String> {
        let operator = self.operator(node.oid("opno").ok()?)?;
        let word = if node.boolean("useOr").ok()? { "ANY" } else { "ALL" };
        let args = node.nodes("args").ok()?;
        let [left, right] = args.as_slice() else { return None };
        let (left, right) = (self.side(left, node, true)?, self.side(right, node, true)?);
        Some(format!("{left} {operator} {word} ({right})"))
    }

    fn logic(&self, node: &NodeStruct<'_>) -> Option<String> {
        let args = node.nodes("args").ok()?;
        let sides: Option<Vec<String>> =
            args.iter().map(|arg| self.side(arg, node, false)).collect();
        let sides = sides?;
        match token(node, "boolop")? {
            b"and" => Some(sides.join(" AND ")),
            b"or" => Some(sides.join(" OR ")),
            _ => Some(format!("NOT {}", sides.first()?)),
        }
    }

    fn call(&self, node: &NodeStruct<'_>, shows_implicit: bool) -> Option<String> {
        let args = node.nodes("args").ok()?;
        match form(node, "funcformat")? {
            Form::Implicit if !shows_implicit => self.side(args.first()?, node, false),
            Form::Implicit | Form::Cast => {
                let length = args.get(1).filter(|_| args.len() <= 3).and_then(|arg| {
                    let length = Const::of(arg).ok().filter(|of| of.type_oid == oid::INT4)?;
                    Some(i32::from_le_bytes(length.value?.first_chunk().copied()?))
                });
                let result = node.oid("funcresulttype").ok()?;
                self.coercion((args.first()?, node), result, length.unwrap_or(-1))
            }
            Form::Syntax => None,
            Form::Call => {
                if node.boolean("funcvariadic").ok()? {
                    return None;
                }
                let name = self.function(node.oid("funcid").ok()?)?;
                Some(format!("{name}({})", self.list(&args, true)?))
            }
        }
    }

    /// The name of a function in a call; with its schema where that is not on the search path.
    pub(super) fn function(&self, of: Oid) -> Option<String> {
        let catalog = self.names.catalog;
        let function = catalog.function(of)?;
        let name = quote_identifier(&function.name);
        if function.namespace == PG_CATALOG {
            return Some(name);
        }
        if catalog.search_path().contains(&function.namespace) {
            // Another one of the name might hide it.
            let is_alone = catalog.functions_named(&function.name).count() == 1;
            return is_alone.then_some(name);
        }
        let schema = catalog.database().namespaces().ok()?.get(&function.namespace)?;
        Some(format!("{}.{name}", quote_identifier(&String::from_utf8_lossy(schema))))
    }

    fn relabel(&self, node: &NodeStruct<'_>, format: &str, shows_implicit: bool) -> Option<String> {
        let arg = node.node("arg").ok()?;
        if form(node, format)? == Form::Implicit && !shows_implicit {
            return self.side(arg, node, false);
        }
        let modifier = node.number("resulttypmod").unwrap_or(-1);
        self.coercion((arg, node), node.oid("resulttype").ok()?, modifier)
    }

    fn coercion(
        &self,
        (arg, parent): (&NodeStruct<'_>, &NodeStruct<'_>),
        result: Oid,
        modifier: i32,
    ) -> Option<String> {
        let constant = (arg.name == b"CONST").then(|| Const::of(arg).ok()).flatten();
        let text = match constant {
            // The type follows anyhow.
            Some(value) if value.type_oid == result && value.type_modifier == -1 => {
                self.constant(&value, Label::Never)?
            }
            _ => self.side(arg, parent, false)?,
        };
        Some(format!("{text}::{}", self.names.type_name(result, modifier)))
    }

    fn constant(&self, value: &Const, label: Label) -> Option<String> {
        let type_name = || self.names.type_name(value.type_oid, value.type_modifier);
        let Some(payload) = value.payload().ok()? else {
            return Some(match label {
                Label::Never => "NULL".to_owned(),
                Label::WhereNeeded => format!("NULL::{}", type_name()),
            });
        };
        let catalog = self.names.catalog;
        let text = match value.type_oid {
            UNKNOWN => String::from_utf8_lossy(&payload).into_owned(),
            other => text_of_value(catalog, other, &payload).ok()?,
        };
        let starts_with_digit = text.starts_with(|c: char| c.is_ascii_digit());
        let (text, needs_label) = match value.type_oid {
            oid::INT4 if text.starts_with('-') => (format!("'{text}'"), true),
            oid::INT4 => (text, false),
            oid::NUMERIC if starts_with_digit && text.contains(['e', 'E', '.']) => {
                (text, value.type_modifier >= 0)
            }
            oid::NUMERIC => (format!("'{text}'"), true),
            oid::BOOL => (if text == "t" { "true" } else { "false" }.to_owned(), false),
            UNKNOWN => (literal(&text), false),
            _ => (literal(&text), true),
        };
        // A collation that is not the type's would have to be written.
        let is_plain = matches!(value.collation, Oid(0) | crate::types::DEFAULT_COLLATION);
        match label {
            Label::Never => Some(text),
            _ if !is_plain => None,
            Label::WhereNeeded if needs_label => Some(format!("{text}::{}", type_name())),
            Label::WhereNeeded => Some(text),
        }
    }

    /// True for what needs no parentheses within another expression.
    fn is_simple(&self, node: &NodeStruct<'_>, parent: &NodeStruct<'_>) -> Option<bool> {
        Some(match node.name {
            b"RELABELTYPE" | b"COERCEVIAIO" | b"ARRAYCOERCEEXPR" | b"COERCETODOMAIN" => {
                self.is_simple(node.node("arg").ok()?, node)?
            }
            b"OPEXPR" if parent.name == b"OPEXPR" => self.binds_tighter(node, parent)?,
            b"OPEXPR" | b"NULLTEST" | b"BOOLEANTEST" => {
                parent.name == b"BOOLEXPR" || is_function_like(parent)
            }
            b"BOOLEXPR" if parent.name == b"BOOLEXPR" => {
                let (own, outer) = (token(node, "boolop")?, token(parent, "boolop")?);
                match own {
                    b"or" => outer == b"or",
                    _ => outer != b"not",
                }
            }
            b"BOOLEXPR" => is_function_like(parent),
            b"SCALARARRAYOPEXPR" => false,
            _ => true,
        })
    }

    /// Among the five operators of arithmetic, those of points before those of lines, and equals from the left.
    fn binds_tighter(&self, node: &NodeStruct<'_>, parent: &NodeStruct<'_>) -> Option<bool> {
        let rank = |of: &NodeStruct<'_>| {
            let args = of.nodes("args").ok()?.len();
            let name = &self.operators.get(&of.oid("opno").ok()?)?.0;
            match name.as_str() {
                "+" | "-" if args == 2 => Some(0),
                "*" | "/" | "%" if args == 2 => Some(1),
                _ => None,
            }
        };
        let (Some(own), Some(outer)) = (rank(node), rank(parent)) else { return Some(false) };
        let args = parent.nodes("args").ok()?;
        Some(own > outer || own == outer && args.first().is_some_and(|left| *left == node))
    }
}

/// A text of an index's expression.
pub(super) struct Written {
    pub(super) text: String,
    /// True for a call, which stands without parentheses in an index.
    pub(super) is_call: bool,
}

fn is_function_like(parent: &NodeStruct<'_>) -> bool {
    match parent.name {
        b"FUNCEXPR" => matches!(form(parent, "funcformat"), Some(Form::Call | Form::Syntax)),
        b"COALESCE" | b"COALESCEEXPR" | b"MINMAX" | b"MINMAXEXPR" | b"ARRAY" | b"ARRAYEXPR" => true,
        _ => false,
    }
}

fn form(node: &NodeStruct<'_>, label: &str) -> Option<Form> {
    Some(match node.number::<u8>(label).ok()? {
        0 => Form::Call,
        1 => Form::Cast,
        2 => Form::Implicit,
        _ => Form::Syntax,
    })
}

fn token<'t>(node: &NodeStruct<'t>, label: &str) -> Option<&'t [u8]> {
    match node.value(label).ok()? {
        Node::Token(token) => Some(token),
        _ => None,
    }
}

/// `CURRENT_DATE` and its kin.
fn sql_value(node: &NodeStruct<'_>) -> Option<String> {
    let names = [
        "CURRENT_DATE",
        "CURRENT_TIME",
        "CURRENT_TIME",
        "CURRENT_TIMESTAMP",
        "CURRENT_TIMESTAMP",
        "LOCALTIME",
        "LOCALTIME",
        "LOCALTIMESTAMP",
        "LOCALTIMESTAMP",
        "CURRENT_ROLE",
        "CURRENT_USER",
        "USER",
        "SESSION_USER",
        "CURRENT_CATALOG",
        "CURRENT_SCHEMA",
    ];
    let op: usize = node.number("op").ok()?;
    let name = names.get(op)?;
    Some(match op {
        2 | 4 | 6 | 8 => format!("{name}({})", node.number::<i32>("typmod").ok()?),
        _ => (*name).to_owned(),
    })
}
