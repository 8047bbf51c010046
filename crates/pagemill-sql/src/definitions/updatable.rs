//! Whether rows can be inserted into relations, updated and deleted: of views by their queries, rules and triggers.
//!
//! Invariant: a foreign table of a wrapper that is not PostgreSQL's own is refused by name, for its library says what can be done.
//!
//! Source: `relation_is_updatable`, `view_query_is_auto_updatable`, `view_col_is_auto_updatable` in
//! `src/backend/rewrite/rewriteHandler.c`, `pg_column_is_updatable` in `src/backend/utils/adt/misc.c`, PostgreSQL 14 to 18;
//! `CmdType` in `src/include/nodes/nodes.h`, `TRIGGER_TYPE_…` in `src/include/catalog/pg_trigger.h`.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use pagemill_cluster::RelationKind;
use pagemill_format::Oid;
use pagemill_format::node_tree::{Node, NodeStruct};

use super::Unwritten;
use super::foreign_tables::{Wrapper, foreign_tables};
use super::relations::{Rule, rules};
use super::tree::{flag, is_var, optional};
use super::writer::Written;
use crate::catalog::Catalog;
use crate::error::Result;
use crate::system_rows::for_each_row;

const UPDATE: u32 = 1 << 2;
const INSERT: u32 = 1 << 3;
const DELETE: u32 = 1 << 4;
const ALL: u32 = UPDATE | INSERT | DELETE;

/// Of triggers: for each row, instead of.
const INSTEAD_OF_ROW: i16 = 1 | 1 << 6;
const TRIGGERS: [(i16, u32); 3] = [(1 << 2, INSERT), (1 << 3, DELETE), (1 << 4, UPDATE)];

/// A plain table, and a partitioned one, of an item of FROM.
const TABLES: [u8; 2] = [b'r', b'p'];

/// What is known of all relations.
pub(crate) struct Updatability {
    catalog: Arc<Catalog>,
    rules: HashMap<Oid, Vec<Rule>>,
    /// What triggers do instead, by the view.
    triggered: HashMap<Oid, u32>,
    foreign: HashMap<Oid, Wrapper>,
}

/// The query of a view that can be updated by itself: the relation below, and the column there that each of its columns is.
struct Simple {
    base: Oid,
    kind: u8,
    columns: Vec<Option<i16>>,
}

impl Updatability {
    /// # Errors
    /// When a catalog cannot be read.
    pub(crate) fn new(catalog: &Arc<Catalog>) -> Result<Self> {
        let mut by_relation: HashMap<Oid, Vec<Rule>> = HashMap::new();
        for rule in rules(catalog)?.into_values() {
            by_relation.entry(rule.relation()).or_default().push(rule);
        }
        let mut triggered = HashMap::new();
        for_each_row(catalog.values(), "pg_trigger", &["tgrelid", "tgtype"], |row| {
            let kind = row.int2(1);
            if kind & INSTEAD_OF_ROW == INSTEAD_OF_ROW {
                let events = TRIGGERS.iter().filter(|(bit, _)| kind & bit != 0);
                *triggered.entry(row.oid(0)).or_default() |=
                    events.fold(0, |all, (_, event)| all | event);
            }
            Ok(())
        })?;
        let foreign = foreign_tables(catalog)?;
        Ok(Self { catalog: catalog.clone(), rules: by_relation, triggered, foreign })
    }

    /// The commands that a relation takes, as bits; with triggers or without.
    ///
    /// # Errors
    /// For foreign tables, and for trees that are none.
    pub(crate) fn commands(&self, relation: Oid, with_triggers: bool) -> Written<u32> {
        self.of(relation, with_triggers, None, &mut Vec::new())
    }

    /// Whether a column can be updated, and its rows be deleted.
    ///
    /// # Errors
    /// Likewise.
    pub(crate) fn column(&self, relation: Oid, number: i16, with_triggers: bool) -> Written<bool> {
        const NEEDED: u32 = UPDATE | DELETE;
        if number <= 0 {
            return Ok(false);
        }
        let only = BTreeSet::from([number]);
        let found = self.of(relation, with_triggers, Some(&only), &mut Vec::new())?;
        Ok(found & NEEDED == NEEDED)
    }

