//! Arguments, results and parsed bodies of functions.
//!
//! Source: `print_function_arguments`, `print_function_rettype`, `print_function_sqlbody` in `src/backend/utils/adt/ruleutils.c`, PostgreSQL 14 to 18.

use std::collections::HashMap;
use std::sync::Arc;

use pagemill_format::Oid;
use pagemill_format::node_tree::Node;
use pagemill_types::array::element_payloads;
use pagemill_types::builtin::oid;

use super::Unwritten;
use super::dictionary::Dictionary;
use super::writer::{FunctionNames, Style, Writer, Written};
use crate::catalog::Catalog;
use crate::error::Result;
use crate::system_rows::for_each_row;

/// Arguments are written all in one line.
const STYLE: Style = Style { is_pretty: false, is_indented: false, wrap: 0, is_read_back: false };
/// The same to be bound again.
const READ_BACK: Style = Style { is_read_back: true, ..STYLE };

/// A row of `pg_proc`, as far as its arguments go.
#[derive(Debug, Clone)]
struct Function {
    name: String,
    kind: u8,
    returns_set: bool,
    result: Oid,
    inputs: Vec<Oid>,
    all: Vec<Oid>,
    modes: Option<Vec<u8>>,
    names: Option<Vec<u8>>,
    defaults: Option<String>,
    /// The body is statements of SQL that were parsed when it was made.
    tree: Option<String>,
}

/// The body of a function that was parsed when it was made, with its arguments as `$1` and so on.
///
/// # Errors
/// What has no text here.
pub(crate) fn numbered_body(catalog: &Arc<Catalog>, tree: &str) -> Written<String> {
    let dictionary = catalog.dictionary().map_err(|error| Unwritten::damaged(error.to_string()))?;
    let parsed = Node::parse(tree.as_bytes())?;
    let names = FunctionNames { name: String::new(), arguments: Vec::new() };
    Writer::new(catalog, &dictionary, READ_BACK).body(&parsed, names)
}

/// Writes arguments of functions.
pub(crate) struct FunctionWriter {
    catalog: Arc<Catalog>,
    dictionary: Arc<Dictionary>,
    functions: HashMap<Oid, Function>,
    /// Of ordered-set aggregates, how many arguments stand before ORDER BY.
    direct_arguments: HashMap<Oid, usize>,
}

impl FunctionWriter {
    /// Reads all functions.
    ///
    /// # Errors
    /// When a catalog cannot be read.
    pub(crate) fn new(catalog: &Arc<Catalog>) -> Result<Self> {
        let columns = [
            "oid",
            "prokind",
            "proretset",
            "prorettype",
            "proargtypes",
            "proallargtypes",
            "proargmodes",
            "proargnames",
            "proargdefaults",
            "prosqlbody",
            "proname",
        ];
        let mut functions = HashMap::new();
        for_each_row(catalog.values(), "pg_proc", &columns, |row| {
            let found = Function {
                kind: row.byte(1),
                returns_set: row.bool(2),
                result: row.oid(3),
                inputs: row.oids(4)?,
                all: row.oids(5)?,
                modes: row.payload(6)?.and_then(|bytes| bytes.get(20..)).map(<[u8]>::to_vec),
                names: row.payload(7)?.map(<[u8]>::to_vec),
                defaults: row.text(8)?,
                name: row.name(10),
                tree: row.text(9)?,
            };
            functions.insert(row.oid(0), found);
            Ok(())
        })?;
        let mut direct_arguments = HashMap::new();
        let columns = ["aggfnoid", "aggkind", "aggnumdirectargs"];
        for_each_row(catalog.values(), "pg_aggregate", &columns, |row| {
            if row.byte(1) != b'n' {
                direct_arguments.insert(row.oid(0), usize::try_from(row.int2(2)).unwrap_or(0));
            }
            Ok(())
        })?;
        let dictionary = catalog.dictionary()?;
        Ok(Self { catalog: catalog.clone(), dictionary, functions, direct_arguments })
    }

