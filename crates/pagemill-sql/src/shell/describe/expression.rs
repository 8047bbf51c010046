//! Stored expressions over the columns of one relation, as psql asks the server for them.
//!
//! Invariant: what cannot be written is `None`, for which the caller shows [`UNWRITTEN`].

use pagemill_format::Oid;
use pagemill_format::node_tree::{Const, Node};

use super::names::Names;
use crate::definitions::{self, Style};

/// What stands where the text is not known.
pub(super) const UNWRITTEN: &str = "(expression)";

/// Writes expressions over the columns of one relation.
pub(super) struct Writer<'n, 'c> {
    names: &'n Names<'c>,
    relation: Oid,
}

impl<'n, 'c> Writer<'n, 'c> {
    pub(super) fn new(names: &'n Names<'c>, relation: Oid) -> Self {
        Self { names, relation }
    }

    /// The text of a stored tree; `None` where it is not known here.
    pub(super) fn text(&self, tree: &str, style: Style) -> Option<String> {
        let parsed = Node::parse(tree.as_bytes()).ok()?;
        let dictionary = self.names.catalog.dictionary().ok()?;
        let mut writer = definitions::Writer::new(self.names.catalog, &dictionary, style);
        writer.tree(&parsed, self.relation).ok()
    }

    /// A constant of a partition's bound.
    pub(super) fn bound(&self, value: &Const) -> Option<String> {
        let dictionary = self.names.catalog.dictionary().ok()?;
        let style = Style::new(false);
        definitions::Writer::new(self.names.catalog, &dictionary, style).bare_constant(value).ok()
    }
}
