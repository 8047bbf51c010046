//! Commands that change rows, as rules and bodies of functions have them: INSERT, UPDATE, DELETE and MERGE; and NOTIFY, which rules
//! may have, too.
//!
//! Source: `get_insert_query_def`, `get_update_query_def`, `get_delete_query_def`, `get_merge_query_def`, `processIndirection`,
//! `get_returning_clause`, `get_utility_query_def` in `src/backend/utils/adt/ruleutils.c`, PostgreSQL 14 to 18.

use std::collections::VecDeque;

use pagemill_format::Oid;
use pagemill_format::node_tree::NodeStruct;

use super::Unwritten;
use super::columns::{Item, Kind};
use super::constraints::constraint_name;
use super::dictionary::{Dictionary, literal};
use super::indexes::IndexWriter;
use super::query::Outside;
use super::tree::{
    Form, MULTIEXPR_SUBLINK, flag, form, is_var, numbers, optional, text, without_implicit,
};
use super::writer::{STEP, Writer, Written};

/// What a stored statement does: `CmdType`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Command {
    Select,
    Update,
    Insert,
    Delete,
    Merge,
    Utility,
    Nothing,
}

impl Command {
    /// MERGE came between the others in 15.
    pub(super) fn of(dictionary: &Dictionary, node: &NodeStruct<'_>) -> Written<Self> {
        let number: u8 = node.number("commandType")?;
        let since_merge = match (number, dictionary.major()) {
            (5.., ..15) => number + 1,
            _ => number,
        };
        Ok(match since_merge {
            1 => Self::Select,
            2 => Self::Update,
            3 => Self::Insert,
            4 => Self::Delete,
            5 => Self::Merge,
            6 => Self::Utility,
            7 => Self::Nothing,
            _ => return Err(Unwritten::node(node)),
        })
    }
}

const INSERT_INTO: &str = "INSERT INTO ";
/// `PARAM_MULTIEXPR`, a column of a query that several columns are set to.
const OF_SEVERAL: i32 = 3;
/// `OverridingKind`.
const OVERRIDING: [&str; 3] = ["", "OVERRIDING USER VALUE", "OVERRIDING SYSTEM VALUE"];
/// `ONCONFLICT_NOTHING`.
const DO_NOTHING: u8 = 1;
/// `MERGE_WHEN_NOT_MATCHED_BY_SOURCE`.
const BY_SOURCE: u8 = 1;

impl<'t> Writer<'t> {
    pub(super) fn insert(&mut self, query: &'t NodeStruct<'t>, outside: Outside<'_>) -> Written {
        self.with(query)?;
        let of = |kind: Kind| -> Written<Option<&'t NodeStruct<'t>>> {
            let item = self.own()?.items.iter().find(|item| item.kind == kind);
            item.map(Item::node).transpose()
        };
        let (subquery, values) = (of(Kind::Subquery)?, of(Kind::Values)?);
        let relation = self.target_of(query, INSERT_INTO)?;
        self.put(" ");
        let own = self.inserted_columns(&query.nodes("targetList")?, relation)?;
        if !own.is_empty() {
            self.put(" ");
        }
        let overriding = overriding(query)?;
        if !overriding.is_empty() {
            self.put(&format!("{overriding} "));
        }
        match (subquery, values) {
            (Some(item), _) => self.inner_query(item.node("subquery")?, false)?,
            (None, Some(item)) => self.values(item)?,
            (None, None) if own.is_empty() => self.put("DEFAULT VALUES"),
            (None, None) => {
                self.clause("VALUES (", 2);
                self.inserted_values(&own)?;
            }
        }
        if let Some(conflict) = optional(query, "onConflict") {
            self.on_conflict(conflict, relation)?;
        }
        self.returning(query, outside)
    }

    pub(super) fn update(&mut self, query: &'t NodeStruct<'t>, outside: Outside<'_>) -> Written {
        self.with(query)?;
        let relation = self.target_of(query, "UPDATE ")?;
        self.put(" SET ");
        self.assignments(&query.nodes("targetList")?, relation)?;
        self.tables_and_condition(query, " FROM ")?;
        self.returning(query, outside)
    }

    pub(super) fn delete(&mut self, query: &'t NodeStruct<'t>, outside: Outside<'_>) -> Written {
        self.with(query)?;
        self.target_of(query, "DELETE FROM ")?;
        self.tables_and_condition(query, " USING ")?;
        self.returning(query, outside)
    }