    /// All arguments, with their defaults or as they identify the function; `None` where there is no such function.
    pub(crate) fn arguments(&self, of: Oid, with_defaults: bool) -> Written<Option<String>> {
        let Some(function) = self.functions.get(&of) else { return Ok(None) };
        self.list((of, function), false, with_defaults).map(Some)
    }

    /// What the function gives; `None` for a procedure and where there is no such function.
    pub(crate) fn result(&self, of: Oid) -> Written<Option<String>> {
        let Some(function) = self.functions.get(&of).filter(|f| f.kind != b'p') else {
            return Ok(None);
        };
        let table = match function.returns_set {
            true => self.list((of, function), true, false)?,
            false => String::new(),
        };
        let name = self.catalog.type_name(function.result);
        Ok(Some(match (table.is_empty(), function.returns_set) {
            (false, _) => format!("TABLE({table})"),
            (true, true) => format!("SETOF {name}"),
            (true, false) => name,
        }))
    }

    /// The body of statements that were parsed; `None` for a body of text.
    pub(crate) fn body(&self, of: Oid) -> Written<Option<String>> {
        let Some(function) = self.functions.get(&of) else { return Ok(None) };
        let Some(tree) = &function.tree else { return Ok(None) };
        let parsed = Node::parse(tree.as_bytes())?;
        let style = match parsed {
            Node::Struct(_) => STYLE,
            _ => Style::new(false),
        };
        let name =
            |name: Option<Vec<u8>>| String::from_utf8_lossy(&name.unwrap_or_default()).into_owned();
        let arguments = self.names(function)?.into_iter().map(name).collect();
        let names = FunctionNames { name: function.name.clone(), arguments };
        let mut writer = Writer::new(&self.catalog, &self.dictionary, style);
        writer.body(&parsed, names).map(Some)
    }

    /// The default of an argument, by its number among all of them from 1; `None` where it has none.
    pub(crate) fn default(&self, of: Oid, number: i32) -> Written<Option<String>> {
        let Some(function) = self.functions.get(&of) else { return Ok(None) };
        let place = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
        let Some(place) = place else { return Ok(None) };
        let count =
            if function.all.is_empty() { function.inputs.len() } else { function.all.len() };
        let is_input = |at: &usize| {
            let mode = function.modes.as_ref().and_then(|modes| modes.get(*at)).copied();
            *at < count && matches!(mode.unwrap_or(b'i'), b'i' | b'b' | b'v')
        };
        let Some(tree) = function.defaults.as_deref().filter(|_| is_input(&place)) else {
            return Ok(None);
        };
        let parsed = Node::parse(tree.as_bytes())?;
        let defaults = parsed.as_list()?;
        let before = (0..place).filter(is_input).count();
        let without = function.inputs.len().saturating_sub(defaults.len());
        let default = before.checked_sub(without).and_then(|at| defaults.get(at));
        let Some(node) = default.and_then(Node::structure) else { return Ok(None) };
        Writer::new(&self.catalog, &self.dictionary, STYLE).expression(node, Oid(0)).map(Some)
    }

    /// The default of an argument that goes in, by its place among those; `None` where it has none.
    pub(crate) fn default_of_input(&self, of: Oid, at: usize) -> Written<Option<String>> {
        let Some(function) = self.functions.get(&of) else { return Ok(None) };
        let Some(tree) = function.defaults.as_deref() else { return Ok(None) };
        let parsed = Node::parse(tree.as_bytes())?;
        let defaults = parsed.as_list()?;
        let without = function.inputs.len().saturating_sub(defaults.len());
        let default = at.checked_sub(without).and_then(|at| defaults.get(at));
        let Some(node) = default.and_then(Node::structure) else { return Ok(None) };
        Writer::new(&self.catalog, &self.dictionary, READ_BACK).expression(node, Oid(0)).map(Some)
    }

