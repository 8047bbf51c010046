//! Queries: SELECT, VALUES, and what is made of several.
//!
//! Source: `get_query_def`, `get_select_query_def`, `get_setop_query`, `get_rule_sortgroupclause` in `src/backend/utils/adt/ruleutils.c`, PostgreSQL 14 to 18.

use pagemill_format::node_tree::{Const, Node, NodeStruct};
use pagemill_types::builtin::oid;

use super::Unwritten;
use super::columns::{Kind, Namespace};
use super::constants::Label;
use super::modifications::Command;
use super::tree::{flag, is_const, is_var, numbers, optional, text, texts};
use super::writer::{FunctionNames, STEP, VAR_STEP, Writer, Written};

/// What the columns of a query are called outside of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Outside<'o> {
    /// The names of a view's columns.
    names: Option<&'o [String]>,
    /// Nobody sees the name of a column without one.
    are_seen: bool,
}

impl Outside<'_> {
    /// What commands return goes by no names of a view.
    fn unnamed(self) -> Self {
        Self { names: None, ..self }
    }
}

impl<'t> Writer<'t> {
    /// The query of a view, with the names of its columns, or of another rule.
    ///
    /// # Errors
    /// What has no text here.
    pub(crate) fn view(
        &mut self,
        query: &'t NodeStruct<'t>,
        columns: Option<&[String]>,
    ) -> Result<String, Unwritten> {
        self.view_after(String::new(), query, columns)
    }

    /// The same behind what is written already.
    ///
    /// # Errors
    /// What has no text here.
    pub(crate) fn view_after(
        &mut self,
        before: String,
        query: &'t NodeStruct<'t>,
        columns: Option<&[String]>,
    ) -> Result<String, Unwritten> {
        self.out = before;
        self.query(query, Outside { names: columns, are_seen: true })?;
        Ok(std::mem::take(&mut self.out))
    }

    /// The condition of a rule, over the tables of one of its actions.
    pub(crate) fn rule_condition(
        &mut self,
        condition: &'t NodeStruct<'t>,
        action: &'t NodeStruct<'t>,
    ) -> Result<String, Unwritten> {
        let namespace = Namespace::of_query(&self.dictionary, action, &[])?;
        self.has_prefixes = namespace.items.len() != 1;
        self.namespaces = vec![namespace];
        self.indentation = STEP;
        self.expr(condition, false)?;
        Ok(std::mem::take(&mut self.out))
    }

    /// The body of a function: one expression that it returns, or statements.
    ///
    /// # Errors
    /// What has no text here.
    pub(crate) fn body(
        &mut self,
        tree: &'t Node<'t>,
        function: FunctionNames,
    ) -> Result<String, Unwritten> {
        self.function = Some(function);
        if let Node::Struct(query) = tree {
            self.inner_query(query, false)?;
            return Ok(std::mem::take(&mut self.out));
        }
        let missing = || Unwritten::damaged("a body without statements");
        let statements = tree.as_list()?.first().ok_or_else(missing)?.as_list()?;
        self.put("BEGIN ATOMIC\n");
        for statement in statements {
            self.indentation = 1;
            self.inner_query(statement.structure().ok_or_else(missing)?, false)?;
            self.put(";\n");
        }
        self.put("END");
        Ok(std::mem::take(&mut self.out))
    }

    pub(super) fn inner_query(&mut self, query: &'t NodeStruct<'t>, are_seen: bool) -> Written {
        self.query(query, Outside { names: None, are_seen })
    }

