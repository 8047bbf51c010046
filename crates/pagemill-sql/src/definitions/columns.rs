//! The names by which the tables of a query and their columns are called: unique, and such that a query written with them
//! means the same as the stored one, whatever was renamed since.
//!
//! ```text
//! a JOIN b USING (id): the name of a merged column goes down to both sides first,
//! then each table names what is left, then each join takes the names of its sides.
//! ```
//!
//! Source: `set_rtable_names`, `set_using_names`, `set_relation_column_names`, `set_join_column_names` in
//! `src/backend/utils/adt/ruleutils.c`, PostgreSQL 14 to 18.

use std::collections::{HashMap, HashSet};

use pagemill_format::Oid;
use pagemill_format::node_tree::NodeStruct;

use super::Unwritten;
use super::dictionary::Dictionary;
use super::tree::{numbers, optional, text, texts};
use super::writer::Written;

/// `RTEKind`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Relation,
    Subquery,
    Join,
    Function,
    TableFunction,
    Values,
    Cte,
    /// The expressions that a query is grouped by, from 18 on.
    Group,
    Other,
}

/// The columns of one item.
#[derive(Debug, Clone, Default)]
pub(super) struct Columns {
    /// As they were when the query was stored; `None` for dropped ones.
    pub(super) names: Vec<Option<String>>,
    /// As they are now, each with whether it was added since.
    pub(super) present: Vec<(String, bool)>,
    pub(super) prints_aliases: bool,
    /// The merged columns of a join, and of the joins around it.
    pub(super) using: Vec<String>,
    parent_using: Vec<String>,
    left: usize,
    right: usize,
    left_numbers: Vec<i32>,
    right_numbers: Vec<i32>,
}

impl Columns {
    fn grow(&mut self, count: usize) {
        if self.names.len() < count {
            self.names.resize(count, None);
        }
    }

    fn set(&mut self, number: i32, name: &str) {
        if let Some(at) = usize::try_from(number).ok().and_then(|number| number.checked_sub(1)) {
            self.grow(at + 1);
            self.names[at] = Some(name.to_owned());
        }
    }
}

/// An item that columns may come from.
#[derive(Debug, Clone)]
pub(super) struct Item<'t> {
    /// None for the relation that an expression is over.
    pub(super) node: Option<&'t NodeStruct<'t>>,
    pub(super) kind: Kind,
    pub(super) name: Option<String>,
    pub(super) columns: Columns,
}

impl<'t> Item<'t> {
    pub(super) fn node(&self) -> Written<&'t NodeStruct<'t>> {
        self.node.ok_or_else(|| Unwritten::damaged("a relation without a query"))
    }

    pub(super) fn has_alias(&self) -> bool {
        self.node.is_some_and(|node| optional(node, "alias").is_some())
    }

    fn alias_columns(&self) -> Written<Vec<String>> {
        let alias = self.node.and_then(|node| optional(node, "alias"));
        alias.map_or_else(|| Ok(Vec::new()), |alias| texts(alias, "colnames"))
    }
}

/// The items of one query.
#[derive(Debug, Clone, Default)]
pub(super) struct Namespace<'t> {
    pub(super) items: Vec<Item<'t>>,
    /// Names of its WITH queries.
    pub(super) with: Vec<String>,
    pub(super) with_queries: Vec<&'t NodeStruct<'t>>,
    using: Vec<String>,
    unique_using: bool,
    /// What RETURNING calls rows before and after a change, from 18 on.
    pub(super) returning: [Option<String>; 2],
}

impl<'t> Namespace<'t> {
    /// Of the one relation that an expression is over.
    pub(super) fn of_relation(dictionary: &Dictionary, relation: Oid) -> Written<Self> {
        let name = dictionary.relation(relation)?.name.clone();
        let columns = dictionary.columns(relation).iter();
        let names = columns.map(|column| column.as_ref().map(|column| column.name.clone()));
        let columns = Columns { names: names.collect(), ..Columns::default() };
        let item = Item { node: None, kind: Kind::Relation, name: Some(name), columns };
        Ok(Self { items: vec![item], ..Self::default() })
    }

    /// Of the two rows that a trigger's condition is over: `old` and `new`.
    pub(super) fn of_rows(dictionary: &Dictionary, relation: Oid) -> Written<Self> {
        let mut made = Self::of_relation(dictionary, relation)?;
        let of = made.items.remove(0);
        for name in ["old", "new"] {
            made.items.push(Item { name: Some(name.to_owned()), ..of.clone() });
        }
        Ok(made)
    }