    /// The names of the arguments that go in, empty for those without; nothing where none has one.
    pub(crate) fn input_names(&self, of: Oid) -> Written<Vec<String>> {
        let Some(function) = self.functions.get(&of) else { return Ok(Vec::new()) };
        let mode = |at: usize| function.modes.as_ref().and_then(|modes| modes.get(at)).copied();
        let names = self.names(function)?.into_iter().enumerate();
        let inputs =
            names.filter(|(at, _)| matches!(mode(*at).unwrap_or(b'i'), b'i' | b'b' | b'v'));
        let text = |name: Option<Vec<u8>>| {
            name.map(|name| String::from_utf8_lossy(&name).into_owned()).unwrap_or_default()
        };
        Ok(inputs.map(|(_, name)| text(name)).collect())
    }

    fn names(&self, function: &Function) -> Written<Vec<Option<Vec<u8>>>> {
        let Some(names) = &function.names else { return Ok(Vec::new()) };
        let layout = self.catalog.values().value_type(oid::TEXT);
        let layout = layout.map_err(|error| Unwritten::unknown(error.to_string()))?.layout;
        Ok(element_payloads(names, layout)?)
    }

    fn list(
        &self,
        (of, function): (Oid, &Function),
        of_table: bool,
        with_defaults: bool,
    ) -> Written<String> {
        let types = if function.all.is_empty() { &function.inputs } else { &function.all };
        let names = self.names(function)?;
        let parsed = function.defaults.as_deref().filter(|_| with_defaults);
        let parsed = parsed.map(|tree| Node::parse(tree.as_bytes())).transpose()?;
        let defaults = parsed.as_ref().map_or(Ok(&[][..]), Node::as_list)?;
        let mut defaults = defaults.iter();
        let without = function.inputs.len().saturating_sub(defaults.len());
        let order_by = self.direct_arguments.get(&of).copied();
        let (mut text, mut count, mut inputs) = (String::new(), 0, 0);
        let mut add = |text: &mut String, place: usize, default: Option<String>, mode: &str| {
            text.push_str(match (order_by == Some(count), count) {
                (true, 0) => "ORDER BY ",
                (true, _) => " ORDER BY ",
                (false, 0) => "",
                (false, _) => ", ",
            });
            count += 1;
            text.push_str(mode);
            let name = names.get(place).and_then(Option::as_deref).filter(|name| !name.is_empty());
            if let Some(name) = name {
                text.push_str(&self.dictionary.quoted(&String::from_utf8_lossy(name)));
                text.push(' ');
            }
            text.push_str(&self.catalog.type_name(types[place]));
            if let Some(default) = default {
                text.push_str(&format!(" DEFAULT {default}"));
            }
            count
        };
        for place in 0..types.len() {
            let mode = function.modes.as_ref().and_then(|modes| modes.get(place)).copied();
            let mode = mode.unwrap_or(b'i');
            let is_input = matches!(mode, b'i' | b'b' | b'v');
            inputs += usize::from(is_input);
            let default = match is_input && inputs > without {
                true => defaults.next().and_then(Node::structure),
                false => None,
            };
            if of_table != (mode == b't') {
                continue;
            }
            let default = default.map(|node| {
                let mut writer = Writer::new(&self.catalog, &self.dictionary, STYLE);
                writer.expression(node, Oid(0))
            });
            let word = match mode {
                b'i' if function.kind == b'p' => "IN ",
                b'b' => "INOUT ",
                b'o' => "OUT ",
                b'v' => "VARIADIC ",
                _ => "",
            };
            let printed = add(&mut text, place, default.transpose()?, word);
            // Of an aggregate over any values the last is both a direct and an ordered one.
            if Some(printed) == order_by && place + 1 == types.len() {
                add(&mut text, place, None, word);
            }
        }
        Ok(text)
    }
}
