//! Calls that the standard has words for: `EXTRACT(year FROM x)`, `x AT TIME ZONE 'UTC'`.
//!
//! Invariant: such a form is read again as a call of the same function.
//!
//! Source: `get_func_sql_syntax` in `src/backend/utils/adt/ruleutils.c`, PostgreSQL 14 to 18.

use pagemill_format::node_tree::{Const, NodeStruct};
use pagemill_types::builtin::oid;

use super::Unwritten;
use super::writer::{Writer, Written};

impl<'t> Writer<'t> {
    /// Writes a call in the words of the standard; false, and nothing written, where there are none.
    pub(super) fn special_call(
        &mut self,
        node: &'t NodeStruct<'t>,
        args: &[&'t NodeStruct<'t>],
    ) -> Written<bool> {
        let of = node.oid("funcid")?;
        let missing = || Unwritten::missing("function", of);
        let function = self.catalog.function(of).ok_or_else(missing)?;
        let (name, first) = (function.name.clone(), function.arguments.first().copied());
        match (&*name, args) {
            ("timezone", [zone, time]) => {
                self.put("(");
                self.part(time, false, node)?;
                self.put(" AT TIME ZONE ");
                self.part(zone, false, node)?;
                self.put(")");
            }
            ("timezone", [time]) if self.dictionary.major() >= 17 => {
                self.put("(");
                self.part(time, false, node)?;
                self.put(" AT LOCAL)");
            }
            ("overlaps", [a, b, c, d]) => {
                self.worded(&["((", ", ", ") OVERLAPS (", ", ", "))"], &[a, b, c, d])?
            }
            ("extract", [field, of]) => {
                let field = text_constant(field)?;
                self.worded(&[&format!("EXTRACT({field} FROM "), ")"], &[of])?;
            }
            ("is_normalized", [of, rest @ ..]) => {
                self.put("(");
                self.part(of, false, node)?;
                self.put(" IS");
                if let [form] = rest {
                    let form = text_constant(form)?;
                    self.put(&format!(" {form}"));
                }
                self.put(" NORMALIZED)");
            }
            ("pg_collation_for", [of]) => self.worded(&["COLLATION FOR (", ")"], &[of])?,
            ("normalize", [of]) => self.worded(&["NORMALIZE(", ")"], &[of])?,
            ("normalize", [of, form]) => {
                let end = format!(", {})", text_constant(form)?);
                self.worded(&["NORMALIZE(", &end], &[of])?;
            }
            ("overlay", [of, with, from]) => {
                self.worded(&["OVERLAY(", " PLACING ", " FROM ", ")"], &[of, with, from])?;
            }
            ("overlay", [of, with, from, count]) => {
                let words = ["OVERLAY(", " PLACING ", " FROM ", " FOR ", ")"];
                self.worded(&words, &[of, with, from, count])?;
            }
            ("position", [of, part]) => {
                self.worded(&["POSITION((", ") IN (", "))"], &[part, of])?;
            }
            ("substring", [of, from]) if first_is_place(self, node)? => {
                self.worded(&["SUBSTRING(", " FROM ", ")"], &[of, from])?;
            }
            ("substring", [of, from, count]) if first_is_place(self, node)? => {
                self.worded(&["SUBSTRING(", " FROM ", " FOR ", ")"], &[of, from, count])?;
            }
            ("substring", [of, pattern, escape]) if first == Some(oid::TEXT) => {
                self.worded(&["SUBSTRING(", " SIMILAR ", " ESCAPE ", ")"], &[of, pattern, escape])?;
            }
            ("btrim", _) => self.trim("BOTH", args)?,
            ("ltrim", _) => self.trim("LEADING", args)?,
            ("rtrim", _) => self.trim("TRAILING", args)?,
            ("xmlexists", [path, of]) => {
                self.worded(&["XMLEXISTS((", ") PASSING (", "))"], &[path, of])?;
            }
            ("system_user", []) => self.put("SYSTEM_USER"),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The expressions, each between two of the words.
    fn worded(&mut self, words: &[&str], parts: &[&'t NodeStruct<'t>]) -> Written {
        assert_eq!(words.len(), parts.len() + 1, "a word stands on each side of a part");
        self.put(words[0]);
        for (part, word) in parts.iter().zip(&words[1..]) {
            self.expr(part, false)?;
            self.put(word);
        }
        Ok(())
    }

    fn trim(&mut self, side: &str, args: &[&'t NodeStruct<'t>]) -> Written {
        match args {
            [of] => self.worded(&[&format!("TRIM({side} FROM "), ")"], &[of]),
            [of, what] => self.worded(&[&format!("TRIM({side} "), " FROM ", ")"], &[what, of]),
            _ => Err(Unwritten::unknown("a call of trim")),
        }
    }
}

/// True for the form of `substring` that takes a place, not a pattern.
fn first_is_place(writer: &Writer<'_>, node: &NodeStruct<'_>) -> Written<bool> {
    let function = writer.catalog.function(node.oid("funcid")?);
    Ok(function.is_some_and(|function| function.arguments.get(1) == Some(&oid::INT4)))
}

fn text_constant(node: &NodeStruct<'_>) -> Written<String> {
    let value = Const::of(node)?;
    let payload = value.payload()?.ok_or_else(|| Unwritten::node(node))?;
    Ok(String::from_utf8_lossy(&payload).into_owned())
}
