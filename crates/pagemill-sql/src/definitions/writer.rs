//! The text that grows, and what is known at its end: indentation, and the tables whose columns may be named.
//!
//! Source: `deparse_context`, `appendContextKeyword` in `src/backend/utils/adt/ruleutils.c`, PostgreSQL 15.

use std::sync::Arc;

use pagemill_format::Oid;
use pagemill_format::node_tree::{Const, Node, NodeStruct};

use super::columns::Namespace;
use super::constants::Label;
use super::dictionary::Dictionary;
use super::{Unwritten, dictionary};
use crate::catalog::Catalog;

pub(super) type Written<T = ()> = Result<T, Unwritten>;

/// How many columns a clause is set in.
pub(super) const STEP: i32 = 8;
/// What a further item, or a part of CASE, is set in.
pub(super) const VAR_STEP: i32 = 4;
/// From here on lines are set in less.
const LIMIT: i32 = 40;

/// So many joins may stand in each other; only names that lead in a circle go deeper.
const DEEPEST: u16 = 400;
/// An expression that a query is grouped by is no column of the same kind: half of that, so that one fits.
pub(super) const GROUP_STEP: u16 = DEEPEST / 2 + 1;

/// How a definition is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Style {
    /// Only the parentheses that are needed.
    pub(crate) is_pretty: bool,
    /// Clauses on lines of their own.
    pub(crate) is_indented: bool,
    /// From which column on a list goes on in the next line; negative for never.
    pub(crate) wrap: i32,
    /// It is bound again: constants are written as any session reads them.
    pub(crate) is_read_back: bool,
}

impl Style {
    /// What is to be bound again.
    pub(crate) const READ_BACK: Self = Self { is_read_back: true, ..Self::of(false) };

    const fn of(is_pretty: bool) -> Self {
        Self { is_pretty, is_indented: true, wrap: 0, is_read_back: false }
    }

    /// As `pg_get_expr(tree, relation, pretty)` and its kin print.
    pub(crate) fn new(is_pretty: bool) -> Self {
        Self::of(is_pretty)
    }
}

/// The function whose body is written.
#[derive(Debug, Clone)]
pub(crate) struct FunctionNames {
    pub(super) name: String,
    /// Of all arguments; none where none has a name.
    pub(super) arguments: Vec<String>,
}

/// Writes stored trees.
pub(crate) struct Writer<'t> {
    pub(super) catalog: Arc<Catalog>,
    pub(super) dictionary: Arc<Dictionary>,
    pub(super) style: Style,
    pub(super) out: String,
    pub(super) indentation: i32,
    pub(super) function: Option<FunctionNames>,
    /// From the outermost query inward.
    pub(super) namespaces: Vec<Namespace<'t>>,
    /// Columns are written with their tables.
    pub(super) has_prefixes: bool,
    /// How many names led to another so far.
    depth: u16,
    /// The windows of the query, and its select list.
    pub(super) windows: Option<(Vec<&'t NodeStruct<'t>>, Vec<&'t NodeStruct<'t>>)>,
}

impl<'t> Writer<'t> {
    pub(crate) fn new(catalog: &Arc<Catalog>, dictionary: &Arc<Dictionary>, style: Style) -> Self {
        Self {
            catalog: catalog.clone(),
            dictionary: dictionary.clone(),
            style,
            out: String::new(),
            indentation: 0,
            function: None,
            namespaces: Vec::new(),
            has_prefixes: false,
            depth: 0,
            windows: None,
        }
    }

    /// An expression over the columns of one relation; none of them for [`Oid`] 0.
    ///
    /// # Errors
    /// What has no text here.
    pub(crate) fn expression(
        &mut self,
        tree: &'t NodeStruct<'t>,
        relation: Oid,
    ) -> Result<String, Unwritten> {
        self.over_relation(relation)?;
        self.expr(tree, false)?;
        Ok(std::mem::take(&mut self.out))
    }

    /// The same of a whole stored tree, which may be a list.
    ///
    /// # Errors
    /// What has no text here.
    pub(crate) fn tree(&mut self, tree: &'t Node<'t>, relation: Oid) -> Result<String, Unwritten> {
        self.over_relation(relation)?;
        match tree {
            Node::Struct(node) => self.expr(node, false)?,
            Node::List(members) => {
                let nodes: Option<Vec<_>> = members.iter().map(Node::structure).collect();
                let refused = || Unwritten::damaged("a list of no expressions");
                self.list(&nodes.ok_or_else(refused)?, false)?;
            }
            _ => return Err(Unwritten::damaged("a tree of no expression")),
        }
        Ok(std::mem::take(&mut self.out))
    }