    /// Of a query within others.
    pub(super) fn of_query(
        dictionary: &Dictionary,
        query: &'t NodeStruct<'t>,
        around: &[Self],
    ) -> Written<Self> {
        let mut items = Vec::new();
        for node in query.nodes("rtable")? {
            let kind = kind(node)?;
            items.push(Item { node: Some(node), kind, name: None, columns: Columns::default() });
        }
        let ctes = query.nodes("cteList")?;
        let name = |cte: &&NodeStruct<'_>| text(cte, "ctename").map(Option::unwrap_or_default);
        let with = ctes.iter().map(name).collect::<Written<Vec<String>>>()?;
        let alias = |label: &str| match query.values(label) {
            Some(_) => text(query, label),
            None => Ok(None),
        };
        let returning = [alias("returningOldAlias")?, alias("returningNewAlias")?];
        let mut made = Self { items, with, with_queries: ctes, returning, ..Self::default() };
        made.name_items(dictionary, around)?;
        if let Some(tree) = optional(query, "jointree") {
            made.unique_using = made.has_dangerous_using(tree)?;
            made.name_merged(tree, &[])?;
        }
        for at in 0..made.items.len() {
            match made.items[at].kind {
                Kind::Join => made.name_of_join(at)?,
                _ => made.name_of_item(dictionary, at)?,
            }
        }
        Ok(made)
    }

