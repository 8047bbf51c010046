//! What the standard has words for that make XML: `XMLELEMENT(NAME a, …)` and its kin.
//!
//! Source: `get_rule_expr` in `src/backend/utils/adt/ruleutils.c`, `XmlExpr` in `src/include/nodes/primnodes.h`,
//! `map_xml_name_to_sql_identifier` in `src/backend/utils/adt/xml.c`, PostgreSQL 14 to 18.

use pagemill_format::node_tree::{Const, NodeStruct};

use super::Unwritten;
use super::tree::{flag, text, texts};
use super::writer::{Writer, Written};

/// `XmlExprOp`, in its order.
const NAMES: [&str; 7] =
    ["XMLCONCAT", "XMLELEMENT", "XMLFOREST", "XMLPARSE", "XMLPI", "XMLROOT", "XMLSERIALIZE"];
const FOREST: usize = 2;
const PARSE: usize = 3;
const ROOT: usize = 5;
pub(super) const SERIALIZE: usize = 6;
pub(super) const IS_DOCUMENT: usize = 7;

/// `a IS DOCUMENT`, which stands between others as `a IS NULL` does. Minor versions before 15.20, and those of its time, wrote it
/// without parentheses of its own.
pub(super) fn is_document(node: &NodeStruct<'_>) -> Written<bool> {
    Ok(node.name == b"XMLEXPR" && node.number::<usize>("op")? == IS_DOCUMENT)
}

impl<'t> Writer<'t> {
    pub(super) fn xml(&mut self, node: &'t NodeStruct<'t>) -> Written {
        let op: usize = node.number("op")?;
        let args = node.nodes("args")?;
        if op == IS_DOCUMENT {
            let [only] = args.as_slice() else { return Err(Unwritten::node(node)) };
            self.open();
            self.part(only, false, node)?;
            self.put(" IS DOCUMENT");
            self.close();
            return Ok(());
        }
        let name = NAMES.get(op).ok_or_else(|| Unwritten::node(node))?;
        self.put(&format!("{name}("));
        if [PARSE, SERIALIZE].contains(&op) {
            let is_document = node.number::<u8>("xmloption")? == 0;
            self.put(if is_document { "DOCUMENT " } else { "CONTENT " });
        }
        let has_before = self.xml_names(node, op)?;
        if has_before && !args.is_empty() {
            self.put(", ");
        }
        match (op, args.as_slice()) {
            (PARSE, [document, keeps_blanks]) => {
                self.expr(document, true)?;
                let keeps = Const::of(keeps_blanks)?.value.is_some_and(|value| value != [0]);
                self.put(if keeps { " PRESERVE WHITESPACE" } else { " STRIP WHITESPACE" });
            }
            (ROOT, [document, version, standalone]) => {
                self.expr(document, true)?;
                self.xml_root(version, standalone)?;
            }
            _ => self.list(&args, true)?,
        }
        if op == SERIALIZE {
            let name = self.type_name(node.oid("type")?, node.number("typmod")?)?;
            self.put(&format!(" AS {name}"));
            // From 16 on.
            if node.values("indent").is_some() {
                self.put(if flag(node, "indent") { " INDENT" } else { " NO INDENT" });
            }
        }
        self.put(")");
        Ok(())
    }

    /// The name and the named arguments, which are attributes but in a forest; whether there is any.
    fn xml_names(&mut self, node: &'t NodeStruct<'t>, op: usize) -> Written<bool> {
        let name = text(node, "name")?;
        if let Some(name) = &name {
            self.put("NAME ");
            self.identifier(&identifier_of(name));
        }
        let (named, names) = (node.nodes("named_args")?, texts(node, "arg_names")?);
        if named.is_empty() {
            return Ok(name.is_some());
        }
        if op != FOREST {
            self.put(if name.is_some() { ", XMLATTRIBUTES(" } else { "XMLATTRIBUTES(" });
        }
        for (at, (argument, name)) in named.iter().zip(&names).enumerate() {
            if at > 0 {
                self.put(", ");
            }
            self.expr(argument, true)?;
            self.put(" AS ");
            self.identifier(&identifier_of(name));
        }
        if op != FOREST {
            self.put(")");
        }
        Ok(true)
    }

    fn xml_root(&mut self, version: &'t NodeStruct<'t>, standalone: &NodeStruct<'_>) -> Written {
        self.put(", VERSION ");
        match version.name == b"CONST" && Const::of(version)?.value.is_none() {
            true => self.put("NO VALUE"),
            false => self.expr(version, false)?,
        }
        let value = Const::of(standalone)?.value;
        self.put(match value.as_deref().and_then(<[u8]>::first) {
            Some(0) => ", STANDALONE YES",
            Some(1) => ", STANDALONE NO",
            Some(2) => ", STANDALONE NO VALUE",
            _ => "",
        });
        Ok(())
    }
}

/// A name of XML as the identifier that it was made of: `a_x0020_b` as `a b`.
fn identifier_of(name: &str) -> String {
    let (mut found, mut rest) = (String::new(), name);
    while let Some(at) = rest.find("_x") {
        let (before, escaped) = rest.split_at(at);
        found.push_str(before);
        let digits = escaped.get(2..6).filter(|_| escaped.as_bytes().get(6) == Some(&b'_'));
        let digits = digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let code = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        match code.and_then(char::from_u32) {
            Some(letter) => {
                found.push(letter);
                rest = &escaped[7..];
            }
            None => {
                found.push_str("_x");
                rest = &escaped[2..];
            }
        }
    }
    found + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_xml_are_identifiers_again() {
        for (name, identifier) in [
            ("plain", "plain"),
            ("a_x0020_b", "a b"),
            ("_x0031_st_x", "1st_x"),
            ("_x00zz__x0041_", "_x00zz_A"),
            ("_x_x0042_", "_xB"),
            ("_x+041_", "_x+041_"),
        ] {
            assert_eq!(identifier_of(name), identifier);
        }
    }
}
