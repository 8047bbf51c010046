//! Calls: functions, aggregates and window functions, and the fields of tables.
//!
//! Source: `get_func_expr`, `get_agg_expr`, `get_windowfunc_expr`, `get_variable` in `src/backend/utils/adt/ruleutils.c`,
//! PostgreSQL 14 to 18.

use std::collections::HashSet;

use pagemill_format::Oid;
use pagemill_format::node_tree::NodeStruct;

use super::Unwritten;
use super::columns::Kind;
use super::constants::length_coercion;
use super::json::JsonAggregate;
use super::tree::{Form, expr_type, flag, form, optional, text};
use super::writer::{GROUP_STEP, Writer, Written};
use crate::resolve;

impl<'t> Writer<'t> {
    pub(super) fn call(&mut self, node: &'t NodeStruct<'t>, shows_implicit: bool) -> Written {
        let args = node.nodes("args")?;
        match form(node, "funcformat")? {
            Form::Implicit if !shows_implicit => {
                let first = args.first().ok_or_else(|| Unwritten::node(node))?;
                return self.part(first, false, node);
            }
            Form::Implicit | Form::Cast => {
                let first = args.first().ok_or_else(|| Unwritten::node(node))?;
                let modifier = length_coercion(&args)?;
                return self.coercion(first, (node.oid("funcresulttype")?, modifier), node);
            }
            Form::Syntax if self.special_call(node, &args)? => return Ok(()),
            Form::Syntax | Form::Call => {}
        }
        let is_variadic = flag(node, "funcvariadic");
        let name = self.function_name(node.oid("funcid")?, &args, is_variadic)?;
        self.put(&format!("{name}("));
        self.arguments(&args, is_variadic)?;
        self.put(")");
        Ok(())
    }