    fn query(&mut self, query: &'t NodeStruct<'t>, outside: Outside<'_>) -> Written {
        let command = Command::of(&self.dictionary, query)?;
        let namespace = Namespace::of_query(&self.dictionary, query, &self.namespaces)?;
        let tables = namespace.items.iter().filter(|item| item.kind != Kind::Group).count();
        // The arguments of a function are names, too.
        let has_prefixes = !self.namespaces.is_empty() || tables != 1 || self.function.is_some();
        let before = (self.has_prefixes, self.indentation, self.windows.take());
        self.has_prefixes = has_prefixes;
        self.namespaces.push(namespace);
        let written = match command {
            Command::Select => self.select(query, outside),
            Command::Insert => self.insert(query, outside.unnamed()),
            Command::Update => self.update(query, outside.unnamed()),
            Command::Delete => self.delete(query, outside.unnamed()),
            Command::Merge => self.merge(query, outside.unnamed()),
            Command::Utility => self.utility(query),
            Command::Nothing => {
                self.put("NOTHING");
                Ok(())
            }
        };
        self.namespaces.pop();
        (self.has_prefixes, self.indentation, self.windows) = before;
        written
    }

    fn select(&mut self, query: &'t NodeStruct<'t>, outside: Outside<'_>) -> Written {
        self.with(query)?;
        let targets = query.nodes("targetList")?;
        self.windows = Some((query.nodes("windowClause")?, targets.clone()));
        let operations = optional(query, "setOperations");
        match operations {
            Some(operation) => self.set_operation(operation, outside)?,
            None => self.basic_select(query, &targets, outside)?,
        }
        let order = query.nodes("sortClause")?;
        if !order.is_empty() {
            self.clause(" ORDER BY ", 1);
            self.order_by(&order, &targets, operations.is_some())?;
        }
        self.limits(query)?;
        self.row_locks(query)
    }

    fn limits(&mut self, query: &'t NodeStruct<'t>) -> Written {
        if let Some(offset) = optional(query, "limitOffset") {
            self.clause(" OFFSET ", 0);
            self.expr(offset, false)?;
        }
        let Some(limit) = optional(query, "limitCount") else { return Ok(()) };
        if query.number::<u8>("limitOption")? == WITH_TIES {
            self.clause(" FETCH FIRST ", 0);
            self.put("(");
            self.expr(limit, false)?;
            self.put(") ROWS WITH TIES");
            return Ok(());
        }
        self.clause(" LIMIT ", 0);
        match is_const(limit) && Const::of(limit)?.value.is_none() {
            true => self.put("ALL"),
            false => self.expr(limit, false)?,
        }
        Ok(())
    }

    fn row_locks(&mut self, query: &'t NodeStruct<'t>) -> Written {
        if !flag(query, "hasForUpdate") {
            return Ok(());
        }
        const STRENGTHS: [&str; 5] =
            ["", " FOR KEY SHARE", " FOR SHARE", " FOR NO KEY UPDATE", " FOR UPDATE"];
        for lock in query.nodes("rowMarks")? {
            if flag(lock, "pushedDown") {
                continue;
            }
            let strength = STRENGTHS.get(lock.number::<usize>("strength")?);
            self.clause(strength.ok_or_else(|| Unwritten::node(lock))?, 0);
            let name = self.own()?.item(lock.number("rti")?)?.name.clone();
            self.put(" OF ");
            self.identifier(&name.ok_or_else(|| Unwritten::node(lock))?);
            match lock.number::<u8>("waitPolicy")? {
                1 => self.put(" SKIP LOCKED"),
                2 => self.put(" NOWAIT"),
                _ => {}
            }
        }
        Ok(())
    }

