//! Constants, and the types that stand behind them.
//!
//! Source: `get_const_expr`, `get_coercion_expr` in `src/backend/utils/adt/ruleutils.c`, `exprIsLengthCoercion` in
//! `src/backend/nodes/nodeFuncs.c`, PostgreSQL 15.

use pagemill_format::Oid;
use pagemill_format::node_tree::{Const, NodeStruct};
use pagemill_types::builtin::oid;

use super::dictionary::{literal, text_of_value};
use super::tree::is_const;
use super::writer::{Writer, Written};
use crate::types::UNKNOWN;

/// When the type stands behind a constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Label {
    Never,
    WhereNeeded,
    Always,
}

impl<'t> Writer<'t> {
    pub(super) fn constant(&mut self, value: &Const, label: Label) -> Written {
        let Some(payload) = value.payload()? else {
            self.put("NULL");
            return match label {
                Label::Never => Ok(()),
                _ => self.label(value),
            };
        };
        let text = text_of_value(&self.catalog, self.style, value.type_oid, &payload)?;
        let is_point =
            text.starts_with(|c: char| c.is_ascii_digit()) && text.contains(['e', 'E', '.']);
        let (text, needs_label) = match value.type_oid {
            oid::INT4 if !text.starts_with('-') => (text, false),
            oid::NUMERIC if is_point => (text, value.type_modifier >= 0),
            oid::INT4 | oid::NUMERIC => (format!("'{text}'"), true),
            oid::BOOL => (if text == "t" { "true" } else { "false" }.to_owned(), false),
            UNKNOWN => (literal(&text), false),
            _ => (literal(&text), true),
        };
        self.put(&text);
        match label {
            Label::Never => Ok(()),
            Label::WhereNeeded if !needs_label => self.constant_collation(value),
            _ => self.label(value),
        }
    }

    fn label(&mut self, value: &Const) -> Written {
        let name = self.type_name(value.type_oid, value.type_modifier)?;
        self.put(&format!("::{name}"));
        self.constant_collation(value)
    }

    fn constant_collation(&mut self, value: &Const) -> Written {
        let of_type = self.dictionary.type_collation(value.type_oid);
        if value.collation != Oid(0) && value.collation != of_type {
            let name = self.dictionary.collation(value.collation)?;
            self.put(&format!(" COLLATE {name}"));
        }
        Ok(())
    }

    /// `argument::type`.
    pub(super) fn coercion(
        &mut self,
        argument: &'t NodeStruct<'t>,
        (result, modifier): (Oid, i32),
        parent: &'t NodeStruct<'t>,
    ) -> Written {
        let constant = if is_const(argument) { Some(Const::of(argument)?) } else { None };
        match constant {
            // The type follows anyhow.
            Some(value) if value.type_oid == result && value.type_modifier == -1 => {
                self.constant(&value, Label::Never)?;
            }
            _ => {
                self.open();
                self.part(argument, false, parent)?;
                self.close();
            }
        }
        let name = self.type_name(result, modifier)?;
        self.put(&format!("::{name}"));
        Ok(())
    }
}

/// The modifier that a function of a cast brings a value to, its second argument.
pub(super) fn length_coercion(arguments: &[&NodeStruct<'_>]) -> Written<i32> {
    let Some(second) = arguments.get(1).filter(|second| arguments.len() <= 3 && is_const(second))
    else {
        return Ok(-1);
    };
    let value = Const::of(second)?;
    let number = value.payload()?.and_then(|bytes| bytes.first_chunk().copied());
    Ok(match number {
        Some(bytes) if value.type_oid == oid::INT4 => i32::from_le_bytes(bytes),
        _ => -1,
    })
}