    pub(super) fn merge(&mut self, query: &'t NodeStruct<'t>, outside: Outside<'_>) -> Written {
        self.with(query)?;
        let relation = self.target_of(query, "MERGE INTO ")?;
        let tree = query.node("jointree")?;
        self.tables_clause(tree, " USING ")?;
        // Before 17 it was the condition of the join.
        let condition = optional(query, "mergeJoinCondition").or_else(|| optional(tree, "quals"));
        self.clause(" ON ", 2);
        self.expr(condition.ok_or_else(|| Unwritten::node(query))?, false)?;
        let actions = query.nodes("mergeActionList")?;
        let is_by_source = |action: &&NodeStruct<'_>| {
            action.number::<u8>("matchKind").is_ok_and(|kind| kind == BY_SOURCE)
        };
        let tells_sides = actions.iter().any(is_by_source);
        for action in actions {
            self.merge_action(action, relation, tells_sides)?;
        }
        self.returning(query, outside)
    }

    pub(super) fn utility(&mut self, query: &'t NodeStruct<'t>) -> Written {
        let statement = query.node("utilityStmt")?;
        if !matches!(statement.name, b"NOTIFY" | b"NOTIFYSTMT") {
            return Err(Unwritten::node(statement));
        }
        let channel = text(statement, "conditionname")?;
        self.keyword("", (0, STEP, 1));
        self.put("NOTIFY ");
        self.identifier(&channel.ok_or_else(|| Unwritten::node(statement))?);
        if let Some(payload) = text(statement, "payload")? {
            self.put(&format!(", {}", literal(&payload)));
        }
        Ok(())
    }

    /// The command and the table whose rows it changes.
    fn target_of(&mut self, query: &'t NodeStruct<'t>, command: &str) -> Written<Oid> {
        let item = self.own()?.item(query.number("resultRelation")?)?.clone();
        let node = item.node()?;
        let relation = node.oid("relid")?;
        if self.style.is_indented {
            self.put(" ");
            self.indentation += STEP;
        }
        let has_parts = flag(node, "inh") || command == INSERT_INTO;
        let only = if has_parts { "" } else { "ONLY " };
        let name = self.dictionary.relation_name(relation)?;
        self.put(&format!("{command}{only}{name}"));
        // Minor versions before 15.20, and those of its time, have AS only in INSERT: an alias might be a word of the grammar.
        self.alias(&item, " AS ")?;
        Ok(relation)
    }

    /// The columns that rows are inserted into, and what goes there.
    fn inserted_columns(
        &mut self,
        targets: &[&'t NodeStruct<'t>],
        relation: Oid,
    ) -> Written<Vec<&'t NodeStruct<'t>>> {
        let mut values = Vec::new();
        for target in targets.iter().filter(|target| !flag(target, "resjunk")) {
            self.put(if values.is_empty() { "(" } else { ", " });
            self.target_column(target, relation)?;
            values.push(self.assigned(target.node("expr")?)?);
        }
        if !targets.is_empty() {
            self.put(")");
        }
        Ok(values)
    }

    /// By its name of today.
    fn target_column(&mut self, target: &NodeStruct<'_>, relation: Oid) -> Written {
        let name = self.dictionary.column(relation, target.number("resno")?)?.name;
        self.identifier(&name);
        Ok(())
    }

    fn inserted_values(&mut self, values: &[&'t NodeStruct<'t>]) -> Written {
        for (at, value) in values.iter().enumerate() {
            if at > 0 {
                self.put(", ");
            }
            self.top_level(value, false)?;
        }
        self.put(")");
        Ok(())
    }

    /// Which field or element of a column is set, and to what.
    fn assigned(&mut self, node: &'t NodeStruct<'t>) -> Written<&'t NodeStruct<'t>> {
        let (mut node, mut around) = (node, node);
        while let Some(inner) = stored_in(node)? {
            match node.name {
                b"FIELDSTORE" => self.set_field(node)?,
                b"SUBSCRIPTINGREF" => self.subscripts(node)?,
                _ => {}
            }
            (node, around) = (inner, node);
        }
        // A domain about nothing of that kind is part of the value.
        Ok(if around.name == b"COERCETODOMAIN" { around } else { node })
    }

    fn set_field(&mut self, node: &NodeStruct<'_>) -> Written {
        let type_oid = node.oid("resulttype")?;
        let relation = self.dictionary.relation_of_type(type_oid);
        let relation = relation.ok_or_else(|| Unwritten::missing("row type", type_oid))?;
        let fields = numbers::<i16>(node, "fieldnums")?;
        let field = fields.first().ok_or_else(|| Unwritten::node(node))?;
        let name = self.dictionary.column(relation, *field)?.name;
        self.put(".");
        self.identifier(&name);
        Ok(())
    }

    /// What columns are set to, several of them perhaps to the columns of one query.
    fn assignments(&mut self, targets: &[&'t NodeStruct<'t>], relation: Oid) -> Written {
        let mut queries = several_set(targets);
        let mut open: Option<(&'t NodeStruct<'t>, usize)> = None;
        let own = targets.iter().filter(|target| !flag(target, "resjunk"));
        for (at, target) in own.enumerate() {
            if at > 0 {
                self.put(", ");
            }
            let expr = target.node("expr")?;
            if open.is_none() && is_of_several(expr)? {
                open = queries.pop_front().map(|query| (query, 0));
                if let Some((query, left)) = &mut open {
                    *left = columns_of(query)?;
                    self.put("(");
                }
            }
            self.target_column(target, relation)?;
            let mut value = self.assigned(expr)?;
            match open.take() {
                Some((query, left)) if left > 1 => {
                    open = Some((query, left - 1));
                    continue;
                }
                Some((query, _)) => {
                    self.put(")");
                    value = query;
                }
                None => {}
            }
            self.put(" = ");
            self.expr(value, false)?;
        }
        Ok(())
    }

    fn tables_and_condition(&mut self, query: &'t NodeStruct<'t>, word: &str) -> Written {
        let tree = query.node("jointree")?;
        self.tables_clause(tree, word)?;
        if let Some(condition) = optional(tree, "quals") {
            self.clause(" WHERE ", 1);
            self.expr(condition, false)?;
        }
        Ok(())
    }

    fn on_conflict(&mut self, conflict: &'t NodeStruct<'t>, relation: Oid) -> Written {
        self.put(" ON CONFLICT");
        let (elements, constraint) = (conflict.nodes("arbiterElems")?, conflict.oid("constraint")?);
        if !elements.is_empty() {
            self.put("(");
            self.list(&elements, false)?;
            self.put(")");
            if let Some(condition) = optional(conflict, "arbiterWhere") {
                self.clause(" WHERE ", 1);
                self.without_prefixes(|writer| writer.expr(condition, false))?;
            }
        } else if constraint.is_valid() {
            let name = constraint_name(&self.catalog, constraint)?;
            self.put(" ON CONSTRAINT ");
            self.identifier(&name);
        }
        if conflict.number::<u8>("action")? == DO_NOTHING {
            self.put(" DO NOTHING");
            return Ok(());
        }
        self.put(" DO UPDATE SET ");
        self.assignments(&conflict.nodes("onConflictSet")?, relation)?;
        if let Some(condition) = optional(conflict, "onConflictWhere") {
            self.clause(" WHERE ", 1);
            self.expr(condition, false)?;
        }
        Ok(())
    }

    /// What tells a row that is there already: of the table itself, so without its name.
    pub(super) fn inference_element(&mut self, node: &'t NodeStruct<'t>) -> Written {
        let expr = node.node("expr")?;
        let is_call = expr.name == b"FUNCEXPR" && form(expr, "funcformat")? == Form::Call;
        let has_parentheses = !is_var(expr) && !is_call;
        if has_parentheses {
            self.put("(");
        }
        self.without_prefixes(|writer| writer.expr(expr, false))?;
        if has_parentheses {
            self.put(")");
        }
        let collation = node.oid("infercollid")?;
        if collation.is_valid() {
            let name = self.dictionary.collation(collation)?;
            self.put(&format!(" COLLATE {name}"));
        }
        let class = node.oid("inferopclass")?;
        if class.is_valid() {
            let indexes = IndexWriter::new(&self.catalog, self.style);
            let indexes = indexes.map_err(|error| Unwritten::unknown(error.to_string()))?;
            let name = indexes.class_of_own_type(class)?;
            self.put(&name);
        }
        Ok(())
    }

    fn without_prefixes(&mut self, write: impl FnOnce(&mut Self) -> Written) -> Written {
        let before = std::mem::replace(&mut self.has_prefixes, false);
        let written = write(self);
        self.has_prefixes = before;
        written
    }

    fn merge_action(
        &mut self,
        action: &'t NodeStruct<'t>,
        relation: Oid,
        tells_sides: bool,
    ) -> Written {
        self.clause(" WHEN ", 2);
        let is_matched = match action.values("matched") {
            Some(_) => action.boolean("matched")?,
            None => action.number::<u8>("matchKind")? == 0,
        };
        self.put(match (is_matched, tells_sides) {
            (true, _) => "MATCHED",
            (false, false) => "NOT MATCHED",
            (false, true) if action.number::<u8>("matchKind")? == BY_SOURCE => {
                "NOT MATCHED BY SOURCE"
            }
            (false, true) => "NOT MATCHED BY TARGET",
        });
        if let Some(condition) = optional(action, "qual") {
            self.clause(" AND ", 3);
            self.expr(condition, false)?;
        }
        self.clause(" THEN ", 3);
        match Command::of(&self.dictionary, action)? {
            Command::Insert => self.merge_insert(action, relation)?,
            Command::Update => {
                self.put("UPDATE SET ");
                self.assignments(&action.nodes("targetList")?, relation)?;
            }
            Command::Delete => self.put("DELETE"),
            Command::Nothing => self.put("DO NOTHING"),
            _ => return Err(Unwritten::node(action)),
        }
        Ok(())
    }

    fn merge_insert(&mut self, action: &'t NodeStruct<'t>, relation: Oid) -> Written {
        self.put("INSERT");
        let targets = action.nodes("targetList")?;
        if !targets.is_empty() {
            self.put(" ");
        }
        let values = self.inserted_columns(&targets, relation)?;
        let overriding = overriding(action)?;
        if !overriding.is_empty() {
            self.put(&format!(" {overriding}"));
        }
        if values.is_empty() {
            self.put(" DEFAULT VALUES");
            return Ok(());
        }
        self.clause(" VALUES (", 4);
        self.inserted_values(&values)
    }

    fn returning(&mut self, query: &'t NodeStruct<'t>, outside: Outside<'_>) -> Written {
        let returned = query.nodes("returningList")?;
        if returned.is_empty() {
            return Ok(());
        }
        self.clause(" RETURNING", 1);
        let words = ["OLD", "NEW"].into_iter().zip(self.own()?.returning.clone());
        let named = words.filter_map(|(word, alias)| {
            let alias = alias.filter(|alias| *alias != word.to_lowercase())?;
            Some(format!("{word} AS {}", self.dictionary.quoted(&alias)))
        });
        let named: Vec<String> = named.collect();
        if !named.is_empty() {
            self.put(&format!(" WITH ({})", named.join(", ")));
        }
        self.targets(&returned, outside)
    }
}

