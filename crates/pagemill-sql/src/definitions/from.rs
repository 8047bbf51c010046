//! FROM: tables, queries, functions and joins.
//!
//! Source: `get_from_clause`, `get_from_clause_item`, `get_rte_alias`, `get_column_alias_list`, `get_tablesample_def` in
//! `src/backend/utils/adt/ruleutils.c`, PostgreSQL 14 to 18.

use pagemill_format::node_tree::NodeStruct;

use super::Unwritten;
use super::columns::{Columns, Item, Kind};
use super::tree::{expr_type, flag, numbers, oids, optional, text, texts};
use super::writer::{STEP, VAR_STEP, Writer, Written};

/// What a join is set in.
const JOIN_STEP: i32 = 4;

impl<'t> Writer<'t> {
    pub(super) fn tables_clause(&mut self, tree: &'t NodeStruct<'t>, word: &str) -> Written {
        let mut is_first = true;
        for item in tree.nodes("fromlist")? {
            if item.name == b"RANGETBLREF"
                && !flag(self.own()?.item(item.number("rtindex")?)?.node()?, "inFromCl")
            {
                continue;
            }
            if is_first {
                self.clause(word, 2);
                is_first = false;
                self.table_item(item)?;
                continue;
            }
            self.put(", ");
            let written = self.apart(|writer| writer.table_item(item))?;
            if self.wraps() {
                if written.starts_with('\n') {
                    self.drop_blanks();
                } else if self.overflows(written.len()) {
                    self.keyword("", (-STEP, STEP, VAR_STEP));
                }
            }
            self.put(&written);
        }
        Ok(())
    }

    fn table_item(&mut self, tree: &'t NodeStruct<'t>) -> Written {
        match tree.name {
            b"RANGETBLREF" => {
                let item = self.own()?.item(tree.number("rtindex")?)?.clone();
                self.table(&item)
            }
            b"JOINEXPR" => self.join(tree),
            _ => Err(Unwritten::node(tree)),
        }
    }

    fn table(&mut self, item: &Item<'t>) -> Written {
        let node = item.node()?;
        if flag(node, "lateral") {
            self.put("LATERAL ");
        }
        let mut is_plain_function = false;
        match item.kind {
            Kind::Relation => {
                let relation = node.oid("relid")?;
                if !flag(node, "inh") {
                    self.put("ONLY ");
                }
                let name = self.relation_name(relation)?;
                self.put(&name);
            }
            Kind::Subquery => {
                self.put("(");
                self.inner_query(node.node("subquery")?, true)?;
                self.put(")");
            }
            Kind::Function => is_plain_function = self.functions(node)?,
            Kind::Values => {
                self.put("(");
                self.values(node)?;
                self.put(")");
            }
            Kind::Cte => {
                let name = text(node, "ctename")?;
                self.identifier(&name.ok_or_else(|| Unwritten::node(node))?);
            }
            Kind::TableFunction => self.table_function(node.node("tablefunc")?)?,
            _ => return Err(Unwritten::node(node)),
        }
        self.alias(item, " ")?;
        match is_plain_function && has_column_definitions(node)? {
            true => {
                let names = item.columns.present.iter().map(|(name, _)| name.clone()).collect();
                let function = node.nodes("functions")?;
                self.column_definitions(
                    function.first().ok_or_else(|| Unwritten::node(node))?,
                    names,
                )?;
            }
            false => self.column_aliases(&item.columns),
        }
        match optional(node, "tablesample") {
            Some(sample) => self.sample(sample),
            None => Ok(()),
        }
    }

    /// A relation in a query: with its schema too where a WITH query has its name.
    fn relation_name(&self, relation: pagemill_format::Oid) -> Written<String> {
        let name = &self.dictionary.relation(relation)?.name;
        let is_hidden = self.namespaces.iter().any(|namespace| namespace.with.contains(name));
        match is_hidden {
            true => self.dictionary.qualified_relation_name(relation),
            false => self.dictionary.relation_name(relation),
        }
    }

    /// True where it is one function without more.
    fn functions(&mut self, node: &'t NodeStruct<'t>) -> Written<bool> {
        let functions = node.nodes("functions")?;
        let has_ordinality = flag(node, "funcordinality");
        let is_one = functions.len() == 1 && (!has_ordinality || !has_column_definitions(node)?);
        match functions.as_slice() {
            [only] if is_one => self.table_call(only.node("funcexpr")?)?,
            several => self.rows_from(several)?,
        }
        if has_ordinality {
            self.put(" WITH ORDINALITY");
        }
        Ok(is_one)
    }

    fn rows_from(&mut self, functions: &[&'t NodeStruct<'t>]) -> Written {
        let mut unnested = Vec::new();
        for function in functions {
            let expr = function.node("funcexpr")?;
            let is_unnest = expr.name == b"FUNCEXPR"
                && expr.oid("funcid")?.0 == UNNEST
                && function.value("funccolnames")?.as_list()?.is_empty();
            unnested.push(if is_unnest { expr.nodes("args")?.first().copied() } else { None });
        }
        if let Some(arrays) = unnested.into_iter().collect::<Option<Vec<_>>>() {
            self.put("UNNEST(");
            self.list(&arrays, true)?;
            self.put(")");
            return Ok(());
        }
        self.put("ROWS FROM(");
        for (at, function) in functions.iter().enumerate() {
            if at > 0 {
                self.put(", ");
            }
            self.table_call(function.node("funcexpr")?)?;
            let names = texts(function, "funccolnames")?;
            if !names.is_empty() {
                self.put(" AS ");
                self.column_definitions(function, names)?;
            }
        }
        self.put(")");
        Ok(())
    }