    /// An item by its number from 1.
    pub(super) fn item(&self, number: usize) -> Written<&Item<'t>> {
        let found = number.checked_sub(1).and_then(|at| self.items.get(at));
        found.ok_or_else(|| Unwritten::damaged(format!("the missing table {number} of a query")))
    }

    fn name_items(&mut self, dictionary: &Dictionary, around: &[Self]) -> Written {
        let mut taken: HashMap<String, u32> = HashMap::new();
        for item in around.iter().flat_map(|outer| &outer.items) {
            taken.extend(item.name.clone().map(|name| (name, 0)));
        }
        for item in &mut self.items {
            let node = item.node()?;
            let own = match (optional(node, "alias"), item.kind) {
                (Some(alias), _) => text(alias, "aliasname")?,
                (None, Kind::Relation) => {
                    Some(dictionary.relation(node.oid("relid")?)?.name.clone())
                }
                (None, Kind::Join) => None,
                (None, _) => text(node.node("eref")?, "aliasname")?,
            };
            item.name = own.map(|own| unique_name(&mut taken, own));
        }
        Ok(())
    }

    /// A merged column that is no plain column of either side needs a name of its own.
    fn has_dangerous_using(&self, tree: &'t NodeStruct<'t>) -> Written<bool> {
        if tree.name == b"FROMEXPR" {
            for part in tree.nodes("fromlist")? {
                if self.has_dangerous_using(part)? {
                    return Ok(true);
                }
            }
            return Ok(false);
        }
        if tree.name != b"JOINEXPR" {
            return Ok(false);
        }
        if optional(tree, "alias").is_none() && !tree.value("usingClause")?.as_list()?.is_empty() {
            let join = self.item(tree.number("rtindex")?)?.node()?;
            let merged: usize = join.number("joinmergedcols")?;
            let aliased = join.nodes("joinaliasvars")?;
            if aliased.iter().take(merged).any(|var| var.name != b"VAR") {
                return Ok(true);
            }
        }
        Ok(self.has_dangerous_using(tree.node("larg")?)?
            || self.has_dangerous_using(tree.node("rarg")?)?)
    }

    fn name_merged(&mut self, tree: &'t NodeStruct<'t>, around: &[String]) -> Written {
        match tree.name {
            b"FROMEXPR" => {
                for part in tree.nodes("fromlist")? {
                    self.name_merged(part, around)?;
                }
                Ok(())
            }
            b"JOINEXPR" => self.name_merged_of_join(tree, around),
            _ => Ok(()),
        }
    }

    fn name_merged_of_join(&mut self, tree: &'t NodeStruct<'t>, around: &[String]) -> Written {
        let number: usize = tree.number("rtindex")?;
        let join = self.item(number)?.clone();
        let mut columns = join.columns.clone();
        sides(tree, join.node()?, &mut columns)?;
        let at = number - 1;
        if !join.has_alias() {
            for (place, name) in columns.names.clone().iter().enumerate() {
                if let Some(name) = name {
                    self.pass_down(&columns, place, name);
                }
            }
        }
        let using = texts(tree, "usingClause")?;
        let mut around = around.to_vec();
        if !using.is_empty() {
            columns.grow(using.len());
            let aliases = join.alias_columns()?;
            for (place, clause) in using.iter().enumerate() {
                let name = match columns.names[place].clone() {
                    Some(known) => known,
                    None => {
                        let wanted = aliases.get(place).unwrap_or(clause);
                        let name = self.unique_column(wanted, &columns);
                        if self.unique_using {
                            self.using.push(name.clone());
                        }
                        columns.names[place] = Some(name.clone());
                        name
                    }
                };
                columns.using.push(name.clone());
                around.push(name.clone());
                self.pass_down(&columns, place, &name);
            }
        }
        for side in [columns.left, columns.right] {
            self.item(side)?;
            self.items[side - 1].columns.parent_using.clone_from(&around);
        }
        self.items[at].columns = columns;
        self.name_merged(tree.node("larg")?, &around)?;
        self.name_merged(tree.node("rarg")?, &around)
    }

    /// A name of a join's column goes to the columns that it is made of.
    fn pass_down(&mut self, of: &Columns, place: usize, name: &str) {
        for (side, numbers) in [(of.left, &of.left_numbers), (of.right, &of.right_numbers)] {
            let number = numbers.get(place).copied().unwrap_or(0);
            if let Some(item) = side.checked_sub(1).and_then(|at| self.items.get_mut(at)) {
                item.columns.set(number, name);
            }
        }
    }

    fn unique_column(&self, wanted: &str, among: &Columns) -> String {
        let taken: HashSet<&str> = (among.names.iter().flatten().map(String::as_str))
            .chain(among.present.iter().map(|(name, _)| name.as_str()))
            .chain(self.using.iter().map(String::as_str))
            .chain(among.parent_using.iter().map(String::as_str))
            .collect();
        if !taken.contains(wanted) {
            return wanted.to_owned();
        }
        let numbered = |number: u32| with_number(wanted, number);
        let found = (1..).map(numbered).find(|name| !taken.contains(name.as_str()));
        found.expect("there are more numbers than names") // infallible: names are finite
    }

    fn name_of_item(&mut self, dictionary: &Dictionary, at: usize) -> Written {
        let item = self.items[at].clone();
        let node = item.node()?;
        let aliases = item.alias_columns()?;
        let stored = texts(node.node("eref")?, "colnames")?;
        let real: Vec<Option<String>> = match item.kind {
            Kind::Relation => {
                let columns = dictionary.columns(node.oid("relid")?).iter();
                columns.map(|column| column.as_ref().map(|column| column.name.clone())).collect()
            }
            _ => stored.iter().map(|n| (!n.is_empty()).then(|| n.clone())).collect(),
        };
        let mut columns = item.columns.clone();
        columns.grow(real.len());
        let mut is_changed = false;
        for (place, real) in real.iter().enumerate() {
            let Some(real) = real else { continue };
            let name = match columns.names[place].clone() {
                Some(known) => known,
                None => {
                    let name = self.unique_column(aliases.get(place).unwrap_or(real), &columns);
                    columns.names[place] = Some(name.clone());
                    name
                }
            };
            is_changed |= name != *real;
            columns.present.push((name, place >= stored.len()));
        }
        columns.prints_aliases = match item.kind {
            Kind::Relation => is_changed,
            Kind::Function => true,
            Kind::TableFunction => false,
            _ => !aliases.is_empty() || is_changed,
        };
        self.items[at].columns = columns;
        Ok(())
    }

    fn name_of_join(&mut self, at: usize) -> Written {
        let item = self.items[at].clone();
        let mut columns = item.columns.clone();
        let stored = texts(item.node()?.node("eref")?, "colnames")?;
        let aliases = item.alias_columns()?;
        let left = self.item(columns.left)?.columns.clone();
        let right = self.item(columns.right)?.columns.clone();
        columns.grow(stored.len());
        let mut is_changed = false;
        let named = |side: &Columns, number: i32| {
            let at = usize::try_from(number).ok()?.checked_sub(1)?;
            side.names.get(at).cloned().flatten()
        };
        for (place, stored) in stored.iter().enumerate().skip(columns.using.len()) {
            let number = |numbers: &[i32]| numbers.get(place).copied().unwrap_or(0);
            let (of_left, of_right) =
                (number(&columns.left_numbers), number(&columns.right_numbers));
            let real = match (of_left > 0, of_right > 0) {
                (true, _) => named(&left, of_left),
                (_, true) => named(&right, of_right),
                _ => Some(stored.clone()),
            };
            let Some(real) = real else {
                columns.names[place] = None;
                continue;
            };
            if !item.has_alias() {
                columns.names[place] = Some(real);
                continue;
            }
            if columns.names[place].is_none() {
                let name = self.unique_column(aliases.get(place).unwrap_or(&real), &columns);
                columns.names[place] = Some(name);
            }
            is_changed |= columns.names[place].as_ref() != Some(&real);
        }
        is_changed |= self.present_of_join(&mut columns, (&left, &right), item.has_alias());
        columns.prints_aliases = item.has_alias() && is_changed;
        self.items[at].columns = columns;
        Ok(())
    }

    /// The merged columns first, then those of the left side, then those of the right.
    fn present_of_join(
        &self,
        columns: &mut Columns,
        (left, right): (&Columns, &Columns),
        has_alias: bool,
    ) -> bool {
        let is_merged = |place: usize| {
            let of = |numbers: &[i32]| numbers.get(place).is_some_and(|number| *number != 0);
            of(&columns.left_numbers) && of(&columns.right_numbers)
        };
        let merged = (0..columns.names.len()).take_while(|place| is_merged(*place)).count();
        let merged_of = |numbers: &[i32]| numbers.iter().take(merged).copied().collect::<Vec<_>>();
        let merged_numbers = [merged_of(&columns.left_numbers), merged_of(&columns.right_numbers)];
        for place in 0..merged {
            columns.present.push((columns.names[place].clone().unwrap_or_default(), false));
        }
        let mut rest: std::collections::VecDeque<String> =
            columns.names.iter().skip(merged).flatten().cloned().collect();
        let mut is_changed = false;
        for (side, merged) in [left, right].into_iter().zip(merged_numbers) {
            let mut old = (1..).zip(&side.names).filter(|(_, name)| name.is_some()).map(|(n, _)| n);
            for (child, is_new) in &side.present {
                if *is_new {
                    let name = match has_alias {
                        true => self.unique_column(child, columns),
                        false => child.clone(),
                    };
                    is_changed |= name != *child;
                    columns.present.push((name, true));
                } else if !old.next().is_some_and(|number: i32| merged.contains(&number)) {
                    columns.present.push((rest.pop_front().unwrap_or_default(), false));
                }
            }
        }
        is_changed
    }
}