    fn of(
        &self,
        relation: Oid,
        with_triggers: bool,
        only: Option<&BTreeSet<i16>>,
        around: &mut Vec<Oid>,
    ) -> Written<u32> {
        let Some(class) = self.catalog.database().class(relation) else { return Ok(0) };
        if matches!(class.kind, RelationKind::Table | RelationKind::PartitionedTable) {
            return Ok(ALL);
        }
        if around.contains(&relation) {
            return Ok(0);
        }
        let mut events = self.by_rules(relation);
        if with_triggers {
            events |= self.triggered.get(&relation).copied().unwrap_or(0);
        }
        if events == ALL {
            return Ok(ALL);
        }
        if class.kind == RelationKind::ForeignTable {
            return match self.foreign.get(&relation) {
                Some(Wrapper::Known(true)) => Ok(ALL),
                Some(Wrapper::Known(false)) => Ok(events),
                Some(Wrapper::WithoutHandler(wrapper)) => {
                    let what =
                        format!("the foreign-data wrapper \"{wrapper}\", which has no handler");
                    Err(Unwritten::unknown(what))
                }
                None => {
                    let name = String::from_utf8_lossy(&class.name);
                    let what = format!("whether the foreign table \"{name}\" can be changed");
                    Err(Unwritten::unknown(what))
                }
            };
        }
        let simple = match class.kind {
            RelationKind::View => self.simple(relation)?,
            _ => None,
        };
        let Some(simple) = simple else { return Ok(events) };
        around.push(relation);
        let own = self.by_query(&simple, with_triggers, only, around);
        around.pop();
        Ok(events | own?)
    }

    /// What rules without a condition do instead.
    fn by_rules(&self, relation: Oid) -> u32 {
        let of = self.rules.get(&relation).map_or(&[][..], Vec::as_slice);
        let instead = of.iter().filter(|rule| rule.is_always_instead());
        instead.fold(0, |all, rule| all | 1 << rule.event_number()) & ALL
    }

    fn by_query(
        &self,
        simple: &Simple,
        with_triggers: bool,
        only: Option<&BTreeSet<i16>>,
        around: &mut Vec<Oid>,
    ) -> Written<u32> {
        let columns = (1..).zip(&simple.columns).filter_map(|(own, below)| Some((own, (*below)?)));
        let wanted = columns.filter(|(own, _)| only.is_none_or(|only| only.contains(own)));
        let below: BTreeSet<i16> = wanted.map(|(_, below)| below).collect();
        // Without such a column, rows can still be deleted.
        let events = if below.is_empty() { DELETE } else { ALL };
        match TABLES.contains(&simple.kind) {
            true => Ok(events),
            false => Ok(events & self.of(simple.base, with_triggers, Some(&below), around)?),
        }
    }

    /// The view's query, if it is of one relation and has no clause in the way.
    fn simple(&self, view: Oid) -> Written<Option<Simple>> {
        let rules = self.rules.get(&view).map_or(&[][..], Vec::as_slice);
        let Some(rule) = rules.iter().find(|rule| rule.is_of_view()) else { return Ok(None) };
        let parsed = Node::parse(rule.action().as_bytes())?;
        let query = parsed.as_list()?.first().and_then(Node::structure);
        let query = query.ok_or_else(|| Unwritten::damaged("a view without a query"))?;
        if has_clause_in_the_way(query)? {
            return Ok(None);
        }
        let from = query.node("jointree")?.nodes("fromlist")?;
        let [item] = from[..] else { return Ok(None) };
        if item.name != b"RANGETBLREF" {
            return Ok(None);
        }
        let number: usize = item.number("rtindex")?;
        let items = query.nodes("rtable")?;
        let Some(table) = number.checked_sub(1).and_then(|at| items.get(at)) else {
            return Err(Unwritten::damaged("a view over no relation"));
        };
        const RELATION: u8 = 0;
        if table.number::<u8>("rtekind")? != RELATION || optional(table, "tablesample").is_some() {
            return Ok(None);
        }
        let kind = table.character("relkind")?.unwrap_or_default();
        if !matches!(kind, b'r' | b'f' | b'v' | b'p') {
            return Ok(None);
        }
        let targets = query.nodes("targetList")?;
        let columns = targets.iter().filter(|target| !flag(target, "resjunk"));
        let columns = columns.map(|target| column_below(target, number));
        let columns = columns.collect::<Written<Vec<Option<i16>>>>()?;
        Ok(Some(Simple { base: table.oid("relid")?, kind, columns }))
    }
}

fn has_clause_in_the_way(query: &NodeStruct<'_>) -> Written<bool> {
    const LISTS: [&str; 4] = ["distinctClause", "groupClause", "groupingSets", "cteList"];
    const NODES: [&str; 4] = ["havingQual", "setOperations", "limitOffset", "limitCount"];
    const FLAGS: [&str; 3] = ["hasAggs", "hasWindowFuncs", "hasTargetSRFs"];
    for list in LISTS {
        if !query.nodes(list)?.is_empty() {
            return Ok(true);
        }
    }
    Ok(NODES.iter().any(|label| optional(query, label).is_some())
        || FLAGS.iter().any(|label| flag(query, label)))
}

/// The column of the relation that a column of the view is; `None` for an expression, a system column or a whole row.
fn column_below(target: &NodeStruct<'_>, table: usize) -> Written<Option<i16>> {
    let expr = target.node("expr")?;
    if !is_var(expr) || expr.number::<usize>("varno")? != table {
        return Ok(None);
    }
    let is_own = expr.number::<usize>("varlevelsup")? == 0;
    let column: i16 = expr.number("varattno")?;
    Ok(Some(column).filter(|column| is_own && *column > 0))
}
