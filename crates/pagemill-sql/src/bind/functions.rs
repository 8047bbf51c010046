//! Calls: functions by their names, and the forms of SQL that are functions in other words.
//!
//! Source: `ParseFuncOrColumn` in `src/backend/parser/parse_func.c`, `func_expr_common_subexpr` in `gram.y`, PostgreSQL 18.

use arrow::datatypes::DataType;
use datafusion::logical_expr::{Expr, lit};
use pagemill_format::Oid;
use pagemill_types::builtin::oid;
use sqlparser::ast::{
    BinaryOperator, CeilFloorKind, DuplicateTreatment, Expr as Syntax, Function, FunctionArg,
    FunctionArgExpr, FunctionArgumentClause, FunctionArgumentList, FunctionArguments, Ident,
    ObjectNamePart, OrderByExpr, Value,
};

use super::Binder;
use super::argument_forms::{is_local, is_variadic};
use super::defaults::FunctionName;
use super::inlining::is_inlined;
use super::ordered_sets::is_of_ordered_set;
use super::query::{boolean, sort};
use super::scope::{Allowed, at, folded};
use super::subqueries::ROWS;
use crate::catalog::{CastContext, TypeRow};
use crate::coerce::{bring, brought, constant, is_like_text, result_type};
use crate::error::{Result, SqlState, StatementError, fail, unsupported};
use crate::forms::FIELDS;
use crate::functions::aggregates::{AggregateCall, aggregate};
use crate::functions::keys;
use crate::functions::logic::records::makes_rows;
use crate::functions::row_payloads::taken_apart;
use crate::functions::row_values::field;
use crate::resolve::{self, Chosen, Pathway};
use crate::system_rows::PG_CATALOG;
use crate::typed::Typed;
use crate::types::{PgType, UNKNOWN};

/// What is refused.
const OF_OUTER_QUERY: &str = "an aggregate of an outer query's columns";

/// What stands between the parentheses of a call.
pub(super) struct CallArguments<'q> {
    pub(super) typed: Vec<Typed>,
    /// The names of the last ones, where they are given by name.
    pub(super) names: Vec<String>,
    pub(super) is_star: bool,
    pub(super) distinct: bool,
    pub(super) order_by: &'q [OrderByExpr],
}

impl CallArguments<'_> {
    fn add_name(&mut self, name: String) -> Result<()> {
        if self.names.contains(&name) {
            let message = format!("argument name \"{name}\" used more than once");
            return fail(SqlState::SYNTAX_ERROR, message);
        }
        self.names.push(name);
        Ok(())
    }

    pub(super) fn plain(typed: Vec<Typed>) -> Self {
        Self { typed, names: Vec::new(), is_star: false, distinct: false, order_by: &[] }
    }
}

/// An argument by its name, `name => value` or `name := value`.
fn named(argument: &FunctionArg) -> Option<(&Ident, &Syntax)> {
    match argument {
        FunctionArg::Named { name, arg: FunctionArgExpr::Expr(value), .. } => Some((name, value)),
        FunctionArg::ExprNamed {
            name: Syntax::Identifier(name),
            arg: FunctionArgExpr::Expr(value),
            ..
        } => Some((name, value)),
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Syntax::BinaryOp {
            left,
            op: BinaryOperator::Assignment,
            right,
        })) => match &**left {
            Syntax::Identifier(name) => Some((name, right)),
            _ => None,
        },
        _ => None,
    }
}

/// A literal alone, whose type nothing says.
fn is_untyped(arguments: &[Typed]) -> bool {
    matches!(arguments, [only] if only.literal.is_some() && only.parameter.is_none())
}