fn kind(node: &NodeStruct<'_>) -> Written<Kind> {
    Ok(match node.number::<u8>("rtekind")? {
        0 => Kind::Relation,
        1 => Kind::Subquery,
        2 => Kind::Join,
        3 => Kind::Function,
        4 => Kind::TableFunction,
        5 => Kind::Values,
        6 => Kind::Cte,
        9 => Kind::Group,
        _ => Kind::Other,
    })
}

/// Which columns of its sides the columns of a join are.
fn sides(tree: &NodeStruct<'_>, join: &NodeStruct<'_>, columns: &mut Columns) -> Written {
    let index = |side: &str| -> Written<usize> { Ok(tree.node(side)?.number("rtindex")?) };
    (columns.left, columns.right) = (index("larg")?, index("rarg")?);
    let count = join.value("joinaliasvars")?.as_list()?.len();
    columns.left_numbers = vec![0; count];
    columns.right_numbers = vec![0; count];
    let merged: usize = join.number("joinmergedcols")?;
    let mut next = 0;
    let put = |numbers: &mut Vec<i32>, place: usize, number: i32| {
        let found = numbers.get_mut(place).ok_or_else(|| Unwritten::damaged("a damaged join"))?;
        *found = number;
        Written::Ok(())
    };
    for number in numbers(join, "joinleftcols")? {
        put(&mut columns.left_numbers, next, number)?;
        next += 1;
    }
    for (at, number) in numbers(join, "joinrightcols")?.into_iter().enumerate() {
        match at < merged {
            true => put(&mut columns.right_numbers, at, number)?,
            false => {
                put(&mut columns.right_numbers, next, number)?;
                next += 1;
            }
        }
    }
    Ok(())
}

fn unique_name(taken: &mut HashMap<String, u32>, wanted: String) -> String {
    if !taken.contains_key(&wanted) {
        taken.insert(wanted.clone(), 0);
        return wanted;
    }
    loop {
        let counter = taken.get_mut(&wanted).expect("it is there"); // infallible: looked up above
        *counter += 1;
        let name = with_number(&wanted, *counter);
        if !taken.contains_key(&name) {
            taken.insert(name.clone(), 0);
            return name;
        }
    }
}

/// `name_1`, cut to the length that names may have.
fn with_number(name: &str, number: u32) -> String {
    const LONGEST: usize = 63;
    let suffix = format!("_{number}");
    let mut length = name.len().min(LONGEST - suffix.len());
    while !name.is_char_boundary(length) {
        length -= 1;
    }
    format!("{}{suffix}", &name[..length])
}
