//! Expressions.
//!
//! Source: `get_rule_expr`, `isSimpleNode`, `get_oper_expr` in `src/backend/utils/adt/ruleutils.c`, PostgreSQL 14 to 18.

use pagemill_format::node_tree::{Const, Node, NodeStruct};
use pagemill_types::builtin::oid;

use super::Unwritten;
use super::constants::Label;
use super::tree::{
    Form, expr_type, flag, form, is_var, optional, text, texts, without_implicit, word,
};
use super::writer::{VAR_STEP, Writer, Written};
use super::xml::is_document;

impl<'t> Writer<'t> {
    /// An expression; conversions that nobody wrote are shown where `shows_implicit`.
    pub(super) fn expr(&mut self, node: &'t NodeStruct<'t>, shows_implicit: bool) -> Written {
        match node.name {
            b"PARAM" => self.parameter(node),
            b"VAR" => self.variable(node, 0, false).map(drop),
            b"CONST" => self.constant(&Const::of(node)?, Label::WhereNeeded),
            b"OPEXPR" => self.operation(node),
            b"DISTINCTEXPR" => self.distinct(node),
            b"NULLIF" | b"NULLIFEXPR" => self.in_call("NULLIF", node, "args"),
            b"SCALARARRAYOPEXPR" => self.any_or_all(node),
            b"BOOLEXPR" => self.logic(node),
            b"FUNCEXPR" => self.call(node, shows_implicit),
            b"AGGREF" => self.aggregate(node, None),
            b"WINDOWFUNC" => self.window_function(node, None),
            b"GROUPINGFUNC" => self.in_call("GROUPING", node, "args"),
            b"NAMEDARGEXPR" => {
                let name = text(node, "name")?.ok_or_else(|| Unwritten::node(node))?;
                self.identifier(&name);
                self.put(" => ");
                self.expr(node.node("arg")?, shows_implicit)
            }
            b"SUBSCRIPTINGREF" => self.subscripted(node, shows_implicit),
            b"FIELDSELECT" => self.field(node),
            b"RELABELTYPE" => self.converted(node, "relabelformat", shows_implicit),
            b"COERCEVIAIO" | b"ARRAYCOERCEEXPR" => {
                self.converted(node, "coerceformat", shows_implicit)
            }
            b"CONVERTROWTYPEEXPR" => self.converted(node, "convertformat", shows_implicit),
            b"COERCETODOMAIN" => {
                let is_shown = shows_implicit || form(node, "coercionformat")? != Form::Implicit;
                match is_shown {
                    true => self.converted(node, "coercionformat", shows_implicit),
                    // Its value has no parentheses, even where those of other conversions would.
                    false => self.expr(node.node("arg")?, false),
                }
            }
            b"COERCETODOMAINVALUE" => self.word_of("VALUE"),
            b"SETTODEFAULT" => self.word_of("DEFAULT"),
            b"COLLATE" | b"COLLATEEXPR" => self.collated(node, shows_implicit),
            b"CASE" | b"CASEEXPR" => self.case(node),
            b"CASETESTEXPR" => self.word_of("CASE_TEST_EXPR"),
            b"ARRAY" | b"ARRAYEXPR" => self.array(node),
            b"ROW" | b"ROWEXPR" => self.row(node),
            b"ROWCOMPARE" | b"ROWCOMPAREEXPR" => self.row_comparison(node),
            b"COALESCE" | b"COALESCEEXPR" => self.in_call("COALESCE", node, "args"),
            b"MINMAX" | b"MINMAXEXPR" => {
                let name = if node.number::<u8>("op")? == 0 { "GREATEST" } else { "LEAST" };
                self.in_call(name, node, "args")
            }
            b"SQLVALUEFUNCTION" => self.sql_value(node),
            b"XMLEXPR" => self.xml(node),
            b"NULLTEST" => self.null_test(node),
            b"BOOLEANTEST" => self.boolean_test(node),
            b"SUBLINK" => self.sublink(node),
            b"INFERENCEELEM" => self.inference_element(node),
            b"MERGESUPPORTFUNC" => self.word_of("MERGE_ACTION()"),
            b"JSONVALUEEXPR" => self.json_value(node),
            b"JSONCONSTRUCTOREXPR" => self.json_constructor(node),
            b"JSONISPREDICATE" => self.is_json(node),
            b"JSONEXPR" => self.json_query(node, shows_implicit),
            b"PARTITIONBOUNDSPEC" => self.partition_bound(node),
            _ => Err(Unwritten::node(node)),
        }
    }

