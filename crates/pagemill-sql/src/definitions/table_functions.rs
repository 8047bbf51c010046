//! XMLTABLE, and JSON_TABLE from 17 on.
//!
//! Source: `get_xmltable`, `get_json_table`, `get_json_table_columns`, `get_json_table_nested_columns` in
//! `src/backend/utils/adt/ruleutils.c`, PostgreSQL 14 to 18.

use pagemill_format::Oid;
use pagemill_format::node_tree::{Node, NodeStruct};

use super::Unwritten;
use super::constants::Label;
use super::json::{EMPTY_ARRAY, EXISTS, FALSE, NULL, QUERY};
use super::tree::{numbers, oids, optional, text, texts};
use super::writer::{VAR_STEP, Writer, Written};

/// The category of types that are strings.
const STRINGS: u8 = b'S';

/// A column of the table that is made.
struct MadeColumn<'t> {
    name: String,
    type_oid: Oid,
    modifier: i32,
    /// Where its value is found; nothing for a number of rows, and of XML also where that goes by its name.
    value: Option<&'t NodeStruct<'t>>,
}

impl<'t> Writer<'t> {
    pub(super) fn table_function(&mut self, node: &'t NodeStruct<'t>) -> Written {
        // There was no other before 17.
        match node.values("functype") {
            Some(_) if node.number::<u8>("functype")? != 0 => self.json_table(node),
            _ => self.xml_table(node),
        }
    }

    fn xml_table(&mut self, node: &'t NodeStruct<'t>) -> Written {
        self.put("XMLTABLE(");
        self.xml_namespaces(node)?;
        self.put("(");
        self.expr(node.node("rowexpr")?, true)?;
        self.put(") PASSING (");
        self.expr(node.node("docexpr")?, true)?;
        self.put(")");
        if !node.value("colexprs")?.as_list()?.is_empty() {
            self.put(" COLUMNS ");
            self.xml_columns(node)?;
        }
        self.put(")");
        Ok(())
    }

    fn xml_namespaces(&mut self, node: &'t NodeStruct<'t>) -> Written {
        let names = node.value("ns_names")?.as_list()?;
        let uris = node.nodes("ns_uris")?;
        for (at, (uri, name)) in uris.iter().zip(names).enumerate() {
            self.put(if at == 0 { "XMLNAMESPACES (" } else { ", " });
            match name {
                Node::Token(name) => {
                    self.expr(uri, true)?;
                    self.put(" AS ");
                    let name = pagemill_format::node_tree::text_of(name);
                    self.identifier(&String::from_utf8_lossy(&name));
                }
                _ => {
                    self.put("DEFAULT ");
                    self.expr(uri, true)?;
                }
            }
        }
        if !uris.is_empty() {
            self.put("), ");
        }
        Ok(())
    }

    fn xml_columns(&mut self, node: &'t NodeStruct<'t>) -> Written {
        let ordinality: i64 = node.number("ordinalitycol")?;
        let required = bits(node, "notnulls")?;
        let defaults = node.value("coldefexprs")?.as_list()?;
        for (at, column) in made_columns(node, "colexprs")?.into_iter().enumerate() {
            if at > 0 {
                self.put(", ");
            }
            self.made_column(&column, i64::try_from(at) == Ok(ordinality))?;
            if i64::try_from(at) == Ok(ordinality) {
                continue;
            }
            if let Some(default) = defaults.get(at).and_then(Node::structure) {
                self.put(" DEFAULT (");
                self.expr(default, true)?;
                self.put(")");
            }
            if let Some(path) = column.value {
                self.put(" PATH (");
                self.expr(path, true)?;
                self.put(")");
            }
            if required.contains(&at) {
                self.put(" NOT NULL");
            }
        }
        Ok(())
    }

    /// The name of a column and its type.
    fn made_column(&mut self, column: &MadeColumn<'_>, counts_rows: bool) -> Written {
        self.identifier(&column.name);
        let of = match counts_rows {
            true => "FOR ORDINALITY".to_owned(),
            false => self.type_name(column.type_oid, column.modifier)?,
        };
        self.put(&format!(" {of}"));
        Ok(())
    }

    fn json_table(&mut self, node: &'t NodeStruct<'t>) -> Written {
        let (document, plan) = (node.node("docexpr")?, node.node("plan")?);
        self.put("JSON_TABLE(");
        self.set_in(|writer| {
            writer.keyword("", (0, 0, 0));
            writer.expr(document.node("formatted_expr")?, true)?;
            writer.put(", ");
            writer.path_and_name(plan)?;
            writer.passed(document)?;
            writer.json_columns(node, plan)?;
            match optional(document, "on_error") {
                Some(behavior) if behavior.number::<usize>("btype")? != EMPTY_ARRAY => {
                    writer.json_behavior(behavior, "ERROR")
                }
                _ => Ok(()),
            }
        })?;
        self.keyword(")", (0, 0, 0));
        Ok(())
    }

