//! Queries within expressions.
//!
//! Source: `get_sublink_expr` in `src/backend/utils/adt/ruleutils.c`, PostgreSQL 14 to 18.

use pagemill_format::node_tree::NodeStruct;

use super::Unwritten;
use super::tree::{
    ALL_SUBLINK, ANY_SUBLINK, ARRAY_SUBLINK, EXISTS_SUBLINK, EXPR_SUBLINK, MULTIEXPR_SUBLINK,
    ROWCOMPARE_SUBLINK, oids, optional,
};
use super::writer::{Writer, Written};

impl<'t> Writer<'t> {
    /// A query within an expression.
    pub(super) fn sublink(&mut self, node: &'t NodeStruct<'t>) -> Written {
        let kind: u8 = node.number("subLinkType")?;
        self.put(if kind == ARRAY_SUBLINK { "ARRAY(" } else { "(" });
        let operator = match optional(node, "testexpr") {
            Some(test) => self.sublink_test(test)?,
            None => String::new(),
        };
        let opening = match kind {
            EXISTS_SUBLINK => "EXISTS (".to_owned(),
            ANY_SUBLINK if operator == "=" => " IN (".to_owned(),
            ANY_SUBLINK => format!(" {operator} ANY ("),
            ALL_SUBLINK => format!(" {operator} ALL ("),
            ROWCOMPARE_SUBLINK => format!(" {operator} ("),
            EXPR_SUBLINK | MULTIEXPR_SUBLINK | ARRAY_SUBLINK => String::new(),
            _ => return Err(Unwritten::node(node)),
        };
        self.put(&opening);
        self.inner_query(node.node("subselect")?, false)?;
        self.put(if opening.is_empty() { ")" } else { "))" });
        Ok(())
    }

    /// What is compared with the rows of a query, and by which operator.
    fn sublink_test(&mut self, test: &'t NodeStruct<'t>) -> Written<String> {
        let first = |of: &'t NodeStruct<'t>| -> Written<&'t NodeStruct<'t>> {
            of.nodes("args")?.first().copied().ok_or_else(|| Unwritten::node(of))
        };
        match test.name {
            b"OPEXPR" => {
                self.expr(first(test)?, true)?;
                self.dictionary.operator(test.oid("opno")?)
            }
            b"BOOLEXPR" => {
                let parts = test.nodes("args")?;
                self.put("(");
                for (at, part) in parts.iter().enumerate() {
                    if at > 0 {
                        self.put(", ");
                    }
                    self.expr(first(part)?, true)?;
                }
                self.put(")");
                let part = parts.first().ok_or_else(|| Unwritten::node(test))?;
                self.dictionary.operator(part.oid("opno")?)
            }
            b"ROWCOMPARE" | b"ROWCOMPAREEXPR" => {
                self.put("(");
                self.list(&test.nodes("largs")?, true)?;
                self.put(")");
                let operators = oids(test, "opnos")?;
                let operator = operators.first().ok_or_else(|| Unwritten::node(test))?;
                self.dictionary.operator(*operator)
            }
            _ => Err(Unwritten::node(test)),
        }
    }
}