    fn word_of(&mut self, word: &str) -> Written {
        self.put(word);
        Ok(())
    }

    pub(super) fn list(&mut self, nodes: &[&'t NodeStruct<'t>], shows_implicit: bool) -> Written {
        for (at, node) in nodes.iter().enumerate() {
            if at > 0 {
                self.put(", ");
            }
            self.expr(node, shows_implicit)?;
        }
        Ok(())
    }

    fn in_call(&mut self, name: &str, node: &'t NodeStruct<'t>, arguments: &str) -> Written {
        self.put(&format!("{name}("));
        self.list(&node.nodes(arguments)?, true)?;
        self.put(")");
        Ok(())
    }

    /// An expression that stands for a whole column: a row is then more than its fields.
    pub(super) fn top_level(&mut self, node: &'t NodeStruct<'t>, shows_implicit: bool) -> Written {
        match is_var(node) {
            true => self.variable(node, 0, true).map(drop),
            false => self.expr(node, shows_implicit),
        }
    }

    pub(super) fn top_level_list(&mut self, nodes: &[&'t NodeStruct<'t>]) -> Written {
        for (at, node) in nodes.iter().enumerate() {
            if at > 0 {
                self.put(", ");
            }
            self.top_level(node, true)?;
        }
        Ok(())
    }

    /// Part of another expression, in parentheses where it would be read otherwise; all have their own where it is not
    /// pretty.
    pub(super) fn part(
        &mut self,
        node: &'t NodeStruct<'t>,
        shows_implicit: bool,
        parent: &NodeStruct<'_>,
    ) -> Written {
        let needs_parentheses = self.style.is_pretty && !self.is_simple(node, parent)?;
        if needs_parentheses {
            self.put("(");
        }
        self.expr(node, shows_implicit)?;
        if needs_parentheses {
            self.put(")");
        }
        Ok(())
    }

    fn operation(&mut self, node: &'t NodeStruct<'t>) -> Written {
        let operator = self.dictionary.operator(node.oid("opno")?)?;
        self.open();
        match node.nodes("args")?.as_slice() {
            [left, right] => {
                self.part(left, true, node)?;
                self.put(&format!(" {operator} "));
                self.part(right, true, node)?;
            }
            [only] => {
                self.put(&format!("{operator} "));
                self.part(only, true, node)?;
            }
            _ => return Err(Unwritten::node(node)),
        }
        self.close();
        Ok(())
    }

    fn distinct(&mut self, node: &'t NodeStruct<'t>) -> Written {
        let args = node.nodes("args")?;
        let [left, right] = args[..] else { return Err(Unwritten::node(node)) };
        self.open();
        self.part(left, true, node)?;
        self.put(" IS DISTINCT FROM ");
        self.part(right, true, node)?;
        self.close();
        Ok(())
    }

    fn any_or_all(&mut self, node: &'t NodeStruct<'t>) -> Written {
        let operator = self.dictionary.operator(node.oid("opno")?)?;
        let word = if node.boolean("useOr")? { "ANY" } else { "ALL" };
        let args = node.nodes("args")?;
        let [left, right] = args[..] else { return Err(Unwritten::node(node)) };
        self.open();
        self.part(left, true, node)?;
        self.put(&format!(" {operator} {word} ("));
        self.part(right, true, node)?;
        if right.name == b"SUBLINK" {
            // Without a cast it would be read as ANY of the query's rows.
            let name = self.type_name(expr_type(&self.dictionary, right)?, -1)?;
            self.put(&format!("::{name}"));
        }
        self.put(")");
        self.close();
        Ok(())
    }

