//! SQL/JSON: constructors, tests and queries, as 16 and later versions have them.
//!
//! Source: `get_json_constructor`, `get_json_expr_options`, `get_json_behavior`, `get_json_returning` and the cases of `get_rule_expr`
//! in `src/backend/utils/adt/ruleutils.c`, PostgreSQL 16 to 18; the numbers from `src/include/nodes/primnodes.h`.

use pagemill_format::node_tree::NodeStruct;
use pagemill_types::builtin::oid;

use super::Unwritten;
use super::constants::Label;
use super::tree::{flag, is_const, optional, texts};
use super::writer::{Writer, Written};

/// An aggregate that is written as a constructor.
#[derive(Debug)]
pub(super) struct JsonAggregate {
    pub(super) name: &'static str,
    pub(super) options: String,
    /// It takes keys with their values.
    pub(super) is_object: bool,
}

/// `JsonConstructorType`, from 1 on.
const CONSTRUCTORS: [&str; 7] = [
    "JSON_OBJECT",
    "JSON_ARRAY",
    "JSON_OBJECTAGG",
    "JSON_ARRAYAGG",
    "JSON",
    "JSON_SCALAR",
    "JSON_SERIALIZE",
];
const OBJECT: usize = 1;
const ARRAY: usize = 2;
const OBJECT_AGGREGATE: usize = 3;
const ARRAY_AGGREGATE: usize = 4;
const PARSE: usize = 5;
const SCALAR: usize = 6;
/// `JsonExprOp`.
pub(super) const EXISTS: u8 = 0;
pub(super) const QUERY: u8 = 1;
const VALUE: u8 = 2;
/// `JsonBehaviorType`.
const BEHAVIORS: [&str; 9] = [
    "NULL",
    "ERROR",
    "EMPTY",
    "TRUE",
    "FALSE",
    "UNKNOWN",
    "EMPTY ARRAY",
    "EMPTY OBJECT",
    "DEFAULT ",
];
pub(super) const NULL: usize = 0;
pub(super) const FALSE: usize = 4;
pub(super) const EMPTY_ARRAY: usize = 6;
const DEFAULT: usize = 8;
/// `JsonFormatType`.
const FORMATS: [&str; 3] = ["", " FORMAT JSON", " FORMAT JSONB"];

impl<'t> Writer<'t> {
    pub(super) fn json_value(&mut self, node: &'t NodeStruct<'t>) -> Written {
        self.expr(node.node("raw_expr")?, false)?;
        self.put(&format_clause(node.node("format")?)?);
        Ok(())
    }

    pub(super) fn is_json(&mut self, node: &'t NodeStruct<'t>) -> Written {
        self.open();
        self.part(node.node("expr")?, true, node)?;
        self.put(" IS JSON");
        self.put(match node.number::<u8>("item_type")? {
            1 => " OBJECT",
            2 => " ARRAY",
            3 => " SCALAR",
            _ => "",
        });
        if node.boolean("unique_keys")? {
            self.put(" WITH UNIQUE KEYS");
        }
        self.close();
        Ok(())
    }

    pub(super) fn json_constructor(&mut self, node: &'t NodeStruct<'t>) -> Written {
        let kind: usize = node.number("type")?;
        let name = kind.checked_sub(1).and_then(|at| CONSTRUCTORS.get(at).copied());
        let name = name.ok_or_else(|| Unwritten::node(node))?;
        let options = self.constructor_options(node, kind)?;
        if matches!(kind, OBJECT_AGGREGATE | ARRAY_AGGREGATE) {
            let function = node.node("func")?;
            let special = JsonAggregate { name, options, is_object: kind == OBJECT_AGGREGATE };
            return match function.name {
                b"AGGREF" => self.aggregate(function, Some(&special)),
                b"WINDOWFUNC" => self.window_function(function, Some(&special)),
                _ => Err(Unwritten::node(node)),
            };
        }
        self.put(&format!("{name}("));
        for (at, argument) in node.nodes("args")?.into_iter().enumerate() {
            if at > 0 {
                self.put(if kind == OBJECT && at % 2 == 1 { " : " } else { ", " });
            }
            self.expr(argument, true)?;
        }
        self.put(&format!("{options})"));
        Ok(())
    }

    /// A key and its value; how NULLs and keys that come twice are taken is among the options.
    pub(super) fn json_pair(
        &mut self,
        arguments: &[&'t NodeStruct<'t>],
        shows_implicit: bool,
    ) -> Written {
        for (at, argument) in arguments.iter().take(2).enumerate() {
            if at > 0 {
                self.put(" : ");
            }
            self.expr(argument, shows_implicit)?;
        }
        Ok(())
    }

