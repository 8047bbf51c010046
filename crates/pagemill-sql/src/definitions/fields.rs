//! The names of the fields of rows whose type does not tell them.
//!
//! Source: `get_name_for_var_field` in `src/backend/utils/adt/ruleutils.c`, PostgreSQL 14 to 18.

use pagemill_format::node_tree::NodeStruct;
use pagemill_types::builtin::oid;

use super::Unwritten;
use super::columns::{Item, Kind, Namespace};
use super::tree::{expr_type, flag, is_var, text, texts};
use super::writer::{Writer, Written};

impl<'t> Writer<'t> {
    /// The name of a field of what an expression gives, by its number from 1.
    pub(super) fn field_name(&mut self, of: &'t NodeStruct<'t>, number: i16) -> Written<String> {
        let unknown = || Unwritten::unknown("a field of a record");
        let place = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
        let place = place.ok_or_else(unknown)?;
        if matches!(of.name, b"ROW" | b"ROWEXPR")
            && let Some(name) = texts(of, "colnames")?.get(place)
        {
            return Ok(name.clone());
        }
        let type_oid = self.catalog.base_type(expr_type(&self.dictionary, of)?, -1).0;
        if let Some(relation) = self.dictionary.relation_of_type(type_oid) {
            return Ok(self.dictionary.column(relation, number)?.name);
        }
        match of.name {
            b"VAR" if type_oid == oid::RECORD => {
                self.deeper(1, |writer| writer.field_of_column(of, number))
            }
            b"FUNCEXPR" => {
                let columns = self.dictionary.record_columns(of.oid("funcid")?);
                columns.and_then(|names| names.get(place).cloned()).ok_or_else(unknown)
            }
            _ => Err(unknown()),
        }
    }

    /// Of a column of records: what the query below made it of.
    fn field_of_column(&mut self, of: &'t NodeStruct<'t>, number: i16) -> Written<String> {
        let unknown = || Unwritten::unknown("a field of a record");
        let up = usize::from(of.number::<u16>("varlevelsup")?);
        let at = self.namespaces.len().checked_sub(up + 1).ok_or_else(unknown)?;
        let (item, column): (usize, usize) = match of.number("varnosyn")? {
            0 => (of.number("varno")?, of.number("varattno")?),
            item => (item, of.number("varattnosyn")?),
        };
        let item = self.namespaces[at].item(item)?.clone();
        let place = number.checked_sub(1).and_then(|place| usize::try_from(place).ok());
        let place = place.ok_or_else(unknown)?;
        let Some(column) = column.checked_sub(1) else {
            let names = texts(item.node()?.node("eref")?, "colnames")?;
            return names.get(place).cloned().ok_or_else(unknown);
        };
        match item.kind {
            Kind::Join | Kind::Group => {
                let label = if item.kind == Kind::Join { "joinaliasvars" } else { "groupexprs" };
                let aliased = item.node()?.nodes(label)?;
                let expr = *aliased.get(column).ok_or_else(unknown)?;
                self.within(at, None, |writer| writer.field_name(expr, number))
            }
            Kind::Subquery => {
                let query = item.node()?.node("subquery")?;
                self.field_of_target(at, query, column, number)
            }
            Kind::Cte => {
                let (at, query) = self.with_query_of(at, &item)?;
                self.field_of_target(at, query, column, number)
            }
            _ => Err(unknown()),
        }
    }

    /// The query of WITH that an item is, and the level that it is known from.
    fn with_query_of(&self, at: usize, item: &Item<'t>) -> Written<(usize, &'t NodeStruct<'t>)> {
        let unknown = || Unwritten::unknown("a field of a record");
        let node = item.node()?;
        let level = at.checked_sub(node.number("ctelevelsup")?).ok_or_else(unknown)?;
        let name = text(node, "ctename")?;
        for query in &self.namespaces[level].with_queries {
            if text(query, "ctename")? == name {
                return Ok((level, query.node("ctequery")?));
            }
        }
        Err(unknown())
    }

    fn field_of_target(
        &mut self,
        at: usize,
        query: &'t NodeStruct<'t>,
        column: usize,
        number: i16,
    ) -> Written<String> {
        let targets = query.nodes("targetList")?;
        let target = targets.get(column).filter(|target| !flag(target, "resjunk"));
        let missing = || Unwritten::damaged("a column of no query");
        let expr = target.ok_or_else(missing)?.node("expr")?;
        let inner = is_var(expr).then_some(query);
        self.within(at, inner, |writer| writer.field_name(expr, number))
    }

    /// As from a query at a level, or from one within it.
    fn within<T>(
        &mut self,
        at: usize,
        query: Option<&'t NodeStruct<'t>>,
        find: impl FnOnce(&mut Self) -> Written<T>,
    ) -> Written<T> {
        let inner = self.namespaces.split_off(at + 1);
        let own = match query {
            Some(query) => Namespace::of_query(&self.dictionary, query, &self.namespaces).map(Some),
            None => Ok(None),
        };
        let found = own.and_then(|own| {
            let is_pushed = own.is_some();
            self.namespaces.extend(own);
            let found = find(self);
            if is_pushed {
                self.namespaces.pop();
            }
            found
        });
        self.namespaces.extend(inner);
        found
    }
}