    fn logic(&mut self, node: &'t NodeStruct<'t>) -> Written {
        let args = node.nodes("args")?;
        let between = match word(node, "boolop")? {
            b"and" => " AND ",
            b"or" => " OR ",
            _ => "",
        };
        self.open();
        if between.is_empty() {
            self.put("NOT ");
        }
        for (at, arg) in args.iter().enumerate() {
            if at > 0 {
                self.put(between);
            }
            self.part(arg, false, node)?;
        }
        self.close();
        Ok(())
    }

    fn converted(
        &mut self,
        node: &'t NodeStruct<'t>,
        format: &str,
        shows_implicit: bool,
    ) -> Written {
        let arg = node.node("arg")?;
        if form(node, format)? == Form::Implicit && !shows_implicit {
            return self.part(arg, false, node);
        }
        let modifier = node.number("resulttypmod").unwrap_or(-1);
        self.coercion(arg, (node.oid("resulttype")?, modifier), node)
    }

    fn collated(&mut self, node: &'t NodeStruct<'t>, shows_implicit: bool) -> Written {
        self.open();
        self.part(node.node("arg")?, shows_implicit, node)?;
        let name = self.dictionary.collation(node.oid("collOid")?)?;
        self.put(&format!(" COLLATE {name}"));
        self.close();
        Ok(())
    }

    fn subscripted(&mut self, node: &'t NodeStruct<'t>, shows_implicit: bool) -> Written {
        if optional(node, "refassgnexpr").is_some() {
            return Err(Unwritten::node(node));
        }
        let of = node.node("refexpr")?;
        let needs_parentheses = !is_var(of) && of.name != b"FIELDSELECT";
        if needs_parentheses {
            self.put("(");
        }
        self.expr(of, shows_implicit)?;
        if needs_parentheses {
            self.put(")");
        }
        self.subscripts(node)
    }

    /// `[1][2:3]`.
    pub(super) fn subscripts(&mut self, node: &'t NodeStruct<'t>) -> Written {
        let bound = |label: &str| node.value(label).and_then(Node::as_list);
        let (lower, upper) = (bound("reflowerindexpr")?, bound("refupperindexpr")?);
        for (at, upper) in upper.iter().enumerate() {
            self.put("[");
            if let Some(lower) = lower.get(at) {
                lower.structure().map_or(Ok(()), |lower| self.expr(lower, false))?;
                self.put(":");
            }
            upper.structure().map_or(Ok(()), |upper| self.expr(upper, false))?;
            self.put("]");
        }
        Ok(())
    }

    fn field(&mut self, node: &'t NodeStruct<'t>) -> Written {
        let arg = node.node("arg")?;
        let needs_parentheses = !matches!(arg.name, b"SUBSCRIPTINGREF" | b"FIELDSELECT");
        if needs_parentheses {
            self.put("(");
        }
        self.expr(arg, true)?;
        if needs_parentheses {
            self.put(")");
        }
        let name = self.field_name(arg, node.number("fieldnum")?)?;
        self.put(".");
        self.identifier(&name);
        Ok(())
    }

    fn case(&mut self, node: &'t NodeStruct<'t>) -> Written {
        self.keyword("CASE", (0, VAR_STEP, 0));
        let of = optional(node, "arg");
        if let Some(of) = of {
            self.put(" ");
            self.expr(of, true)?;
        }
        for branch in node.nodes("args")? {
            let mut condition = branch.node("expr")?;
            if of.is_some() && condition.name == b"OPEXPR" {
                let args = condition.nodes("args")?;
                if let [left, right] = args[..]
                    && without_implicit(left).name == b"CASETESTEXPR"
                {
                    condition = right;
                }
            }
            self.case_word("WHEN ", 0);
            self.expr(condition, false)?;
            self.put(" THEN ");
            self.expr(branch.node("result")?, true)?;
        }
        self.case_word("ELSE ", 0);
        self.expr(node.node("defresult")?, true)?;
        self.case_word("END", -VAR_STEP);
        Ok(())
    }

