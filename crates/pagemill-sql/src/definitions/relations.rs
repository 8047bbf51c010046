//! What belongs to a table or view: queries of views, rules, triggers, statistics.
//!
//! Source: `make_viewdef`, `make_ruledef`, `pg_get_triggerdef_worker`, `pg_get_statisticsobj_worker` in
//! `src/backend/utils/adt/ruleutils.c`, PostgreSQL 14 to 18.

use std::collections::HashMap;
use std::sync::Arc;

use pagemill_format::Oid;
use pagemill_format::node_tree::{Node, NodeStruct};

use super::Unwritten;
use super::columns::Namespace;
use super::dictionary::literal;
use super::tree::{optional, text as tree_text};
use super::writer::{Style, Writer, Written};
use crate::catalog::Catalog;
use crate::error::Result;
use crate::system_rows::{SystemRow, for_each_row};

/// The rule that a view's query is.
const VIEW_RULE: &str = "_RETURN";

/// What is read of `pg_rewrite`, and where in that the name and the relation are.
const RULE_COLUMNS: [&str; 7] =
    ["oid", "rulename", "ev_class", "ev_type", "is_instead", "ev_qual", "ev_action"];
const RULE_NAME: usize = 1;
const RULE_RELATION: usize = 2;

/// A row of `pg_rewrite`.
#[derive(Debug, Clone)]
pub(crate) struct Rule {
    name: String,
    relation: Oid,
    event: u8,
    is_instead: bool,
    condition: String,
    action: String,
}