fn overriding(node: &NodeStruct<'_>) -> Written<&'static str> {
    let found = OVERRIDING.get(node.number::<usize>("override")?);
    found.copied().ok_or_else(|| Unwritten::node(node))
}

/// What a field, an element or, without anybody's asking, a domain is made of that a column is set to; `None` of a value.
fn stored_in<'t>(node: &'t NodeStruct<'t>) -> Written<Option<&'t NodeStruct<'t>>> {
    Ok(match node.name {
        b"FIELDSTORE" => {
            let values = node.nodes("newvals")?;
            Some(values.first().copied().ok_or_else(|| Unwritten::node(node))?)
        }
        b"SUBSCRIPTINGREF" => optional(node, "refassgnexpr"),
        b"COERCETODOMAIN" if form(node, "coercionformat")? == Form::Implicit => {
            Some(node.node("arg")?)
        }
        _ => None,
    })
}

/// The queries that several columns are set to, in order.
fn several_set<'t>(targets: &[&'t NodeStruct<'t>]) -> VecDeque<&'t NodeStruct<'t>> {
    let queries = targets.iter().filter(|target| flag(target, "resjunk")).filter_map(|target| {
        let expr = optional(target, "expr")?;
        let kind = expr.number::<u8>("subLinkType").ok()?;
        (expr.name == b"SUBLINK" && kind == MULTIEXPR_SUBLINK).then_some(expr)
    });
    queries.collect()
}

fn columns_of(sublink: &NodeStruct<'_>) -> Written<usize> {
    let targets = sublink.node("subselect")?.nodes("targetList")?;
    Ok(targets.iter().filter(|target| !flag(target, "resjunk")).count())
}

/// Whether a column is set to one of a query's.
fn is_of_several<'t>(expr: &'t NodeStruct<'t>) -> Written<bool> {
    let mut node = expr;
    while let Some(inner) = stored_in(node)? {
        node = inner;
    }
    let value = without_implicit(node);
    Ok(value.name == b"PARAM" && value.number::<i32>("paramkind")? == OF_SEVERAL)
}