    fn case_word(&mut self, word: &str, before: i32) {
        if !self.style.is_indented {
            self.put(" ");
        }
        self.keyword(word, (before, 0, 0));
    }

    fn array(&mut self, node: &'t NodeStruct<'t>) -> Written {
        let elements = node.nodes("elements")?;
        self.put("ARRAY[");
        self.list(&elements, true)?;
        self.put("]");
        if elements.is_empty() {
            let name = self.type_name(node.oid("array_typeid")?, -1)?;
            self.put(&format!("::{name}"));
        }
        Ok(())
    }

    fn row(&mut self, node: &'t NodeStruct<'t>) -> Written {
        let type_oid = node.oid("row_typeid")?;
        if type_oid != oid::RECORD && self.dictionary.relation_of_type(type_oid).is_none() {
            return Err(Unwritten::node(node));
        }
        let dictionary = self.dictionary.clone();
        let columns = match dictionary.relation_of_type(type_oid) {
            Some(relation) if type_oid != oid::RECORD => dictionary.columns(relation),
            _ => &[],
        };
        let args = node.nodes("args")?;
        let is_dropped = |at: usize| columns.get(at).is_some_and(Option::is_none);
        self.put("ROW(");
        let mut count = 0;
        for at in 0..args.len().max(columns.len()) {
            if is_dropped(at) {
                continue;
            }
            if count > 0 {
                self.put(", ");
            }
            count += 1;
            match args.get(at) {
                Some(arg) => self.top_level(arg, true)?,
                // Columns that were added since are NULL.
                None => self.put("NULL"),
            }
        }
        self.put(")");
        if form(node, "row_format")? == Form::Cast {
            let name = self.type_name(type_oid, -1)?;
            self.put(&format!("::{name}"));
        }
        Ok(())
    }

    fn row_comparison(&mut self, node: &'t NodeStruct<'t>) -> Written {
        let operators = super::tree::oids(node, "opnos")?;
        let first = operators.first().ok_or_else(|| Unwritten::node(node))?;
        let operator = self.dictionary.operator(*first)?;
        self.put("(ROW(");
        self.top_level_list(&node.nodes("largs")?)?;
        self.put(&format!(") {operator} ROW("));
        self.top_level_list(&node.nodes("rargs")?)?;
        self.put("))");
        Ok(())
    }

    fn null_test(&mut self, node: &'t NodeStruct<'t>) -> Written {
        let arg = node.node("arg")?;
        self.open();
        self.part(arg, true, node)?;
        // Of a row these ask for all of its fields; of the value itself, where the type is composite but not the test.
        let is_row = node.boolean("argisrow")?;
        let type_oid = expr_type(&self.dictionary, arg)?;
        let base = self.catalog.base_type(type_oid, -1).0;
        let is_composite =
            base == oid::RECORD || self.catalog.type_row(base).is_some_and(|row| row.kind == b'c');
        let text = match (node.number::<u8>("nulltesttype")?, is_row || !is_composite) {
            (0, true) => " IS NULL",
            (0, false) => " IS NOT DISTINCT FROM NULL",
            (_, true) => " IS NOT NULL",
            (_, false) => " IS DISTINCT FROM NULL",
        };
        self.put(text);
        self.close();
        Ok(())
    }

    fn boolean_test(&mut self, node: &'t NodeStruct<'t>) -> Written {
        let tests = ["TRUE", "NOT TRUE", "FALSE", "NOT FALSE", "UNKNOWN", "NOT UNKNOWN"];
        let test = tests.get(node.number::<usize>("booltesttype")?);
        self.open();
        self.part(node.node("arg")?, false, node)?;
        self.put(&format!(" IS {}", test.ok_or_else(|| Unwritten::node(node))?));
        self.close();
        Ok(())
    }