impl Rule {
    fn read(row: &mut SystemRow<'_>) -> Result<Self> {
        Ok(Self {
            name: row.name(RULE_NAME),
            relation: row.oid(RULE_RELATION),
            event: row.byte(3),
            is_instead: row.bool(4),
            condition: row.text(5)?.unwrap_or_default(),
            action: row.text(6)?.unwrap_or_default(),
        })
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// True for a rule of that relation.
    pub(crate) fn is_of(&self, relation: Oid) -> bool {
        self.relation == relation
    }

    /// The relation that it is of.
    pub(super) fn relation(&self) -> Oid {
        self.relation
    }

    /// The number of the command that it is for.
    pub(super) fn event_number(&self) -> u32 {
        u32::from(self.event.wrapping_sub(b'0') & 7)
    }

    /// True where nothing is done but what it says.
    pub(super) fn is_always_instead(&self) -> bool {
        self.is_instead && self.condition == "<>"
    }

    /// What it does, as a stored tree.
    pub(super) fn action(&self) -> &str {
        &self.action
    }

    /// True for the query of a view.
    pub(crate) fn is_of_view(&self) -> bool {
        self.name == VIEW_RULE
    }
}

/// All rules, by OID.
///
/// # Errors
/// When the catalog cannot be read.
pub(crate) fn rules(catalog: &Catalog) -> Result<HashMap<Oid, Rule>> {
    let mut found = HashMap::new();
    for_each_row(catalog.values(), "pg_rewrite", &RULE_COLUMNS, |row| {
        found.insert(row.oid(0), Rule::read(row)?);
        Ok(())
    })?;
    Ok(found)
}

/// The rule that is the query of one view.
///
/// # Errors
/// When the catalog cannot be read.
pub(crate) fn view_rule(catalog: &Catalog, view: Oid) -> Result<Option<Rule>> {
    let mut found = None;
    for_each_row(catalog.values(), "pg_rewrite", &RULE_COLUMNS, |row| {
        // Trees of others are not decompressed.
        if row.oid(RULE_RELATION) == view && row.name(RULE_NAME) == VIEW_RULE {
            found = Some(Rule::read(row)?);
        }
        Ok(())
    })?;
    Ok(found)
}

/// The rules that are queries of views, by the view.
///
/// # Errors
/// When the catalog cannot be read.
pub(crate) fn view_rules(catalog: &Catalog) -> Result<HashMap<Oid, Rule>> {
    let rules = rules(catalog)?.into_values().filter(Rule::is_of_view);
    Ok(rules.map(|rule| (rule.relation, rule)).collect())
}

/// The query of a view, without a semicolon.
pub(crate) fn view(catalog: &Arc<Catalog>, rule: &Rule, style: Style) -> Written<String> {
    let dictionary = dictionary(catalog)?;
    let parsed = Node::parse(rule.action.as_bytes())?;
    let query = parsed.as_list()?.first().and_then(Node::structure);
    let query = query.ok_or_else(|| Unwritten::damaged("a view without a query"))?;
    let names = (rule.event == b'1').then(|| dictionary.column_names(rule.relation));
    Writer::new(catalog, &dictionary, style).view(query, names.as_deref())
}

fn dictionary(catalog: &Arc<Catalog>) -> Written<Arc<super::Dictionary>> {
    catalog.dictionary().map_err(|error| Unwritten::damaged(error.to_string()))
}

/// The statement that makes a rule.
pub(crate) fn rule(catalog: &Arc<Catalog>, rule: &Rule, style: Style) -> Written<String> {
    let dictionary = dictionary(catalog)?;
    let event = match rule.event {
        b'1' => "SELECT",
        b'2' => "UPDATE",
        b'3' => "INSERT",
        b'4' => "DELETE",
        other => return Err(Unwritten::unknown(format!("a rule on the event {other}"))),
    };
    let table = match style.is_pretty {
        true => dictionary.relation_name(rule.relation)?,
        false => dictionary.qualified_relation_name(rule.relation)?,
    };
    let parsed = Node::parse(rule.action.as_bytes())?;
    let actions: Option<Vec<_>> = parsed.as_list()?.iter().map(Node::structure).collect();
    let actions = actions.filter(|actions| !actions.is_empty());
    let actions = actions.ok_or_else(|| Unwritten::damaged("a rule without an action"))?;
    let mut text =
        format!("CREATE RULE {} AS\n    ON {event} TO {table}", dictionary.quoted(&rule.name));
    if rule.condition != "<>" {
        let condition = Node::parse(rule.condition.as_bytes())?;
        let missing = || Unwritten::damaged("a rule without its condition");
        let condition = condition.structure().ok_or_else(missing)?;
        let query = over_rows(actions[0])?;
        let written = Writer::new(catalog, &dictionary, style).rule_condition(condition, query)?;
        text += &format!("\n   WHERE {written}");
    }
    text += if rule.is_instead { " DO INSTEAD " } else { " DO " };
    let names = (rule.event == b'1').then(|| dictionary.column_names(rule.relation));
    // A line that an action begins with ends the one before without blanks: so each goes on in the text.
    let write = |before: String, query| {
        Writer::new(catalog, &dictionary, style).view_after(before, query, names.as_deref())
    };
    if let [only] = actions[..] {
        return Ok(write(text, only)? + ";");
    }
    text.push('(');
    for action in actions {
        text = write(text, action)? + ";\n";
    }
    Ok(text + ");")
}

/// The query that a rule's condition is over: of INSERT … SELECT the SELECT, whose are the rows before and after then.
///
/// Source: `getInsertSelectQuery` in `src/backend/rewrite/rewriteManip.c`, PostgreSQL 18.
fn over_rows<'t>(action: &'t NodeStruct<'t>) -> Written<&'t NodeStruct<'t>> {
    let tables = action.nodes("rtable")?;
    let called = |at: usize| tables.get(at).and_then(|item| name_of(item));
    if called(0).as_deref() == Some("old") && called(1).as_deref() == Some("new") {
        return Ok(action);
    }
    let subquery = tables.iter().find_map(|item| optional(item, "subquery"));
    Ok(subquery.unwrap_or(action))
}

fn name_of(item: &NodeStruct<'_>) -> Option<String> {
    tree_text(optional(item, "eref")?, "aliasname").ok().flatten()
}

/// A row of `pg_trigger`.
#[derive(Debug, Clone)]
pub(crate) struct Trigger {
    name: String,
    table: Oid,
    function: Oid,
    kind: i16,
    constraint: Oid,
    referenced: Oid,
    is_deferrable: bool,
    is_deferred: bool,
    columns: Vec<i16>,
    arguments: Vec<u8>,
    condition: Option<String>,
    old_table: Option<String>,
    new_table: Option<String>,
}

