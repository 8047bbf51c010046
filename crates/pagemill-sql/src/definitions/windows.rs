//! Windows of a query: what rows a function sees, and in which order.
//!
//! Source: `get_rule_windowclause`, `get_rule_windowspec` in `src/backend/utils/adt/ruleutils.c`, PostgreSQL 14 to 18.

use pagemill_format::node_tree::NodeStruct;

use super::tree::{flag, text};
use super::writer::{Writer, Written};

impl<'t> Writer<'t> {
    pub(super) fn named_windows(
        &mut self,
        query: &'t NodeStruct<'t>,
        targets: &[&'t NodeStruct<'t>],
    ) -> Written {
        let mut count = 0;
        for window in query.nodes("windowClause")? {
            let Some(name) = text(window, "name")? else { continue };
            match count {
                0 => self.clause(" WINDOW ", 1),
                _ => self.put(", "),
            }
            count += 1;
            self.identifier(&name);
            self.put(" AS ");
            self.window(window, targets)?;
        }
        Ok(())
    }

    pub(super) fn window(
        &mut self,
        window: &'t NodeStruct<'t>,
        targets: &[&'t NodeStruct<'t>],
    ) -> Written {
        self.put("(");
        let start = self.out.len();
        let refers = text(window, "refname")?;
        if let Some(name) = &refers {
            self.identifier(name);
        }
        let partition = window.nodes("partitionClause")?;
        if !partition.is_empty() && refers.is_none() {
            self.put("PARTITION BY ");
            self.sort_items(&partition, targets)?;
        }
        let order = window.nodes("orderClause")?;
        if !order.is_empty() && !flag(window, "copiedOrder") {
            self.put(if self.out.len() > start { " ORDER BY " } else { "ORDER BY " });
            self.order_by(&order, targets, false)?;
        }
        let options: u32 = window.number("frameOptions")?;
        if options & frame::NON_DEFAULT != 0 {
            if self.out.len() > start {
                self.put(" ");
            }
            self.frame(window, options)?;
        }
        self.put(")");
        Ok(())
    }

    /// One end of a frame: words, or an offset.
    fn edge(
        &mut self,
        words: Option<&str>,
        (window, offset): (&'t NodeStruct<'t>, &str),
        is_before: bool,
    ) -> Written {
        match words {
            Some(words) => self.put(words),
            None => {
                self.expr(window.node(offset)?, false)?;
                self.put(if is_before { " PRECEDING " } else { " FOLLOWING " });
            }
        }
        Ok(())
    }

    fn frame(&mut self, window: &'t NodeStruct<'t>, options: u32) -> Written {
        let has = |bits: u32| options & bits != 0;
        self.put(match () {
            () if has(frame::RANGE) => "RANGE ",
            () if has(frame::ROWS) => "ROWS ",
            () => "GROUPS ",
        });
        if has(frame::BETWEEN) {
            self.put("BETWEEN ");
        }
        let start = match () {
            () if has(frame::START_UNBOUNDED_PRECEDING) => Some("UNBOUNDED PRECEDING "),
            () if has(frame::START_CURRENT_ROW) => Some("CURRENT ROW "),
            () => None,
        };
        self.edge(start, (window, "startOffset"), has(frame::START_OFFSET_PRECEDING))?;
        if has(frame::BETWEEN) {
            self.put("AND ");
            let end = match () {
                () if has(frame::END_UNBOUNDED_FOLLOWING) => Some("UNBOUNDED FOLLOWING "),
                () if has(frame::END_CURRENT_ROW) => Some("CURRENT ROW "),
                () => None,
            };
            self.edge(end, (window, "endOffset"), has(frame::END_OFFSET_PRECEDING))?;
        }
        if has(frame::EXCLUDE_CURRENT_ROW) {
            self.put("EXCLUDE CURRENT ROW ");
        } else if has(frame::EXCLUDE_GROUP) {
            self.put("EXCLUDE GROUP ");
        } else if has(frame::EXCLUDE_TIES) {
            self.put("EXCLUDE TIES ");
        }
        self.drop_blanks();
        Ok(())
    }
}

/// Bits of `frameOptions`.
///
/// Source: `src/include/nodes/parsenodes.h`, PostgreSQL 18.
mod frame {
    pub(super) const NON_DEFAULT: u32 = 0x1;
    pub(super) const RANGE: u32 = 0x2;
    pub(super) const ROWS: u32 = 0x4;
    pub(super) const BETWEEN: u32 = 0x10;
    pub(super) const START_UNBOUNDED_PRECEDING: u32 = 0x20;
    pub(super) const END_UNBOUNDED_FOLLOWING: u32 = 0x100;
    pub(super) const START_CURRENT_ROW: u32 = 0x200;
    pub(super) const END_CURRENT_ROW: u32 = 0x400;
    pub(super) const START_OFFSET_PRECEDING: u32 = 0x800;
    pub(super) const END_OFFSET_PRECEDING: u32 = 0x1000;
    pub(super) const EXCLUDE_CURRENT_ROW: u32 = 0x8000;
    pub(super) const EXCLUDE_GROUP: u32 = 0x10000;
    pub(super) const EXCLUDE_TIES: u32 = 0x20000;
}