    /// An argument of the function whose body this is; with its name where tables might have such a column.
    fn parameter(&mut self, node: &'t NodeStruct<'t>) -> Written {
        const OF_CALLER: i32 = 0;
        let (number, kind): (usize, i32) = (node.number("paramid")?, node.number("paramkind")?);
        let names = self.function.as_ref().filter(|_| kind == OF_CALLER);
        let name = number.checked_sub(1).and_then(|at| names?.arguments.get(at));
        let (Some(names), Some(name)) = (names, name) else {
            self.put(&format!("${number}"));
            return Ok(());
        };
        let mut text = self.dictionary.quoted(name);
        if self.namespaces.iter().any(|namespace| !namespace.items.is_empty()) {
            text = format!("{}.{text}", self.dictionary.quoted(&names.name));
        }
        self.put(&text);
        Ok(())
    }

    /// `CURRENT_DATE` and its kin.
    fn sql_value(&mut self, node: &'t NodeStruct<'t>) -> Written {
        const NAMES: [&str; 15] = [
            "CURRENT_DATE",
            "CURRENT_TIME",
            "CURRENT_TIME",
            "CURRENT_TIMESTAMP",
            "CURRENT_TIMESTAMP",
            "LOCALTIME",
            "LOCALTIME",
            "LOCALTIMESTAMP",
            "LOCALTIMESTAMP",
            "CURRENT_ROLE",
            "CURRENT_USER",
            "USER",
            "SESSION_USER",
            "CURRENT_CATALOG",
            "CURRENT_SCHEMA",
        ];
        let op: usize = node.number("op")?;
        self.put(NAMES.get(op).ok_or_else(|| Unwritten::node(node))?);
        if matches!(op, 2 | 4 | 6 | 8) {
            self.put(&format!("({})", node.number::<i32>("typmod")?));
        }
        Ok(())
    }

    fn partition_bound(&mut self, node: &'t NodeStruct<'t>) -> Written {
        if flag(node, "is_default") {
            return self.word_of("DEFAULT");
        }
        match node.character("strategy")? {
            Some(b'h') => {
                let (modulus, rest): (i32, i32) =
                    (node.number("modulus")?, node.number("remainder")?);
                self.put(&format!("FOR VALUES WITH (modulus {modulus}, remainder {rest})"));
            }
            Some(b'l') => {
                self.put("FOR VALUES IN ");
                self.bound_values(&node.nodes("listdatums")?)?;
            }
            Some(b'r') => {
                self.put("FOR VALUES FROM ");
                self.bound_values(&node.nodes("lowerdatums")?)?;
                self.put(" TO ");
                self.bound_values(&node.nodes("upperdatums")?)?;
            }
            _ => return Err(Unwritten::node(node)),
        }
        Ok(())
    }

    fn bound_values(&mut self, values: &[&'t NodeStruct<'t>]) -> Written {
        self.put("(");
        for (at, value) in values.iter().enumerate() {
            if at > 0 {
                self.put(", ");
            }
            match value.name {
                b"CONST" => self.constant_node(value, Label::Never)?,
                _ => match value.number::<i8>("kind")? {
                    -1 => self.put("MINVALUE"),
                    1 => self.put("MAXVALUE"),
                    _ => self.constant_node(value.node("value")?, Label::Never)?,
                },
            }
        }
        self.put(")");
        Ok(())
    }