    /// The tables of the query that is written.
    pub(super) fn own(&self) -> Written<&Namespace<'t>> {
        self.namespaces.last().ok_or_else(|| Unwritten::damaged("a table of no query"))
    }

    pub(super) fn with(&mut self, query: &'t NodeStruct<'t>) -> Written {
        let queries = query.nodes("cteList")?;
        if queries.is_empty() {
            return Ok(());
        }
        if self.style.is_indented {
            self.indentation += STEP;
            self.put(" ");
        }
        self.put(if flag(query, "hasRecursive") { "WITH RECURSIVE " } else { "WITH " });
        for (at, of) in queries.iter().enumerate() {
            if at > 0 {
                self.put(", ");
            }
            self.with_query(of)?;
        }
        match self.style.is_indented {
            true => {
                self.indentation -= STEP;
                self.keyword("", (0, 0, 0));
            }
            false => self.put(" "),
        }
        Ok(())
    }

    fn with_query(&mut self, of: &'t NodeStruct<'t>) -> Written {
        self.identifier(&text(of, "ctename")?.ok_or_else(|| Unwritten::node(of))?);
        if !texts(of, "aliascolnames")?.is_empty() {
            self.put("(");
            self.identifiers(of, "aliascolnames")?;
            self.put(")");
        }
        self.put(" AS ");
        match of.number::<u8>("ctematerialized")? {
            1 => self.put("MATERIALIZED "),
            2 => self.put("NOT MATERIALIZED "),
            _ => {}
        }
        self.put("(");
        if self.style.is_indented {
            self.keyword("", (0, 0, 0));
        }
        self.inner_query(of.node("ctequery")?, true)?;
        if self.style.is_indented {
            self.keyword("", (0, 0, 0));
        }
        self.put(")");
        if let Some(search) = optional(of, "search_clause") {
            self.search(search)?;
        }
        optional(of, "cycle_clause").map_or(Ok(()), |cycle| self.cycle(cycle))
    }

    fn search(&mut self, search: &'t NodeStruct<'t>) -> Written {
        let is_breadth = search.boolean("search_breadth_first")?;
        let order = if is_breadth { "BREADTH" } else { "DEPTH" };
        self.put(&format!(" SEARCH {order} FIRST BY "));
        self.identifiers(search, "search_col_list")?;
        self.put(" SET ");
        self.named(search, "search_seq_column")
    }

    fn cycle(&mut self, cycle: &'t NodeStruct<'t>) -> Written {
        self.put(" CYCLE ");
        self.identifiers(cycle, "cycle_col_list")?;
        self.put(" SET ");
        self.named(cycle, "cycle_mark_column")?;
        let (mark, other) = (cycle.node("cycle_mark_value")?, cycle.node("cycle_mark_default")?);
        if !is_boolean(mark, true)? || !is_boolean(other, false)? {
            self.put(" TO ");
            self.expr(mark, false)?;
            self.put(" DEFAULT ");
            self.expr(other, false)?;
        }
        self.put(" USING ");
        self.named(cycle, "cycle_path_column")
    }

    fn named(&mut self, node: &NodeStruct<'_>, label: &str) -> Written {
        self.identifier(&text(node, label)?.ok_or_else(|| Unwritten::node(node))?);
        Ok(())
    }

    fn basic_select(
        &mut self,
        query: &'t NodeStruct<'t>,
        targets: &[&'t NodeStruct<'t>],
        outside: Outside<'_>,
    ) -> Written {
        if self.style.is_indented {
            self.indentation += STEP;
            self.put(" ");
        }
        if let Some(values) = self.only_values(targets, outside)? {
            return self.values(values);
        }
        self.put(if flag(query, "isReturn") { "RETURN" } else { "SELECT" });
        let distinct = query.nodes("distinctClause")?;
        if flag(query, "hasDistinctOn") {
            self.put(" DISTINCT ON (");
            self.sort_items(&distinct, targets)?;
            self.put(")");
        } else if !distinct.is_empty() {
            self.put(" DISTINCT");
        }
        self.targets(targets, outside)?;
        let tree = query.node("jointree")?;
        self.tables_clause(tree, " FROM ")?;
        if let Some(condition) = optional(tree, "quals") {
            self.clause(" WHERE ", 1);
            self.expr(condition, false)?;
        }
        self.group_by(query, targets)?;
        if let Some(condition) = optional(query, "havingQual") {
            self.clause(" HAVING ", 0);
            self.expr(condition, false)?;
        }
        self.named_windows(query, targets)
    }

    fn group_by(&mut self, query: &'t NodeStruct<'t>, targets: &[&'t NodeStruct<'t>]) -> Written {
        let (groups, sets) = (query.nodes("groupClause")?, query.nodes("groupingSets")?);
        if groups.is_empty() && sets.is_empty() {
            return Ok(());
        }
        self.clause(" GROUP BY ", 1);
        if flag(query, "groupDistinct") {
            self.put("DISTINCT ");
        }
        if sets.is_empty() {
            return self.sort_items(&groups, targets);
        }
        for (at, set) in sets.iter().enumerate() {
            if at > 0 {
                self.put(", ");
            }
            self.grouping_set(set, targets, true)?;
        }
        Ok(())
    }

    fn grouping_set(
        &mut self,
        set: &'t NodeStruct<'t>,
        targets: &[&'t NodeStruct<'t>],
        omits_parentheses: bool,
    ) -> Written {
        let (opening, inner_omits) = match set.number::<u8>("kind")? {
            0 => {
                self.put("()");
                return Ok(());
            }
            1 => {
                let content = numbers(set, "content")?;
                let has_parentheses = !omits_parentheses || content.len() != 1;
                if has_parentheses {
                    self.put("(");
                }
                for (at, reference) in content.into_iter().enumerate() {
                    if at > 0 {
                        self.put(", ");
                    }
                    self.sort_item(reference, targets, false)?;
                }
                if has_parentheses {
                    self.put(")");
                }
                return Ok(());
            }
            2 => ("ROLLUP(", true),
            3 => ("CUBE(", true),
            _ => ("GROUPING SETS (", false),
        };
        self.put(opening);
        for (at, inner) in set.nodes("content")?.into_iter().enumerate() {
            if at > 0 {
                self.put(", ");
            }
            self.grouping_set(inner, targets, inner_omits)?;
        }
        self.put(")");
        Ok(())
    }

    /// The one VALUES that a query is, if it is nothing else and calls the columns as they are called anyhow.
    fn only_values(
        &self,
        targets: &[&'t NodeStruct<'t>],
        outside: Outside<'_>,
    ) -> Written<Option<&'t NodeStruct<'t>>> {
        let mut found = None;
        for item in &self.own()?.items {
            let node = item.node()?;
            let is_in_from = flag(node, "inFromCl");
            match item.kind {
                Kind::Values if is_in_from && found.is_none() => found = Some(node),
                Kind::Relation if !is_in_from => {}
                _ => return Ok(None),
            }
        }
        let Some(values) = found else { return Ok(None) };
        let names = texts(values.node("eref")?, "colnames")?;
        if names.len() != targets.len() {
            return Ok(None);
        }
        for (at, (target, name)) in targets.iter().zip(&names).enumerate() {
            let called = match outside.names.and_then(|names| names.get(at)) {
                Some(outer) => Some(outer.clone()),
                None => text(target, "resname")?,
            };
            if flag(target, "resjunk") || called.as_ref() != Some(name) {
                return Ok(None);
            }
        }
        Ok(Some(values))
    }

    /// The lists of an item that is VALUES.
    pub(super) fn values(&mut self, item: &'t NodeStruct<'t>) -> Written {
        self.put("VALUES ");
        for (at, row) in item.value("values_lists")?.as_list()?.iter().enumerate() {
            self.put(if at > 0 { ", (" } else { "(" });
            for (at, value) in row.as_list()?.iter().enumerate() {
                if at > 0 {
                    self.put(",");
                }
                let value = value.structure().ok_or_else(|| Unwritten::node(item))?;
                self.top_level(value, false)?;
            }
            self.put(")");
        }
        Ok(())
    }

    pub(super) fn targets(
        &mut self,
        targets: &[&'t NodeStruct<'t>],
        outside: Outside<'_>,
    ) -> Written {
        let (mut count, mut was_long) = (0, false);
        for target in targets {
            if flag(target, "resjunk") {
                continue;
            }
            self.put(if count == 0 { " " } else { ", " });
            let written = self.apart(|writer| writer.target(target, count, outside))?;
            count += 1;
            if self.wraps() {
                let begins_a_line = written.starts_with('\n');
                if begins_a_line {
                    self.drop_blanks();
                } else if count > 1 && (self.overflows(written.len()) || was_long) {
                    self.keyword("", (-STEP, STEP, VAR_STEP));
                }
                was_long = written[usize::from(begins_a_line)..].contains('\n');
            }
            self.put(&written);
        }
        Ok(())
    }

    fn target(&mut self, target: &'t NodeStruct<'t>, at: usize, outside: Outside<'_>) -> Written {
        let expr = target.node("expr")?;
        let own = match is_var(expr) {
            true => self.variable(expr, 0, true)?,
            false => {
                self.expr(expr, true)?;
                (!outside.are_seen).then(|| "?column?".to_owned())
            }
        };
        let called = match outside.names.and_then(|names| names.get(at)) {
            Some(outer) => Some(outer.clone()),
            None => text(target, "resname")?,
        };
        if let Some(called) = called.filter(|called| own.as_ref() != Some(called)) {
            self.put(" AS ");
            self.identifier(&called);
        }
        Ok(())
    }

    fn set_operation(&mut self, tree: &'t NodeStruct<'t>, outside: Outside<'_>) -> Written {
        if tree.name == b"RANGETBLREF" {
            return self.operand(tree, outside);
        }
        let side = |label: &str| -> Written<Option<(u8, bool)>> {
            let of = tree.node(label)?;
            match of.name == b"SETOPERATIONSTMT" {
                true => Ok(Some((of.number("op")?, of.boolean("all")?))),
                false => Ok(None),
            }
        };
        let own = (tree.number::<u8>("op")?, tree.boolean("all")?);
        let needs_parentheses = side("larg")?.is_some_and(|left| left != own);
        let step = if needs_parentheses { STEP } else { 0 };
        if needs_parentheses {
            self.put("(");
            self.keyword("", (step, 0, 0));
        }
        self.set_operation(tree.node("larg")?, outside)?;
        match (needs_parentheses, self.style.is_indented) {
            (true, _) => self.keyword(") ", (-step, 0, 0)),
            (false, true) => self.keyword("", (-step, 0, 0)),
            (false, false) => self.put(" "),
        }
        const OPERATIONS: [&str; 4] = ["", "UNION ", "INTERSECT ", "EXCEPT "];
        self.put(OPERATIONS.get(usize::from(own.0)).ok_or_else(|| Unwritten::node(tree))?);
        if own.1 {
            self.put("ALL ");
        }
        let needs_parentheses = side("rarg")?.is_some();
        let step = if needs_parentheses { STEP } else { 0 };
        if needs_parentheses {
            self.put("(");
        }
        self.keyword("", (step, 0, 0));
        self.set_operation(tree.node("rarg")?, Outside { are_seen: false, ..outside })?;
        if self.style.is_indented {
            self.indentation -= step;
        }
        if needs_parentheses {
            self.keyword(")", (0, 0, 0));
        }
        Ok(())
    }

    fn operand(&mut self, tree: &'t NodeStruct<'t>, outside: Outside<'_>) -> Written {
        let query = self.own()?.item(tree.number("rtindex")?)?.node()?.node("subquery")?;
        let lists = ["cteList", "sortClause", "rowMarks"];
        let nodes = ["limitOffset", "limitCount", "setOperations"];
        let has_list = lists.iter().any(|l| query.nodes(l).is_ok_and(|found| !found.is_empty()));
        let needs_parentheses = has_list || nodes.iter().any(|l| optional(query, l).is_some());
        if needs_parentheses {
            self.put("(");
        }
        self.query(query, outside)?;
        if needs_parentheses {
            self.put(")");
        }
        Ok(())
    }

    pub(super) fn sort_items(
        &mut self,
        items: &[&'t NodeStruct<'t>],
        targets: &[&'t NodeStruct<'t>],
    ) -> Written {
        for (at, item) in items.iter().enumerate() {
            if at > 0 {
                self.put(", ");
            }
            self.sort_item(item.number("tleSortGroupRef")?, targets, false)?;
        }
        Ok(())
    }

    /// What is sorted or grouped by, as an expression or by its number.
    fn sort_item(
        &mut self,
        reference: i32,
        targets: &[&'t NodeStruct<'t>],
        by_number: bool,
    ) -> Written<&'t NodeStruct<'t>> {
        let is_it = |target: &&&NodeStruct<'_>| {
            target.number::<i32>("ressortgroupref").is_ok_and(|own| own == reference)
        };
        let missing = || Unwritten::damaged("an order by nothing");
        let target = *targets.iter().find(is_it).ok_or_else(missing)?;
        let expr = target.node("expr")?;
        // A group's own expression stands behind the column that it is, from 18 on.
        let meant = self.grouped(expr)?;
        if by_number {
            self.put(&target.number::<i32>("resno")?.to_string());
        } else if is_const(meant) {
            self.constant_node(meant, Label::Always)?;
        } else if is_var(meant) {
            self.expr(expr, true)?;
        } else {
            let is_call = matches!(meant.name, b"FUNCEXPR" | b"AGGREF" | b"WINDOWFUNC");
            let has_parentheses = self.style.is_pretty || is_call;
            if has_parentheses {
                self.put("(");
            }
            self.expr(expr, true)?;
            if has_parentheses {
                self.put(")");
            }
        }
        Ok(meant)
    }

    fn grouped(&self, expr: &'t NodeStruct<'t>) -> Written<&'t NodeStruct<'t>> {
        if !is_var(expr) || expr.number::<usize>("varlevelsup")? != 0 {
            return Ok(expr);
        }
        let Ok(item) = self.own()?.item(expr.number("varno")?) else { return Ok(expr) };
        if item.kind != Kind::Group {
            return Ok(expr);
        }
        let place = expr.number::<usize>("varattno")?.checked_sub(1);
        let groups = item.node()?.nodes("groupexprs")?;
        place.and_then(|at| groups.get(at).copied()).ok_or_else(|| Unwritten::node(expr))
    }

    pub(super) fn order_by(
        &mut self,
        items: &[&'t NodeStruct<'t>],
        targets: &[&'t NodeStruct<'t>],
        by_number: bool,
    ) -> Written {
        for (at, item) in items.iter().enumerate() {
            if at > 0 {
                self.put(", ");
            }
            self.sort_item(item.number("tleSortGroupRef")?, targets, by_number)?;
            let nulls_first = item.boolean("nulls_first")?;
            let operator = item.oid("sortop")?;
            match self.dictionary.is_default_order(operator) {
                Some(true) if nulls_first => self.put(" NULLS FIRST"),
                Some(true) => {}
                Some(false) if nulls_first => self.put(" DESC"),
                Some(false) => self.put(" DESC NULLS LAST"),
                None => {
                    let name = self.dictionary.operator(operator)?;
                    let nulls = if nulls_first { "FIRST" } else { "LAST" };
                    self.put(&format!(" USING {name} NULLS {nulls}"));
                }
            }
        }
        Ok(())
    }
}

fn is_boolean(node: &NodeStruct<'_>, value: bool) -> Written<bool> {
    let of = Const::of(node)?;
    let is_it = of.value.as_deref().and_then(<[u8]>::first) == Some(&u8::from(value));
    Ok(node.oid("consttype")? == oid::BOOL && is_it)
}

/// `LIMIT_OPTION_WITH_TIES`.
const WITH_TIES: u8 = 1;
