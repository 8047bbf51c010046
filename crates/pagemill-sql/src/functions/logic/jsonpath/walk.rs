//! The values within a container, in the order in which they lie, down to any level.
//!
//! Depth costs heap, not stack: a document may be deeper than any recursion.
//!
//! Source: `executeAnyItem` in `src/backend/utils/adt/jsonpath_exec.c`, PostgreSQL 14 to 18.

use super::path::NodeId;
use super::run::{Found, Run, Status, collect};
use super::value::{Container, Value};
use crate::functions::rows::Outcome;

/// Which values within a container, and what is applied to them.
pub(super) struct Walk {
    /// None where the values are the items found.
    pub(super) node: Option<NodeId>,
    pub(super) first: u32,
    pub(super) last: u32,
    pub(super) ignores_structure: bool,
    pub(super) unwraps: bool,
}

impl Walk {
    /// The elements or members.
    pub(super) const CHILDREN: Self =
        Self { node: None, first: 1, last: 1, ignores_structure: false, unwraps: false };

    fn includes(&self, level: u32, value: &Value<'_>) -> bool {
        let are_leaves = self.first == u32::MAX && self.last == u32::MAX;
        level >= self.first || (are_leaves && !matches!(value, Value::Container(_)))
    }
}

impl<'q> Run<'q> {
    /// Goes through the values within a container, level by level as they lie.
    pub(super) fn walk(
        &mut self,
        walk: Walk,
        container: Container<'q>,
        mut found: Found<'_, 'q>,
    ) -> Outcome<Status> {
        let mut open = vec![(container, 0)];
        while let Some((container, number)) = open.last_mut() {
            let Some(value) = container.element(*number)? else {
                open.pop();
                continue;
            };
            *number += 1;
            let level = u32::try_from(open.len()).unwrap_or(u32::MAX); // default: deeper than any path tells
            if level > walk.last {
                open.pop();
                continue;
            }
            let inner = match &value {
                Value::Container(inner) if level < walk.last => Some(inner.clone()),
                _ => None,
            };
            if walk.includes(level, &value) {
                let status = self.visit(&walk, value, found.as_deref_mut())?;
                if status == Status::Failed || (status == Status::Found && found.is_none()) {
                    return Ok(status);
                }
            }
            open.extend(inner.map(|inner| (inner, 0)));
        }
        Ok(Status::Nothing)
    }

    fn visit(&mut self, walk: &Walk, value: Value<'q>, found: Found<'_, 'q>) -> Outcome<Status> {
        let Some(node) = walk.node else { return Ok(collect(value, found)) };
        let saved = self.ignores_structure;
        self.ignores_structure |= walk.ignores_structure;
        let status = self.item_unwrapping(node, value, walk.unwraps, found);
        self.ignores_structure = saved;
        status
    }
}