    /// The name of a function in a call; with its schema where another would be found without.
    pub(super) fn function_name(
        &self,
        of: Oid,
        args: &[&NodeStruct<'_>],
        is_variadic: bool,
    ) -> Written<String> {
        let missing = || Unwritten::missing("function", of);
        let function = self.catalog.function(of).ok_or_else(missing)?;
        let name = self.dictionary.quoted(&function.name);
        let others = self.catalog.functions_named(&function.name);
        let schemas: HashSet<Oid> = others.map(|other| other.namespace).collect();
        let is_found = match self.dictionary.is_on_path(function.namespace) {
            false => false,
            true if schemas.iter().filter(|one| self.dictionary.is_on_path(**one)).count() == 1 => {
                true
            }
            true if is_variadic || args.iter().any(|arg| arg.name == b"NAMEDARGEXPR") => {
                return Err(Unwritten::unknown(format!(
                    "a call of one of several functions {name}"
                )));
            }
            true => {
                let types = args.iter().map(|arg| expr_type(&self.dictionary, arg));
                let types = types.collect::<Written<Vec<Oid>>>()?;
                let found = resolve::whole_function(&self.catalog, None, &function.name, &types);
                found.is_ok_and(|chosen| chosen.function.oid == of)
            }
        };
        match is_found {
            true => Ok(name),
            false => Ok(format!("{}.{name}", self.dictionary.schema(function.namespace)?)),
        }
    }

    pub(super) fn aggregate(
        &mut self,
        node: &'t NodeStruct<'t>,
        special: Option<&JsonAggregate>,
    ) -> Written {
        let targets = node.nodes("args")?;
        let direct = node.nodes("aggdirectargs")?;
        let mut args = Vec::new();
        for target in &targets {
            if !flag(target, "resjunk") {
                args.push(target.node("expr")?);
            }
        }
        let is_variadic = flag(node, "aggvariadic");
        let kind = node.character("aggkind")?;
        let is_ordered_set = kind.is_some_and(|kind| kind != b'n');
        let taken = if is_ordered_set { &direct } else { &args };
        let name = match special {
            Some(special) => special.name.to_owned(),
            // How such a call is resolved takes both lists.
            None if is_ordered_set => self.function_name(
                node.oid("aggfnoid")?,
                &[direct.clone(), args.clone()].concat(),
                false,
            )?,
            None => self.function_name(node.oid("aggfnoid")?, taken, is_variadic)?,
        };
        let has_distinct = !node.value("aggdistinct")?.as_list()?.is_empty();
        self.put(&format!("{name}({}", if has_distinct { "DISTINCT " } else { "" }));
        let order = node.nodes("aggorder")?;
        if is_ordered_set {
            self.list(&direct, true)?;
            self.put(") WITHIN GROUP (ORDER BY ");
            self.order_by(&order, &targets, false)?;
        } else {
            match flag(node, "aggstar") {
                true => self.put("*"),
                false if special.is_some_and(|special| special.is_object) => {
                    self.json_pair(&args, true)?;
                }
                false => self.arguments(&args, is_variadic)?,
            }
            if !order.is_empty() {
                self.put(" ORDER BY ");
                self.order_by(&order, &targets, false)?;
            }
        }
        self.put(special.map_or("", |special| &special.options));
        self.filter(node)?;
        self.put(")");
        Ok(())
    }

    fn arguments(&mut self, args: &[&'t NodeStruct<'t>], is_variadic: bool) -> Written {
        for (at, arg) in args.iter().enumerate() {
            if at > 0 {
                self.put(", ");
            }
            if is_variadic && at + 1 == args.len() {
                self.put("VARIADIC ");
            }
            self.expr(arg, true)?;
        }
        Ok(())
    }

    fn filter(&mut self, node: &'t NodeStruct<'t>) -> Written {
        if let Some(condition) = optional(node, "aggfilter") {
            self.put(") FILTER (WHERE ");
            self.expr(condition, false)?;
        }
        Ok(())
    }

    pub(super) fn window_function(
        &mut self,
        node: &'t NodeStruct<'t>,
        special: Option<&JsonAggregate>,
    ) -> Written {
        let args = node.nodes("args")?;
        let name = match special {
            Some(special) => special.name.to_owned(),
            None => self.function_name(node.oid("winfnoid")?, &args, false)?,
        };
        self.put(&format!("{name}("));
        match flag(node, "winstar") {
            true => self.put("*"),
            false if special.is_some_and(|special| special.is_object) => {
                self.json_pair(&args, false)?;
            }
            false => self.list(&args, true)?,
        }
        self.put(special.map_or("", |special| &special.options));
        self.filter(node)?;
        self.put(") OVER ");
        let wanted: i32 = node.number("winref")?;
        let Some((windows, targets)) = self.windows.clone() else {
            return Err(Unwritten::node(node));
        };
        for window in windows {
            if window.number::<i32>("winref")? == wanted {
                return match text(window, "name")? {
                    Some(name) => {
                        self.identifier(&name);
                        Ok(())
                    }
                    None => self.window(window, &targets),
                };
            }
        }
        Err(Unwritten::node(node))
    }

    /// A column of a table of this query or of one around it; its name, where it was one.
    pub(super) fn variable(
        &mut self,
        node: &'t NodeStruct<'t>,
        levels: usize,
        is_top_level: bool,
    ) -> Written<Option<String>> {
        let up = usize::from(node.number::<u16>("varlevelsup")?) + levels;
        let at = self.namespaces.len().checked_sub(up + 1);
        let missing = || Unwritten::damaged("a column of no table");
        let namespace = self.namespaces.get(at.ok_or_else(missing)?).ok_or_else(missing)?;
        let written: usize = node.number("varnosyn")?;
        let (number, column): (usize, i16) = match written {
            0 => (node.number("varno")?, node.number("varattno")?),
            number => (number, node.number("varattnosyn")?),
        };
        let item = namespace.item(number)?;
        let place = usize::try_from(column).ok().and_then(|column| column.checked_sub(1));
        let returned = returned_row(node)?;
        let table = match returned {
            Some(at) => Some(namespace.returning[at].clone().ok_or_else(missing)?),
            None => item.name.clone(),
        };
        let own = place.and_then(|place| item.columns.names.get(place).cloned().flatten());
        if let (Some(place), Kind::Join | Kind::Group) = (place, item.kind)
            && !item.has_alias()
        {
            let is_group = item.kind == Kind::Group;
            let label = if is_group { "groupexprs" } else { "joinaliasvars" };
            let of = item.node()?.value(label)?.as_list()?.get(place);
            match of.and_then(|of| of.structure()) {
                Some(var) if var.name == b"VAR" => {
                    return self.deeper(1, |writer| writer.variable(var, up, is_top_level));
                }
                Some(other) if is_group && up == 0 => {
                    return self
                        .deeper(GROUP_STEP, |writer| writer.expr(other, true))
                        .map(|()| None);
                }
                _ if is_group => return Err(Unwritten::node(node)),
                _ => {}
            }
        }
        let name = match (place, column) {
            (Some(_), _) => Some(own.ok_or_else(|| Unwritten::unknown("a dropped column"))?),
            (None, 0) => None,
            (None, system) => Some(self.dictionary.column(Oid(0), system)?.name),
        };
        let needs_table = self.has_prefixes || name.is_none() || returned.is_some();
        if let Some(table) = table.filter(|_| needs_table) {
            self.identifier(&table);
            self.put(".");
        }
        match &name {
            Some(name) => self.identifier(name),
            None => {
                self.put("*");
                if is_top_level {
                    let of = self.type_name(node.oid("vartype")?, node.number("vartypmod")?)?;
                    self.put(&format!("::{of}"));
                }
            }
        }
        Ok(name)
    }
}

/// Which of the two rows a column in RETURNING is of: the one before the change, or the one after it.
fn returned_row(node: &NodeStruct<'_>) -> Written<Option<usize>> {
    match node.values("varreturningtype") {
        None => Ok(None),
        Some(_) => {
            Ok(node.number::<usize>("varreturningtype")?.checked_sub(1).filter(|at| *at < 2))
        }
    }
}