    /// True for what needs no parentheses within another expression.
    fn is_simple(&self, node: &NodeStruct<'_>, parent: &NodeStruct<'_>) -> Written<bool> {
        Ok(match node.name {
            b"RELABELTYPE"
            | b"COERCEVIAIO"
            | b"ARRAYCOERCEEXPR"
            | b"COERCETODOMAIN"
            | b"CONVERTROWTYPEEXPR" => self.is_simple(node.node("arg")?, node)?,
            b"FIELDSELECT" => parent.name != b"FIELDSELECT",
            b"OPEXPR" if parent.name == b"OPEXPR" => self.binds_tighter(node, parent)?,
            b"JSONVALUEEXPR" => self.is_simple(node.node("raw_expr")?, node)?,
            b"OPEXPR" | b"SUBLINK" | b"NULLTEST" | b"BOOLEANTEST" | b"DISTINCTEXPR"
            | b"JSONISPREDICATE" => parent.name == b"BOOLEXPR" || is_list_like(parent)?,
            b"XMLEXPR" if is_document(node)? => parent.name == b"BOOLEXPR" || is_list_like(parent)?,
            b"BOOLEXPR" if parent.name == b"BOOLEXPR" => {
                let outer = word(parent, "boolop")?;
                match word(node, "boolop")? {
                    b"or" => outer == b"or",
                    _ => outer != b"not",
                }
            }
            b"BOOLEXPR" => is_list_like(parent)?,
            b"SCALARARRAYOPEXPR" | b"ROWCOMPARE" | b"ROWCOMPAREEXPR" | b"COLLATE"
            | b"COLLATEEXPR" | b"NAMEDARGEXPR" | b"CASETESTEXPR" => false,
            _ => true,
        })
    }

    /// Among the five operators of arithmetic, those of points before those of lines, and equals from the left.
    fn binds_tighter(&self, node: &NodeStruct<'_>, parent: &NodeStruct<'_>) -> Written<bool> {
        let rank = |of: &NodeStruct<'_>| -> Written<Option<u8>> {
            let operator = of.oid("opno")?;
            let name = self.dictionary.operator_row(operator).map_or("", |(name, _)| name);
            let is_plain =
                of.nodes("args")?.len() == 2 && self.dictionary.is_builtin_operator(operator);
            Ok(match name {
                "+" | "-" if is_plain => Some(0),
                "*" | "/" | "%" if is_plain => Some(1),
                _ => None,
            })
        };
        let (Some(own), Some(outer)) = (rank(node)?, rank(parent)?) else { return Ok(false) };
        let args = parent.nodes("args")?;
        Ok(own > outer || own == outer && args.first().is_some_and(|left| *left == node))
    }

    /// True for an expression that looks like a call.
    pub(super) fn looks_like_function(&self, node: &NodeStruct<'_>) -> Written<bool> {
        Ok(match node.name {
            b"FUNCEXPR" => matches!(form(node, "funcformat")?, Form::Call | Form::Syntax),
            b"XMLEXPR" => !is_document(node)?,
            b"NULLIF" | b"NULLIFEXPR" | b"COALESCE" | b"COALESCEEXPR" | b"MINMAX"
            | b"MINMAXEXPR" | b"SQLVALUEFUNCTION" | b"JSONEXPR" => true,
            _ => false,
        })
    }

    pub(super) fn constant_node(&mut self, node: &NodeStruct<'_>, label: Label) -> Written {
        self.constant(&Const::of(node)?, label)
    }

    /// The names of a list, with commas between them.
    pub(super) fn identifiers(&mut self, node: &NodeStruct<'_>, label: &str) -> Written {
        for (at, name) in texts(node, label)?.iter().enumerate() {
            if at > 0 {
                self.put(", ");
            }
            self.identifier(name);
        }
        Ok(())
    }
}

/// True where parts stand between commas or words of their own.
fn is_list_like(parent: &NodeStruct<'_>) -> Written<bool> {
    Ok(match parent.name {
        b"FUNCEXPR" => form(parent, "funcformat")? == Form::Call,
        b"XMLEXPR" => !is_document(parent)?,
        b"SUBSCRIPTINGREF" | b"ARRAY" | b"ARRAYEXPR" | b"ROW" | b"ROWEXPR" | b"COALESCE"
        | b"COALESCEEXPR" | b"MINMAX" | b"MINMAXEXPR" | b"NULLIF" | b"NULLIFEXPR" | b"AGGREF"
        | b"GROUPINGFUNC" | b"WINDOWFUNC" | b"CASE" | b"CASEEXPR" => true,
        _ => false,
    })
}
