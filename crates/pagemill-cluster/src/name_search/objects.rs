//! Objects by name, and which of them a name finds.
//!
//! Source: `FuncnameGetCandidates` and `OpernameGetCandidates` in `src/backend/catalog/namespace.c`,
//! PostgreSQL 14 to 18.

use std::collections::HashMap;

use pagemill_format::Oid;

use crate::names::{NamedRow, SearchPath};

/// An object in a schema.
#[derive(Debug)]
pub(super) struct Object {
    pub(super) oid: Oid,
    pub(super) namespace: Oid,
    /// Of a function its arguments, of an operator its two operands.
    pub(super) args: Box<[Oid]>,
}

/// The objects of one catalog.
#[derive(Debug)]
pub(super) struct Objects(HashMap<Box<[u8]>, Vec<Object>>);

impl Objects {
    pub(super) fn of(objects: impl Iterator<Item = (Box<[u8]>, Object)>) -> Self {
        let mut by_name: HashMap<_, Vec<Object>> = HashMap::new();
        for (name, object) in objects {
            by_name.entry(name).or_default().push(object);
        }
        Self(by_name)
    }

    pub(super) fn named(rows: Vec<NamedRow>) -> Self {
        let args = Box::default;
        Self::of(
            rows.into_iter().map(|row| {
                (row.name, Object { oid: row.oid, namespace: row.namespace, args: args() })
            }),
        )
    }

    /// The objects of this name in one schema, or along the search path: of those with the same
    /// arguments the first only.
    pub(super) fn visible(
        &self,
        name: &[u8],
        schema: Option<Oid>,
        path: &SearchPath,
    ) -> Vec<&Object> {
        let all = self.0.get(name).map(Vec::as_slice).unwrap_or_default();
        let listed = path.namespaces();
        let searched = schema.as_ref().map_or(listed, std::slice::from_ref);
        let mut found: Vec<&Object> = Vec::new();
        for namespace in searched {
            let before = found.len();
            for object in all.iter().filter(|object| object.namespace == *namespace) {
                let hidden = found.iter().take(before).any(|other| other.args == object.args);
                if !hidden {
                    found.push(object);
                }
            }
        }
        found
    }
}