impl Binder<'_> {
    pub(super) fn function(&mut self, call: &Function) -> Result<Typed> {
        let (schema, name) = self.function_name(call)?;
        if !matches!(call.parameters, FunctionArguments::None) || call.uses_odbc_syntax {
            return fail(SqlState::SYNTAX_ERROR, format!("syntax error at {}", call.name));
        }
        if schema.is_none() && matches!(call.args, FunctionArguments::None) {
            return self.keyword(&name);
        }
        if schema.is_none()
            && let Some(now) = self.clock_call(&name, call)?
        {
            return Ok(now);
        }
        if schema.is_none()
            && let Some(constructed) = self.json_constructor(&name, call)?
        {
            return Ok(constructed);
        }
        if schema.is_none()
            && let Some(made) = self.normalized(&name, call)?
        {
            return Ok(made);
        }
        if let (None, "array" | ROWS, FunctionArguments::Subquery(query)) =
            (schema, &*name, &call.args)
        {
            return self.array_of_query(query, name == ROWS);
        }
        if name == FIELDS {
            return unsupported("an expression before .* in this place");
        }
        if let Some(fields) = self.written_fields(&Syntax::Function(call.clone()))? {
            let fields = fields.iter().map(|field| self.expr(field));
            let fields = fields.collect::<Result<Vec<Typed>>>()?;
            return self.row_of_fields(fields);
        }
        let is_aggregate = self.is_aggregate(&name);
        let before = self.level().allowed;
        let may_give_rows = self.level().sets.may_stand;
        if is_aggregate || call.over.is_some() {
            self.level().sets.may_stand = false;
        }
        if is_aggregate && call.over.is_none() {
            // Inside of an aggregate stands neither.
            // In a query within one, it may be the outer query's, as its arguments tell.
            if self.levels.len() == 1 {
                self.check_aggregate(&name)?;
            }
            self.level().allowed = Allowed::PlainIn("arguments of aggregate functions");
        }
        let around = std::mem::replace(&mut self.level().in_window_call, call.over.is_some());
        if around && call.over.is_some() {
            let message = "window function calls cannot be nested";
            return fail(SqlState::WINDOWING_ERROR, message);
        }
        self.level().in_window_call |= around;
        let arguments = self.call_arguments(call);
        self.level().in_window_call = around;
        self.level().allowed = before;
        self.level().sets.may_stand = may_give_rows;
        let arguments = arguments?;
        if schema.is_none() && name == "grouping" {
            return self.grouping(arguments.typed);
        }
        if schema.is_none() {
            let plain = arguments.typed.clone();
            if let Some(typed) = self.conditional(&name, plain)? {
                return Ok(typed);
            }
        }
        let is_plain = call.over.is_none() && call.within_group.is_empty();
        if !call.within_group.is_empty() && !arguments.names.is_empty() {
            return unsupported("arguments by name, of aggregates,");
        }
        if let Some(over) = call.over.as_ref().filter(|_| call.within_group.is_empty()) {
            return self.window_call((schema, &name), call, arguments, over);
        }
        if !call.within_group.is_empty() {
            return self.within_group((schema, &name), call, arguments);
        }
        let mut arguments = arguments;
        if schema.is_none()
            && self.is_cast_of_literal(&name, &arguments)
            && let Some(cast) = self.cast_call(&name, arguments.typed.clone())
        {
            return cast;
        }
        let catalog = self.catalog.clone();
        let chosen = self.chosen(&catalog, FunctionName { schema, name: &name }, &mut arguments);
        let chosen = match chosen {
            Ok(chosen) => chosen,
            // A name of a type, called with one argument, is a cast.
            Err(_) if schema.is_none() && is_form(&name) => {
                return unsupported(name.to_uppercase());
            }
            Err(error) => {
                if let ([row], None, true) = (&arguments.typed[..], schema, is_plain)
                    && let Some(found) = self.projected_column(row, &name)?
                {
                    return Ok(found);
                }
                return self.cast_call(&name, arguments.typed).unwrap_or(Err(error));
            }
        };
        let is_changed =
            arguments.distinct || !arguments.order_by.is_empty() || call.filter.is_some();
        if !is_changed && let Some(setting) = self.session_setting(&chosen, &arguments.typed)? {
            return Ok(setting);
        }
        if let Some(fact) = self.server_fact(chosen.function)? {
            return Ok(fact);
        }
        match chosen.function.kind {
            b'a' => self.aggregate_call(&chosen, call, arguments),
            b'w' => {
                let message = format!("window function {name} requires an OVER clause");
                fail(SqlState::WINDOWING_ERROR, message)
            }
            _ if is_changed => {
                let message = format!(
                    "DISTINCT, ORDER BY or FILTER specified, but {name} is not an aggregate function"
                );
                fail(SqlState("42809"), message)
            }
            _ if chosen.function.returns_set => self.set_call(name, &chosen, arguments),
            _ if makes_rows(&chosen.function.key) => {
                catalog.check_function(chosen.function)?;
                self.row_of_document(&chosen, arguments.typed)
            }
            _ if chosen.function.key == "pg_typeof" && is_untyped(&arguments.typed) => {
                catalog.check_function(chosen.function)?;
                let ty = PgType::new(chosen.function.result);
                constant(&self.catalog, ty, "unknown")
            }
            _ if chosen.function.key == "pg_collation_for" => {
                catalog.check_function(chosen.function)?;
                self.collation_for(&arguments.typed)
            }
            _ if is_inlined(chosen.function) => self.inlined(&chosen, arguments),
            _ if matches!(&*chosen.function.key, "now" | "statement_timestamp") => {
                catalog.check_function(chosen.function)?;
                self.now()
            }
            _ => self.call_of(&chosen, arguments.typed),
        }
    }

    /// `a(row)`, which is another way to write `(row).a` where there is no such function.
    ///
    /// Source: `ParseComplexProjection` in `src/backend/parser/parse_func.c`, PostgreSQL 14 to 18.
    fn projected_column(&self, row: &Typed, name: &str) -> Result<Option<Typed>> {
        let row = taken_apart(&self.catalog, row.clone())?;
        if row.row.is_some() { field(&row, name) } else { Ok(None) }
    }

    pub(super) fn function_name(&self, call: &Function) -> Result<(Option<Oid>, String)> {
        let mut parts = Vec::new();
        for part in &call.name.0 {
            match part {
                ObjectNamePart::Identifier(ident) => parts.push(ident),
                other => return fail(SqlState::SYNTAX_ERROR, format!("syntax error at {other}")),
            }
        }
        match parts[..] {
            [name] => Ok((None, folded(name))),
            [schema, name] if folded(schema) == "pg_catalog" => {
                Ok((Some(PG_CATALOG), folded(name)))
            }
            [schema, name] => {
                let wanted = folded(schema);
                let namespaces = self.catalog.database().namespaces()?;
                let found = namespaces.iter().find(|(_, name)| ***name == *wanted.as_bytes());
                let missing = || {
                    let message = format!("schema \"{wanted}\" does not exist");
                    at(StatementError::new(SqlState("3F000"), message), schema)
                };
                let found = *found.ok_or_else(missing)?.0;
                self.check_schema(found)?;
                Ok((Some(found), folded(name)))
            }
            _ => fail(SqlState::SYNTAX_ERROR, format!("improper qualified name: {}", call.name)),
        }
    }

    pub(super) fn is_aggregate(&self, name: &str) -> bool {
        self.catalog.functions_named(name).any(|row| row.kind == b'a')
    }

    pub(super) fn check_aggregate(&mut self, name: &str) -> Result<()> {
        match self.level().allowed {
            Allowed::Aggregates | Allowed::All => Ok(()),
            Allowed::PlainIn("arguments of aggregate functions") => {
                fail(SqlState::GROUPING_ERROR, "aggregate function calls cannot be nested")
            }
            Allowed::PlainIn(clause) => {
                let message = format!("aggregate functions are not allowed in {clause}");
                fail(SqlState::GROUPING_ERROR, message)
            }
            Allowed::Plain => {
                fail(SqlState::GROUPING_ERROR, format!("the aggregate {name} cannot stand here"))
            }
        }
    }

    pub(super) fn call_arguments<'q>(&mut self, call: &'q Function) -> Result<CallArguments<'q>> {
        let mut found = CallArguments::plain(Vec::new());
        let FunctionArguments::List(list) = &call.args else {
            return match &call.args {
                FunctionArguments::Subquery(query) => {
                    found.typed.push(self.scalar_subquery(query)?);
                    Ok(found)
                }
                _ => Ok(found),
            };
        };
        let FunctionArgumentList { duplicate_treatment, args, clauses } = list;
        found.distinct = *duplicate_treatment == Some(DuplicateTreatment::Distinct);
        for argument in args {
            if let Some((name, syntax)) = named(argument) {
                if is_variadic(name) {
                    found.typed.extend(self.spread(call, syntax)?);
                    continue;
                }
                found.typed.push(self.expr(syntax)?);
                found.add_name(folded(name))?;
                continue;
            }
            if !found.names.is_empty() {
                let message = "positional argument cannot follow named argument";
                return fail(SqlState::SYNTAX_ERROR, message);
            }
            match argument {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(syntax)) => {
                    if !self.is_place_of_result(syntax) {
                        found.typed.push(self.expr(syntax)?);
                    }
                }
                FunctionArg::Unnamed(FunctionArgExpr::Wildcard) => found.is_star = true,
                FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(table)) => {
                    found.typed.push(self.row_by_star(table)?);
                }
                _ => return unsupported("an argument of this form"),
            }
        }
        for clause in clauses {
            match clause {
                FunctionArgumentClause::OrderBy(items) => found.order_by = items,
                _ => return unsupported(format!("this form of {}", call.name)),
            }
        }
        Ok(found)
    }

    /// True for a parameter of type void: the result of a call that a driver writes as one of its arguments, which the server leaves out.
    ///
    /// Source: `ParseFuncOrColumn` in `src/backend/parser/parse_func.c`, PostgreSQL 14 to 18.
    fn is_place_of_result(&self, syntax: &Syntax) -> bool {
        let Syntax::Value(value) = syntax else { return false };
        match &value.value {
            Value::Placeholder(name) if self.body.is_none() => self.parameters.is_void(name),
            _ => false,
        }
    }

    fn cast_call(&self, name: &str, mut arguments: Vec<Typed>) -> Option<Result<Typed>> {
        if arguments.len() != 1 {
            return None;
        }
        let found = self.type_called(name)?;
        let typed = arguments.pop()?;
        // Of a row there is no function of that name.
        let kind = self.catalog.type_row(self.catalog.base_type(typed.ty.oid, -1).0);
        if typed.is_row() || kind.is_some_and(|row| row.kind == b'c') {
            return None;
        }
        let context = CastContext::Explicit;
        let way = resolve::pathway(&self.catalog, typed.ty.oid, found, context);
        if typed.ty.oid != UNKNOWN && !matches!(way, Some(Pathway::Relabel | Pathway::Text)) {
            return None;
        }
        Some(crate::coerce::coerce(&self.catalog, typed, PgType::new(found), context))
    }

    /// The type that a name without a schema means, unless that is one of rows or none of values.
    fn type_called(&self, name: &str) -> Option<Oid> {
        let types = self.catalog.types_named(name);
        let in_schema = |schema: &Oid| {
            let is_there =
                |row: &&TypeRow| row.namespace == *schema && !matches!(row.kind, b'c' | b'p');
            types.iter().filter_map(|oid| self.catalog.type_row(*oid)).find(is_there)
        };
        self.catalog.search_path().iter().find_map(in_schema).map(|row| row.oid)
    }

    /// True for the name of a type before a literal, which is a cast whatever functions there are.
    ///
    /// Source: `func_get_detail` in `src/backend/parser/parse_func.c`, PostgreSQL 18.
    fn is_cast_of_literal(&self, name: &str, arguments: &CallArguments<'_>) -> bool {
        let is_plain = !arguments.distinct && !arguments.is_star && arguments.names.is_empty();
        match &arguments.typed[..] {
            [only] if is_plain && arguments.order_by.is_empty() => {
                only.ty.oid == UNKNOWN
                    && only.literal.is_some()
                    && only.parameter.is_none()
                    && !is_form(name)
                    && self.type_called(name).is_some()
            }
            _ => false,
        }
    }

    fn aggregate_call(
        &mut self,
        chosen: &Chosen<'_>,
        call: &Function,
        arguments: CallArguments<'_>,
    ) -> Result<Typed> {
        refuse_of_outer_query(&arguments.typed)?;
        self.check_aggregate(&chosen.function.name)?;
        let expr = self.aggregate_expr(chosen, call, arguments)?;
        self.put_aside(&chosen.function.name, expr)
    }

    /// A column that stands for an aggregate.
    pub(super) fn put_aside(&mut self, name: &str, expr: Typed) -> Result<Typed> {
        let known = self.level().aggregates.iter().find(|(known, _)| *known == expr.expr);
        if let Some((_, stand_in)) = known {
            return Ok(stand_in.clone());
        }
        let only_outer = !expr.expr.column_refs().is_empty() || !contains_outer(&expr.expr);
        if !only_outer {
            return unsupported(OF_OUTER_QUERY);
        }
        let fresh = self.fresh(name);
        let stand_in = expr.with_expr(super::query::column(&fresh));
        self.level().aggregates.push((expr.expr, stand_in.clone()));
        Ok(stand_in)
    }

    /// The aggregate itself.
    pub(super) fn aggregate_expr(
        &mut self,
        chosen: &Chosen<'_>,
        call: &Function,
        arguments: CallArguments<'_>,
    ) -> Result<Typed> {
        if is_of_ordered_set(chosen) {
            let name = &chosen.function.name;
            let message = format!("WITHIN GROUP is required for ordered-set aggregate {name}");
            return fail(SqlState("42809"), message);
        }
        let before = self.level().allowed;
        self.level().allowed = Allowed::PlainIn("arguments of aggregate functions");
        let parts = self.aggregate_parts(call, &arguments, &chosen.arguments);
        self.level().allowed = before;
        let (filter, mut order_by) = parts?;
        if call.over.is_none() {
            let is_sorted = arguments.distinct || !order_by.is_empty();
            order_by = self.order_of_rows(&chosen.function.name, order_by, is_sorted)?;
        }
        let is_star = arguments.is_star;
        if !is_star && arguments.typed.is_empty() {
            let name = &chosen.function.name;
            let message =
                format!("{name}(*) must be used to call a parameterless aggregate function");
            return fail(SqlState("42809"), message);
        }
        let word = if call.over.is_some() { "function" } else { "aggregate" };
        self.catalog.check_call(chosen.function, word)?;
        let typed = brought(&self.catalog, chosen, arguments.typed)?;
        let key = match is_star {
            true if chosen.function.namespace == PG_CATALOG => {
                format!("{}()", chosen.function.name)
            }
            true => return unsupported(format!("{}(*)", chosen.function.name)),
            false => chosen.function.key.clone(),
        };
        let distinct = arguments.distinct;
        let result = result_type(&self.catalog, chosen.result, &typed)?;
        let given =
            AggregateCall { arguments: typed, distinct, filter, order_by, directs: Vec::new() };
        match aggregate(&self.catalog, &key, given, result)? {
            Some(typed) => Ok(typed),
            None => {
                let signature = crate::coerce::signature(&self.catalog, chosen.function);
                unsupported(format!("the aggregate {signature}"))
            }
        }
    }

    pub(super) fn aggregate_parts(
        &mut self,
        call: &Function,
        arguments: &CallArguments<'_>,
        taken: &[Oid],
    ) -> Result<(Option<Expr>, Vec<datafusion::logical_expr::SortExpr>)> {
        let filter = match &call.filter {
            None => None,
            Some(syntax) => {
                let typed = self.expr(syntax)?;
                Some(boolean(typed, "FILTER", &self.catalog)?.expr)
            }
        };
        let mut sorts = Vec::new();
        for item in arguments.order_by {
            let typed = self.expr(&item.expr)?;
            // The same values as another type are another expression.
            let is_it = |other: &Typed| other.expr == typed.expr && other.ty == typed.ty;
            let same = arguments.typed.iter().position(is_it);
            if arguments.distinct && same.is_none() {
                let message = "in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list";
                return fail(SqlState::INVALID_COLUMN_REFERENCE, message);
            }
            // An argument is sorted as what the aggregate takes it for: a citext as a text.
            let typed = match same.and_then(|at| taken.get(at)) {
                Some(taken) if is_like_text(&self.catalog, typed.ty.oid) => {
                    bring(&self.catalog, typed, *taken)?
                }
                _ => typed,
            };
            sorts.push(sort(keys::order_key(&self.catalog, &typed)?, item));
        }
        Ok((filter, sorts))
    }

    /// A function of `pg_catalog` by its name.
    pub(super) fn call(&mut self, name: &str, arguments: Vec<Typed>) -> Result<Typed> {
        let given: Vec<Oid> = arguments.iter().map(|typed| typed.ty.oid).collect();
        let catalog = self.catalog.clone();
        let chosen = resolve::whole_function(&catalog, Some(PG_CATALOG), name, &given)?;
        self.call_of(&chosen, arguments)
    }

    /// Forms with words between their arguments, each a function.
    pub(super) fn function_like(&mut self, syntax: &Syntax) -> Result<Typed> {
        match syntax {
            Syntax::Extract { field, expr, .. } => {
                // A field may be written as a text, with its quotes.
                let field = field.to_string();
                let field = field.trim_matches('\'').to_ascii_lowercase();
                let field = Typed::unknown(Some(field));
                let from = self.expr(expr)?;
                self.call("extract", vec![field, from])
            }
            Syntax::Ceil { expr, field } | Syntax::Floor { expr, field } => {
                let is_plain = matches!(field, CeilFloorKind::DateTimeField(f) if f.to_string() == "NONE" || f.to_string().is_empty())
                    || matches!(
                        field,
                        CeilFloorKind::DateTimeField(sqlparser::ast::DateTimeField::NoDateTime)
                    );
                if !is_plain {
                    return fail(SqlState::SYNTAX_ERROR, format!("syntax error at {syntax}"));
                }
                let name = if matches!(syntax, Syntax::Ceil { .. }) { "ceil" } else { "floor" };
                let typed = self.expr(expr)?;
                self.call(name, vec![typed])
            }
            Syntax::Position { expr, r#in } => {
                let (part, whole) = (self.expr(expr)?, self.expr(r#in)?);
                self.call("position", vec![whole, part])
            }
            Syntax::Substring { expr, substring_from, substring_for, shorthand, .. } => {
                let mut arguments = vec![self.expr(expr)?];
                match (substring_from, substring_for) {
                    (Some(from), _) => arguments.push(self.expr(from)?),
                    (None, Some(_)) => {
                        arguments.push(Typed::new(lit(1), PgType::new(oid::INT4), DataType::Int32));
                    }
                    (None, None) => {}
                }
                if let Some(count) = substring_for {
                    arguments.push(self.expr(count)?);
                }
                // They differ in the types that literals get.
                self.call(if *shorthand { "substr" } else { "substring" }, arguments)
            }
            Syntax::Trim { expr, trim_where, trim_what, trim_characters } => {
                let name = match trim_where.map(|place| place.to_string()).as_deref() {
                    Some("LEADING") => "ltrim",
                    Some("TRAILING") => "rtrim",
                    _ => "btrim",
                };
                let mut arguments = vec![self.expr(expr)?];
                if let Some(what) = trim_what {
                    arguments.push(self.expr(what)?);
                }
                for what in trim_characters.iter().flatten() {
                    arguments.push(self.expr(what)?);
                }
                self.call(name, arguments)
            }
            Syntax::Overlay { expr, overlay_what, overlay_from, overlay_for } => {
                let mut arguments =
                    vec![self.expr(expr)?, self.expr(overlay_what)?, self.expr(overlay_from)?];
                if let Some(count) = overlay_for {
                    arguments.push(self.expr(count)?);
                }
                self.call("overlay", arguments)
            }
            Syntax::AtTimeZone { timestamp, time_zone } if is_local(time_zone) => {
                self.at_local(timestamp)
            }
            Syntax::AtTimeZone { timestamp, time_zone } => {
                let (from, zone) = (self.expr(timestamp)?, self.expr(time_zone)?);
                self.call("timezone", vec![zone, from])
            }
            Syntax::Tuple(_) => {
                let fields = self.written_fields(syntax)?.unwrap_or_default(); // default: a row has some
                let fields = fields.iter().map(|field| self.expr(field));
                let fields = fields.collect::<Result<Vec<Typed>>>()?;
                self.row_of_fields(fields)
            }
            other => unsupported(format!("the expression {other}")),
        }
    }
}

/// Names that are forms of the grammar, and no functions.
///
/// Source: `func_expr_common_subexpr` in `src/backend/parser/gram.y`, PostgreSQL 18.
fn is_form(name: &str) -> bool {
    const JSON: [&str; 8] = [
        "json_array",
        "json_exists",
        "json_object",
        "json_query",
        "json_scalar",
        "json_serialize",
        "json_table",
        "json_value",
    ];
    const OTHERS: [&str; 11] = [
        "grouping",
        "json",
        "json_arrayagg",
        "json_objectagg",
        "merge_action",
        "normalize",
        "xmlconcat",
        "xmlelement",
        "xmlforest",
        "xmlparse",
        "xmlserialize",
    ];
    JSON.contains(&name) || OTHERS.contains(&name)
}

/// An aggregate is of the query whose columns it is told, which is none around.
pub(super) fn refuse_of_outer_query(values: &[Typed]) -> Result<()> {
    let is_own = values.iter().any(|value| !value.expr.column_refs().is_empty());
    match !is_own && values.iter().any(|value| contains_outer(&value.expr)) {
        true => unsupported(OF_OUTER_QUERY),
        false => Ok(()),
    }
}

pub(super) fn contains_outer(expr: &Expr) -> bool {
    use datafusion::common::tree_node::TreeNode as _;
    expr.exists(|inner| Ok(matches!(inner, Expr::OuterReferenceColumn(..)))).unwrap_or(true)
}