    /// The expressions of a stored list, in parentheses but for those that look like calls.
    ///
    /// # Errors
    /// What has no text here.
    pub(crate) fn keys(
        &mut self,
        tree: &'t Node<'t>,
        relation: Oid,
    ) -> Result<Vec<String>, Unwritten> {
        let mut found = Vec::new();
        for node in tree.as_list()?.iter().filter_map(Node::structure) {
            let is_call = self.looks_like_function(node)?;
            let text = self.expression(node, relation)?;
            found.push(if is_call { text } else { format!("({text})") });
        }
        Ok(found)
    }

    /// A constant without its type, as in the bounds of a partition.
    ///
    /// # Errors
    /// What has no text here.
    pub(crate) fn bare_constant(&mut self, value: &Const) -> Result<String, Unwritten> {
        self.constant(value, Label::Never)?;
        Ok(std::mem::take(&mut self.out))
    }

    /// From here on columns are those of one relation.
    pub(super) fn over_relation(&mut self, relation: Oid) -> Written {
        self.namespaces = match relation {
            Oid(0) => Vec::new(),
            _ => vec![Namespace::of_relation(&self.dictionary, relation)?],
        };
        Ok(())
    }

    /// What a name leads to: in a damaged catalog perhaps back to itself.
    pub(super) fn deeper<T>(
        &mut self,
        step: u16,
        go: impl FnOnce(&mut Self) -> Written<T>,
    ) -> Written<T> {
        if self.depth + step > DEEPEST {
            return Err(Unwritten::damaged("names that lead to each other"));
        }
        self.depth += step;
        let found = go(self);
        self.depth -= step;
        found
    }

    pub(super) fn put(&mut self, text: &str) {
        self.out.push_str(text);
    }

    pub(super) fn identifier(&mut self, name: &str) {
        let quoted = self.dictionary.quoted(name);
        self.out.push_str(&quoted);
    }

    pub(super) fn type_name(&self, of: Oid, modifier: i32) -> Written<String> {
        dictionary::type_name(&self.catalog, of, modifier)
    }

    /// What is not pretty stands in parentheses.
    pub(super) fn open(&mut self) {
        if !self.style.is_pretty {
            self.out.push('(');
        }
    }

    pub(super) fn close(&mut self) {
        if !self.style.is_pretty {
            self.out.push(')');
        }
    }

    pub(super) fn drop_blanks(&mut self) {
        self.out.truncate(self.out.trim_end_matches(' ').len());
    }

    /// A word that begins a line: before it the indentation changes by the first number, behind it by the second; the
    /// third is for this line alone.
    pub(super) fn keyword(&mut self, text: &str, (before, after, extra): (i32, i32, i32)) {
        if !self.style.is_indented {
            return self.put(text);
        }
        self.indentation += before;
        self.drop_blanks();
        self.out.push('\n');
        let amount = match self.indentation < LIMIT {
            true => self.indentation.max(0),
            false => (LIMIT + (self.indentation - LIMIT) / (STEP / 2)) % LIMIT,
        };
        let blanks = usize::try_from(amount + extra).unwrap_or(0);
        self.out.extend(std::iter::repeat_n(' ', blanks));
        self.put(text);
        self.indentation = (self.indentation + after).max(0);
    }

    /// A clause of a query.
    pub(super) fn clause(&mut self, text: &str, extra: i32) {
        self.keyword(text, (-STEP, STEP, extra));
    }

    /// What `write` writes, apart from the rest.
    pub(super) fn apart(&mut self, write: impl FnOnce(&mut Self) -> Written) -> Written<String> {
        let before = std::mem::take(&mut self.out);
        let written = write(self);
        let text = std::mem::replace(&mut self.out, before);
        written.map(|()| text)
    }

    /// Bytes of the line that is written.
    pub(super) fn line_length(&self) -> usize {
        self.out.rsplit('\n').next().map_or(0, str::len)
    }

    /// True where something of this length goes to the next line.
    pub(super) fn overflows(&self, length: usize) -> bool {
        usize::try_from(self.style.wrap).is_ok_and(|wrap| self.line_length() + length > wrap)
    }

    pub(super) fn wraps(&self) -> bool {
        self.style.is_indented && self.style.wrap >= 0
    }
}