    fn constructor_options(&self, node: &NodeStruct<'_>, kind: usize) -> Written<String> {
        let is_object = matches!(kind, OBJECT | OBJECT_AGGREGATE);
        let is_array = matches!(kind, ARRAY | ARRAY_AGGREGATE);
        let mut options = match node.boolean("absent_on_null")? {
            true if is_object => " ABSENT ON NULL",
            false if is_array => " NULL ON NULL",
            _ => "",
        }
        .to_owned();
        if node.boolean("unique")? {
            options += " WITH UNIQUE KEYS";
        }
        if !matches!(kind, PARSE | SCALAR) {
            options += &self.returning_type(node.node("returning")?, true)?;
        }
        Ok(options)
    }

    fn returning_type(&self, node: &NodeStruct<'_>, is_json: bool) -> Written<String> {
        let type_oid = node.oid("typid")?;
        if !type_oid.is_valid() {
            return Ok(String::new());
        }
        let name = self.type_name(type_oid, node.number("typmod")?)?;
        let format = node.node("format")?;
        let usual = if type_oid == oid::JSONB { 2 } else { 1 };
        let format = match is_json && format.number::<usize>("format_type")? == usual {
            true => String::new(),
            false => format_clause(format)?,
        };
        Ok(format!(" RETURNING {name}{format}"))
    }

    pub(super) fn json_query(&mut self, node: &'t NodeStruct<'t>, shows_implicit: bool) -> Written {
        let op: u8 = node.number("op")?;
        self.put(match op {
            EXISTS => "JSON_EXISTS(",
            QUERY => "JSON_QUERY(",
            VALUE => "JSON_VALUE(",
            _ => return Err(Unwritten::node(node)),
        });
        self.expr(node.node("formatted_expr")?, shows_implicit)?;
        self.put(", ");
        self.json_path(node.node("path_spec")?, shows_implicit)?;
        let values = node.nodes("passing_values")?;
        let names = texts(node, "passing_names")?;
        for (at, (value, name)) in values.into_iter().zip(names).enumerate() {
            self.put(if at == 0 { " PASSING " } else { ", " });
            self.expr(value, shows_implicit)?;
            self.put(" AS ");
            self.identifier(&name);
        }
        let returning = node.node("returning")?;
        if op != EXISTS || returning.oid("typid")? != oid::BOOL {
            let text = self.returning_type(returning, op == QUERY)?;
            self.put(&text);
        }
        self.json_options(node, if op == EXISTS { FALSE } else { NULL })?;
        self.put(")");
        Ok(())
    }

    /// A path without its type, where it is a constant.
    pub(super) fn json_path(&mut self, path: &'t NodeStruct<'t>, shows_implicit: bool) -> Written {
        match is_const(path) {
            true => self.constant_node(path, Label::Never),
            false => self.expr(path, shows_implicit),
        }
    }

    /// How a result is wrapped, and what stands for none and for an error, where that is not as usual.
    pub(super) fn json_options(&mut self, node: &'t NodeStruct<'t>, usual: usize) -> Written {
        if node.number::<u8>("op")? == QUERY {
            self.put(match node.number::<u8>("wrapper")? {
                2 => " WITH CONDITIONAL WRAPPER",
                3 => " WITH UNCONDITIONAL WRAPPER",
                _ => " WITHOUT WRAPPER",
            });
            self.put(if flag(node, "omit_quotes") { " OMIT QUOTES" } else { " KEEP QUOTES" });
        }
        for (label, on) in [("on_empty", "EMPTY"), ("on_error", "ERROR")] {
            if let Some(behavior) = optional(node, label)
                && behavior.number::<usize>("btype")? != usual
            {
                self.json_behavior(behavior, on)?;
            }
        }
        Ok(())
    }

    pub(super) fn json_behavior(&mut self, behavior: &'t NodeStruct<'t>, on: &str) -> Written {
        let kind: usize = behavior.number("btype")?;
        let word = BEHAVIORS.get(kind).ok_or_else(|| Unwritten::node(behavior))?;
        self.put(&format!(" {word}"));
        if kind == DEFAULT {
            self.expr(behavior.node("expr")?, false)?;
        }
        self.put(&format!(" ON {on}"));
        Ok(())
    }
}

fn format_clause(format: &NodeStruct<'_>) -> Written<String> {
    let kind = FORMATS.get(format.number::<usize>("format_type")?);
    let kind = *kind.ok_or_else(|| Unwritten::node(format))?;
    let encoding = match format.number::<u8>("encoding")? {
        _ if kind.is_empty() => "",
        0 => "",
        1 => " ENCODING UTF8",
        2 => " ENCODING UTF16",
        _ => " ENCODING UTF32",
    };
    Ok(format!("{kind}{encoding}"))
}