    /// The columns of rows whose type is not known but from the query.
    fn column_definitions(&mut self, function: &NodeStruct<'_>, names: Vec<String>) -> Written {
        let types = oids(function, "funccoltypes")?;
        let modifiers = numbers::<i32>(function, "funccoltypmods")?;
        let collations = oids(function, "funccolcollations")?;
        let counts = [modifiers.len(), collations.len(), names.len()];
        if counts.iter().any(|count| *count != types.len()) {
            return Err(Unwritten::node(function));
        }
        let columns = types.into_iter().zip(modifiers).zip(collations).zip(names);
        for (at, (((of, modifier), collation), name)) in columns.enumerate() {
            self.put(if at == 0 { "(" } else { ", " });
            self.identifier(&name);
            let type_name = self.type_name(of, modifier)?;
            self.put(&format!(" {type_name}"));
            if collation.is_valid() && collation != self.dictionary.type_collation(of) {
                let collation = self.dictionary.collation(collation)?;
                self.put(&format!(" COLLATE {collation}"));
            }
        }
        self.put(")");
        Ok(())
    }

    /// What looks like no call is written as a cast.
    fn table_call(&mut self, expr: &'t NodeStruct<'t>) -> Written {
        if self.looks_like_function(expr)? {
            return self.expr(expr, true);
        }
        self.put("CAST(");
        self.expr(expr, false)?;
        let modifier = expr.number("resulttypmod").unwrap_or(-1);
        let name = self.type_name(expr_type(&self.dictionary, expr)?, modifier)?;
        self.put(&format!(" AS {name})"));
        Ok(())
    }

    /// What it is called, after `before`, if that is not its own name.
    pub(super) fn alias(&mut self, item: &Item<'t>, before: &str) -> Written {
        let node = item.node()?;
        let Some(name) = &item.name else { return Err(Unwritten::node(node)) };
        let is_shown = item.has_alias()
            || item.columns.prints_aliases
            || match item.kind {
                Kind::Relation => *name != self.dictionary.relation(node.oid("relid")?)?.name,
                Kind::Function | Kind::Subquery | Kind::Values => true,
                Kind::Cte => text(node, "ctename")?.as_ref() != Some(name),
                _ => false,
            };
        if is_shown {
            self.put(before);
            self.identifier(name);
        }
        Ok(())
    }

    fn column_aliases(&mut self, columns: &Columns) {
        if !columns.prints_aliases || columns.present.is_empty() {
            return;
        }
        for (at, (name, _)) in columns.present.iter().enumerate() {
            self.put(if at == 0 { "(" } else { ", " });
            self.identifier(name);
        }
        self.put(")");
    }

    fn sample(&mut self, sample: &'t NodeStruct<'t>) -> Written {
        let method = sample.oid("tsmhandler")?;
        let name = self.function_name(method, &[], false)?;
        self.put(&format!(" TABLESAMPLE {name} ("));
        self.list(&sample.nodes("args")?, false)?;
        self.put(")");
        if let Some(seed) = optional(sample, "repeatable") {
            self.put(" REPEATABLE (");
            self.expr(seed, false)?;
            self.put(")");
        }
        Ok(())
    }

    fn join(&mut self, tree: &'t NodeStruct<'t>) -> Written {
        let item = self.own()?.item(tree.number("rtindex")?)?.clone();
        let has_alias = optional(tree, "alias").is_some();
        let has_parentheses = !self.style.is_pretty || has_alias;
        let condition = optional(tree, "quals");
        let word = match (tree.number::<u8>("jointype")?, condition) {
            (0, Some(_)) => " JOIN ",
            (0, None) => " CROSS JOIN ",
            (1, _) => " LEFT JOIN ",
            (2, _) => " FULL JOIN ",
            (3, _) => " RIGHT JOIN ",
            _ => return Err(Unwritten::node(tree)),
        };
        if has_parentheses {
            self.put("(");
        }
        self.table_item(tree.node("larg")?)?;
        self.clause(word, JOIN_STEP);
        let right = tree.node("rarg")?;
        let is_wrapped = self.style.is_pretty
            && right.name != b"RANGETBLREF"
            && !(right.name == b"JOINEXPR" && optional(right, "alias").is_some());
        if is_wrapped {
            self.put("(");
        }
        self.table_item(right)?;
        if is_wrapped {
            self.put(")");
        }
        self.join_condition(tree, &item.columns, condition)?;
        if has_parentheses {
            self.put(")");
        }
        if has_alias {
            self.put(" ");
            self.identifier(&item.name.ok_or_else(|| Unwritten::node(tree))?);
            self.column_aliases(&item.columns);
        }
        Ok(())
    }

    fn join_condition(
        &mut self,
        tree: &'t NodeStruct<'t>,
        columns: &Columns,
        condition: Option<&'t NodeStruct<'t>>,
    ) -> Written {
        if !tree.value("usingClause")?.as_list()?.is_empty() {
            for (at, name) in columns.using.iter().enumerate() {
                self.put(if at == 0 { " USING (" } else { ", " });
                self.identifier(name);
            }
            self.put(")");
            if let Some(alias) = optional(tree, "join_using_alias") {
                self.put(" AS ");
                self.identifier(&text(alias, "aliasname")?.ok_or_else(|| Unwritten::node(tree))?);
            }
        } else if let Some(condition) = condition {
            self.put(" ON ");
            self.open();
            self.expr(condition, false)?;
            self.close();
        } else if tree.number::<u8>("jointype")? != 0 {
            self.put(" ON TRUE");
        }
        Ok(())
    }
}

/// `unnest(anyarray)`, `F_UNNEST_ANYARRAY`.
const UNNEST: u32 = 2331;

fn has_column_definitions(node: &NodeStruct<'_>) -> Written<bool> {
    for function in node.nodes("functions")? {
        if !function.value("funccolnames")?.as_list()?.is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}