/// All triggers, by OID.
///
/// # Errors
/// When the catalog cannot be read.
pub(crate) fn triggers(catalog: &Catalog) -> Result<HashMap<Oid, Trigger>> {
    let columns = [
        "oid",
        "tgname",
        "tgrelid",
        "tgfoid",
        "tgtype",
        "tgconstraint",
        "tgconstrrelid",
        "tgdeferrable",
        "tginitdeferred",
        "tgattr",
        "tgargs",
        "tgqual",
        "tgoldtable",
        "tgnewtable",
    ];
    let mut found = HashMap::new();
    for_each_row(catalog.values(), "pg_trigger", &columns, |row| {
        let trigger = Trigger {
            name: row.name(1),
            table: row.oid(2),
            function: row.oid(3),
            kind: row.int2(4),
            constraint: row.oid(5),
            referenced: row.oid(6),
            is_deferrable: row.bool(7),
            is_deferred: row.bool(8),
            columns: row.int2s(9)?,
            arguments: row.payload(10)?.unwrap_or_default().to_vec(),
            condition: row.text(11)?,
            old_table: (!row.is_null(12)).then(|| row.name(12)),
            new_table: (!row.is_null(13)).then(|| row.name(13)),
        };
        found.insert(row.oid(0), trigger);
        Ok(())
    })?;
    Ok(found)
}

/// The statement that makes a trigger.
pub(crate) fn trigger(catalog: &Arc<Catalog>, of: &Trigger, style: Style) -> Written<String> {
    let dictionary = dictionary(catalog)?;
    let relation = |oid: Oid| match style.is_pretty {
        true => dictionary.relation_name(oid),
        false => dictionary.qualified_relation_name(oid),
    };
    let mut text = format!(
        "CREATE {}TRIGGER {} {}{} ON {} ",
        if of.constraint == Oid(0) { "" } else { "CONSTRAINT " },
        dictionary.quoted(&of.name),
        time(of.kind),
        events(&dictionary, of)?,
        relation(of.table)?
    );
    if of.constraint != Oid(0) {
        if of.referenced != Oid(0) {
            // With its schema only where it has to be, also where all others have one.
            text += &format!("FROM {} ", dictionary.relation_name(of.referenced)?);
        }
        text +=
            if of.is_deferrable { "DEFERRABLE INITIALLY " } else { "NOT DEFERRABLE INITIALLY " };
        text += if of.is_deferred { "DEFERRED " } else { "IMMEDIATE " };
    }
    if of.old_table.is_some() || of.new_table.is_some() {
        text += "REFERENCING ";
        for (word, table) in [("OLD", &of.old_table), ("NEW", &of.new_table)] {
            if let Some(table) = table {
                text += &format!("{word} TABLE AS {} ", dictionary.quoted(table));
            }
        }
    }
    text += if of.kind & ROW != 0 { "FOR EACH ROW " } else { "FOR EACH STATEMENT " };
    if let Some(tree) = &of.condition {
        let parsed = Node::parse(tree.as_bytes())?;
        let missing = || Unwritten::damaged("a trigger without its condition");
        let node = parsed.structure().ok_or_else(missing)?;
        let mut over_rows = Writer::new(catalog, &dictionary, style);
        over_rows.namespaces = vec![Namespace::of_rows(&dictionary, of.table)?];
        over_rows.has_prefixes = true;
        over_rows.expr(node, false)?;
        text += &format!("WHEN ({}) ", over_rows.out);
    }
    let writer = Writer::new(catalog, &dictionary, style);
    let function = writer.function_name(of.function, &[], false)?;
    Ok(format!("{text}EXECUTE FUNCTION {function}({})", arguments(&of.arguments)))
}

/// Bits of `tgtype`.
///
/// Source: `src/include/catalog/pg_trigger.h`, PostgreSQL 18.
const ROW: i16 = 1;
const BEFORE: i16 = 2;
const INSERT: i16 = 4;
const DELETE: i16 = 8;
const UPDATE: i16 = 16;
const TRUNCATE: i16 = 32;
const INSTEAD: i16 = 64;

fn time(kind: i16) -> &'static str {
    match (kind & BEFORE != 0, kind & INSTEAD != 0) {
        (true, _) => "BEFORE",
        (_, true) => "INSTEAD OF",
        _ => "AFTER",
    }
}