    /// What `write` writes stands further to the right.
    fn set_in(&mut self, write: impl FnOnce(&mut Self) -> Written) -> Written {
        self.indentation += VAR_STEP;
        let written = write(self);
        self.indentation -= VAR_STEP;
        written
    }

    fn path_and_name(&mut self, plan: &'t NodeStruct<'t>) -> Written {
        let path = plan.node("path")?;
        self.constant_node(path.node("value")?, Label::Never)?;
        self.put(" AS ");
        self.identifier(&text(path, "name")?.ok_or_else(|| Unwritten::node(path))?);
        Ok(())
    }

    fn passed(&mut self, document: &'t NodeStruct<'t>) -> Written {
        let values = document.nodes("passing_values")?;
        if values.is_empty() {
            return Ok(());
        }
        self.put(" ");
        self.keyword("PASSING ", (0, 0, 0));
        let names = texts(document, "passing_names")?;
        self.set_in(|writer| {
            for (at, (value, name)) in values.into_iter().zip(names).enumerate() {
                if at > 0 {
                    writer.put(", ");
                }
                writer.keyword("", (0, 0, 0));
                writer.expr(value, false)?;
                writer.put(" AS ");
                writer.identifier(&name);
            }
            Ok(())
        })
    }

    /// The columns that belong to one path, and those of the paths within.
    fn json_columns(&mut self, node: &'t NodeStruct<'t>, plan: &'t NodeStruct<'t>) -> Written {
        self.put(" ");
        self.keyword("COLUMNS (", (0, 0, 0));
        let (first, last): (i64, i64) = (plan.number("colMin")?, plan.number("colMax")?);
        self.set_in(|writer| {
            let own = (0..).zip(made_columns(node, "colvalexprs")?);
            for (at, column) in own.filter(|(at, _)| first >= 0 && (first..=last).contains(at)) {
                if at > first {
                    writer.put(", ");
                }
                writer.keyword("", (0, 0, 0));
                writer.json_column(&column)?;
            }
            match optional(plan, "child") {
                Some(child) => writer.nested(node, child, first >= 0),
                None => Ok(()),
            }
        })?;
        self.keyword(")", (0, 0, 0));
        Ok(())
    }

    fn json_column(&mut self, column: &MadeColumn<'t>) -> Written {
        self.made_column(column, column.value.is_none())?;
        let Some(value) = column.value else { return Ok(()) };
        let op: u8 = value.number("op")?;
        let is_string =
            self.catalog.type_row(column.type_oid).is_some_and(|row| row.category == STRINGS);
        match op {
            EXISTS => self.put(" EXISTS"),
            QUERY if is_string => {
                let is_binary = value.node("format")?.number::<u8>("format_type")? == 2;
                self.put(if is_binary { " FORMAT JSONB" } else { " FORMAT JSON" });
            }
            _ => {}
        }
        self.put(" PATH ");
        self.json_path(value.node("path_spec")?, true)?;
        self.json_options(value, if op == EXISTS { FALSE } else { NULL })
    }

    fn nested(
        &mut self,
        node: &'t NodeStruct<'t>,
        plan: &'t NodeStruct<'t>,
        follows: bool,
    ) -> Written {
        if plan.name == b"JSONTABLESIBLINGJOIN" {
            self.nested(node, plan.node("lplan")?, follows)?;
            return self.nested(node, plan.node("rplan")?, true);
        }
        self.put(if follows { ", " } else { " " });
        self.keyword("NESTED PATH ", (0, 0, 0));
        self.path_and_name(plan)?;
        self.json_columns(node, plan)
    }
}

/// The columns, each with its expression in the list that is called so.
fn made_columns<'t>(node: &'t NodeStruct<'t>, values: &str) -> Written<Vec<MadeColumn<'t>>> {
    let (names, types) = (texts(node, "colnames")?, oids(node, "coltypes")?);
    let (modifiers, values) = (numbers::<i32>(node, "coltypmods")?, node.value(values)?.as_list()?);
    if [types.len(), modifiers.len(), values.len()].iter().any(|count| *count != names.len()) {
        return Err(Unwritten::node(node));
    }
    let columns = names.into_iter().zip(types).zip(modifiers).zip(values);
    let made = columns.map(|(((name, type_oid), modifier), value)| MadeColumn {
        name,
        type_oid,
        modifier,
        value: value.structure(),
    });
    Ok(made.collect())
}

/// A field that is a set of small numbers: `(b 0 2)`.
fn bits(node: &NodeStruct<'_>, label: &str) -> Written<Vec<usize>> {
    match node.value(label)? {
        Node::Null => Ok(Vec::new()),
        _ => numbers(node, label),
    }
}