fn events(dictionary: &super::Dictionary, of: &Trigger) -> Written<String> {
    let mut found = Vec::new();
    let words =
        [(INSERT, "INSERT"), (DELETE, "DELETE"), (UPDATE, "UPDATE"), (TRUNCATE, "TRUNCATE")];
    for (bit, word) in words {
        if of.kind & bit == 0 {
            continue;
        }
        let name =
            |number: &i16| Ok(dictionary.quoted(&dictionary.column(of.table, *number)?.name));
        let columns = of.columns.iter().map(name).collect::<Written<Vec<String>>>()?;
        found.push(match bit == UPDATE && !columns.is_empty() {
            true => format!("{word} OF {}", columns.join(", ")),
            false => word.to_owned(),
        });
    }
    Ok(format!(" {}", found.join(" OR ")))
}

/// Each argument ends with a zero.
fn arguments(bytes: &[u8]) -> String {
    let parts = bytes.split_inclusive(|byte| *byte == 0);
    let text =
        |part: &[u8]| literal(&String::from_utf8_lossy(part.strip_suffix(&[0]).unwrap_or(part)));
    parts.map(text).collect::<Vec<_>>().join(", ")
}

/// A row of `pg_statistic_ext`.
#[derive(Debug, Clone)]
pub(crate) struct Statistics {
    name: String,
    namespace: Oid,
    table: Oid,
    columns: Vec<i16>,
    kinds: Vec<u8>,
    expressions: Option<String>,
}

/// All objects of extended statistics, by OID.
///
/// # Errors
/// When the catalog cannot be read.
pub(crate) fn statistics(catalog: &Catalog) -> Result<HashMap<Oid, Statistics>> {
    let columns = ["oid", "stxname", "stxnamespace", "stxrelid", "stxkeys", "stxkind", "stxexprs"];
    let mut found = HashMap::new();
    for_each_row(catalog.values(), "pg_statistic_ext", &columns, |row| {
        let of = Statistics {
            name: row.name(1),
            namespace: row.oid(2),
            table: row.oid(3),
            columns: row.int2s(4)?,
            kinds: row.payload(5)?.and_then(|bytes| bytes.get(20..)).unwrap_or_default().to_vec(),
            expressions: row.text(6)?,
        };
        found.insert(row.oid(0), of);
        Ok(())
    })?;
    Ok(found)
}

/// The columns and expressions of extended statistics.
pub(crate) fn statistics_columns(catalog: &Arc<Catalog>, of: &Statistics) -> Written<Vec<String>> {
    let dictionary = dictionary(catalog)?;
    let name = |number: &i16| Ok(dictionary.quoted(&dictionary.column(of.table, *number)?.name));
    let mut found = of.columns.iter().map(name).collect::<Written<Vec<String>>>()?;
    let tree = of.expressions.as_deref().unwrap_or("<>");
    let parsed = Node::parse(tree.as_bytes())?;
    let style = Style { is_indented: false, ..Style::new(true) };
    found.extend(Writer::new(catalog, &dictionary, style).keys(&parsed, of.table)?);
    Ok(found)
}

/// The statement that makes an object of extended statistics.
pub(crate) fn statistics_object(catalog: &Arc<Catalog>, of: &Statistics) -> Written<String> {
    let dictionary = dictionary(catalog)?;
    let columns = statistics_columns(catalog, of)?;
    let all = [(b'd', "ndistinct"), (b'f', "dependencies"), (b'm', "mcv")];
    let kinds: Vec<&str> =
        all.iter().filter(|(kind, _)| of.kinds.contains(kind)).map(|(_, word)| *word).collect();
    let kinds = match kinds.len() < all.len() && columns.len() > 1 {
        true => format!(" ({})", kinds.join(", ")),
        false => String::new(),
    };
    Ok(format!(
        "CREATE STATISTICS {}.{}{kinds} ON {} FROM {}",
        dictionary.schema(of.namespace)?,
        dictionary.quoted(&of.name),
        columns.join(", "),
        dictionary.relation_name(of.table)?
    ))
}
