//! Functions that give rows: in FROM, where they may refer to what stands before them, and in the select list.
//!
//! Source: `addRangeTableEntryForFunction` in `src/backend/parser/parse_relation.c`, `transformRangeFunction` in `parse_clause.c`,
//! `check_srf_call_placement` in `parse_func.c`, PostgreSQL 18.

use std::ops::ControlFlow;

use datafusion::common::tree_node::TreeNode as _;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use pagemill_format::Oid;
use pagemill_types::builtin::oid;
use sqlparser::ast::{
    AccessExpr, BinaryOperator, Expr as Syntax, Function, FunctionArg, FunctionArgExpr,
    FunctionArgumentList, FunctionArguments, Ident, ObjectName, Subscript, TableAlias, TableFactor,
};

use super::defaults::FunctionName;
use super::functions::CallArguments;
use super::inlining::is_inlined;
use super::query::rename;
use super::scope::{Allowed, Level, Scope, folded};
use super::session_settings::ALL_SETTINGS;
use super::{Binder, BoundColumn};
use crate::catalog::{CastContext, FunctionRow, SQL_LANGUAGE};
use crate::coerce::{brought, coerce, result_type, signature};
use crate::error::{Result, SqlState, fail, unsupported};
use crate::expand::Expansion;
use crate::functions::keys;
use crate::functions::logic::records::makes_rows;
use crate::functions::row_values::row;
use crate::functions::sets::of_server::ACTIVITY;
use crate::functions::sets::{Asked, ONE_ROW, SetCall, SetColumn, find, with_fields};
use crate::json_spelling::JSON_TABLE;
use crate::resolve::Chosen;
use crate::spelling::ROWS_FROM;
use crate::typed::{RowField, Typed};
use crate::types::{PgType, UNKNOWN};

/// What the server calls the arguments of such functions in FROM.
const FUNCTIONS_IN_FROM: &str = "functions in FROM";

/// One function and what it is called with.
#[derive(Debug, Clone)]
pub(super) struct BoundCall {
    name: String,
    /// What its one column is called, whatever the item is.
    output: Option<String>,
    call: SetCall,
    pub(super) arguments: Vec<Typed>,
    /// The type of the rows, where they are of one.
    row_type: Option<Oid>,
}

impl BoundCall {
    pub(super) fn new(name: String, call: SetCall, arguments: Vec<Typed>) -> Self {
        Self { name, output: None, call, arguments, row_type: None }
    }

    pub(super) fn of_rows(self, row_type: Oid) -> Self {
        Self { row_type: Some(row_type), ..self }
    }

    /// True where both give the same rows.
    fn is_same(&self, other: &Self) -> bool {
        let exprs = |call: &Self| call.arguments.iter().map(|a| a.expr.clone()).collect::<Vec<_>>();
        self.call == other.call && exprs(self) == exprs(other)
    }
}

/// Functions as an item of FROM.
pub(super) struct FromFunctions {
    pub(super) expansion: Expansion,
    pub(super) arguments: Vec<Typed>,
    /// The name and columns of the item.
    pub(super) scope: Scope,
}

/// Functions of a select list, in step.
#[derive(Debug, Clone, Default)]
pub(super) struct SelectSets {
    /// Each with the columns that stand for it.
    calls: Vec<(BoundCall, Vec<Typed>)>,
    /// True where one of them stands for a function in SQL, whose rows end with its own.
    has_inlined: bool,
    /// The number of a row among those of the calls, where a function in SQL numbers them.
    number: Option<Typed>,
    /// True while an expression is bound in which such a function may stand.
    pub(super) may_stand: bool,
}

impl SelectSets {
    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// What stands for the rows of the calls.
    pub(super) fn columns(&self) -> impl Iterator<Item = &Typed> {
        self.calls.iter().flat_map(|(_, columns)| columns)
    }

    pub(super) fn has_stand_in(&self, expr: &Expr) -> bool {
        let columns = self.calls.iter().flat_map(|(_, columns)| columns);
        columns.chain(&self.number).any(|column| column.expr == *expr)
    }

    /// The columns of a call, which is added unless the same one is there.
    pub(super) fn put(&mut self, call: BoundCall, columns: Vec<Typed>) -> Vec<Typed> {
        let known = self.calls.iter().find(|(known, _)| known.is_same(&call));
        if let Some((_, columns)) = known {
            return columns.clone();
        }
        self.calls.push((call, columns.clone()));
        columns
    }

    /// The same for what a function in SQL is made of; the number of the row last, where it is asked for.
    ///
    /// # Errors
    /// Beside another function: which of them ends first is not followed.
    pub(super) fn put_inlined(
        &mut self,
        call: BoundCall,
        columns: Vec<Typed>,
        number: Option<Typed>,
    ) -> Result<Vec<Typed>> {
        self.has_inlined = true;
        let mut columns = self.put(call, columns);
        self.check()?;
        if let Some(number) = number {
            columns.push(self.number.get_or_insert(number).clone());
        }
        Ok(columns)
    }

    fn check(&self) -> Result<()> {
        match self.has_inlined && self.calls.len() > 1 {
            true => unsupported("a function in SQL that gives rows beside another"),
            false => Ok(()),
        }
    }

    /// The expressions that the functions are called with.
    pub(super) fn arguments(&mut self) -> impl Iterator<Item = &mut Typed> {
        self.calls.iter_mut().flat_map(|(call, _)| &mut call.arguments)
    }
}

impl Binder<'_> {
    /// An item of FROM that is a function, or several; `before` is what it may refer to.
    pub(super) fn functions_of_item(
        &mut self,
        factor: &TableFactor,
        before: Scope,
    ) -> Result<FromFunctions> {
        let (call, alias, with_ordinality) = from_call(factor)?;
        let allowed = Allowed::PlainIn(FUNCTIONS_IN_FROM);
        self.levels.push(Level { scope: before, allowed, ..Level::default() });
        let is_table = super::columns::last_name(&call.name) == JSON_TABLE;
        if is_table && with_ordinality {
            return fail(SqlState::SYNTAX_ERROR, "syntax error at or near \"WITH\"");
        }
        let calls = match is_table {
            true => self.json_table(&call).map(|call| (vec![call], false)),
            false => self.calls_of_item(&call, alias),
        };
        self.levels.pop();
        let (calls, is_of_document) = calls?;
        let is_defined = |alias: &TableAlias| alias.columns.iter().any(|c| c.data_type.is_some());
        if !is_of_document && alias.is_some_and(is_defined) {
            return self.refuse_definitions(&calls);
        }
        let given = alias.map_or(0, |alias| alias.columns.len());
        let has = calls.first().map_or(0, |call| call.call.columns.len());
        if is_table && given > has {
            let message = format!(
                "JSON_TABLE function has {has} columns available but {given} columns specified"
            );
            return fail(SqlState::INVALID_COLUMN_REFERENCE, message);
        }
        let mut item = self.as_item(calls, alias, with_ordinality)?;
        // A row of a table is no value, whatever its columns.
        item.scope.tables.iter_mut().for_each(|table| table.is_value &= !is_table);
        Ok(item)
    }

    /// A list of column definitions, where the function says what its columns are.
    fn refuse_definitions<T>(&self, calls: &[BoundCall]) -> Result<T> {
        const ONLY: &str =
            "a column definition list is only allowed for functions returning \"record\"";
        const OUTPUTS: &str =
            "a column definition list is redundant for a function with OUT parameters";
        let [call] = calls else { return unsupported("a list of column definitions in FROM") };
        let mut known = self.catalog.functions_named(&call.name);
        match call.call.columns.len() {
            1 => fail(SqlState::SYNTAX_ERROR, ONLY),
            _ if known.all(|row| row.result == oid::RECORD) => {
                fail(SqlState::SYNTAX_ERROR, OUTPUTS)
            }
            _ => unsupported("a list of column definitions in FROM"),
        }
    }

    /// The calls, and whether they make rows of documents.
    fn calls_of_item(
        &mut self,
        call: &Function,
        alias: Option<&TableAlias>,
    ) -> Result<(Vec<BoundCall>, bool)> {
        match self.document_in_from(call, alias)? {
            Some(of_document) => Ok((vec![of_document], true)),
            None => self.calls_in_from(call).map(|calls| (calls, false)),
        }
    }

    fn calls_in_from(&mut self, call: &Function) -> Result<Vec<BoundCall>> {
        let (schema, name) = self.function_name(call)?;
        let FunctionArguments::List(list) = &call.args else {
            return fail(SqlState::SYNTAX_ERROR, format!("syntax error at {}", call.name));
        };
        if name == ROWS_FROM {
            let of = |argument: &FunctionArg| match argument {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(Syntax::Function(call))) => {
                    self.calls_in_from(call)
                }
                _ => unsupported("what is no function in ROWS FROM"),
            };
            let calls = list.args.iter().map(of).collect::<Result<Vec<_>>>()?;
            return Ok(calls.into_iter().flatten().collect());
        }
        // Several arrays are as many calls.
        if schema.is_none() && name == "unnest" && list.args.len() > 1 {
            let one = |argument: &FunctionArg| {
                let mut one = call.clone();
                if let FunctionArguments::List(list) = &mut one.args {
                    list.args = vec![argument.clone()];
                }
                self.call_in_from(&one)
            };
            return list.args.iter().map(one).collect();
        }
        Ok(vec![self.call_in_from(call)?])
    }

    fn call_in_from(&mut self, call: &Function) -> Result<BoundCall> {
        let (schema, name) = self.function_name(call)?;
        // One row of several columns is as good as several rows.
        let gives_columns = |row: &FunctionRow| row.returns_set || row.result == oid::RECORD;
        if self.catalog.functions_named(&name).any(gives_columns) {
            let mut arguments = self.call_arguments(call)?;
            let catalog = self.catalog.clone();
            let chosen =
                self.chosen(&catalog, FunctionName { schema, name: &name }, &mut arguments)?;
            if gives_columns(chosen.function) {
                catalog.check_function(chosen.function)?;
                let call = self.bound_call(name, &chosen, arguments)?;
                return Ok(BoundCall { call: with_fields(call.call)?, ..call });
            }
        }
        let mut typed = self.function(call)?;
        if typed.ty.oid == UNKNOWN {
            typed = coerce(&self.catalog, typed, PgType::new(oid::TEXT), CastContext::Implicit)?;
        }
        let row = self.catalog.type_row(typed.ty.oid);
        if row.is_none_or(|row| matches!(row.kind, b'c' | b'p')) {
            return unsupported(format!("a row of the function {name} in FROM"));
        }
        let (catalog, result) = (&self.catalog, typed.ty);
        let asked = Asked { catalog, key: ONE_ROW, arguments: vec![typed], result };
        match find(asked)? {
            Some((call, arguments)) => {
                let output = self.one_output(&name)?;
                Ok(BoundCall { output, ..BoundCall::new(name, call, arguments) })
            }
            None => unsupported(format!("the function {name} in FROM")),
        }
    }

    /// What a function in SQL calls the one value that it gives, if it has a name for it.
    ///
    /// Source: `get_func_result_name` in `src/backend/utils/fmgr/funcapi.c`, PostgreSQL 18.
    fn one_output(&self, name: &str) -> Result<Option<String>> {
        let mut outputs = Vec::new();
        for row in self.catalog.functions_named(name).filter(|row| row.language == SQL_LANGUAGE) {
            if let [(output, _)] = &self.catalog.sql_function(row.oid)?.columns[..] {
                outputs.extend((!output.is_empty()).then(|| output.clone()));
            }
        }
        match (outputs.pop(), self.catalog.functions_named(name).count()) {
            (Some(_), 2..) => {
                unsupported(format!("one of several functions {name} in FROM, with a named output"))
            }
            (output, _) => Ok(output),
        }
    }

    fn bound_call(
        &mut self,
        name: String,
        chosen: &Chosen<'_>,
        arguments: CallArguments<'_>,
    ) -> Result<BoundCall> {
        if arguments.distinct || arguments.is_star || !arguments.order_by.is_empty() {
            let message = format!(
                "DISTINCT, ORDER BY or FILTER specified, but {name} is not an aggregate function"
            );
            return fail(SqlState("42809"), message);
        }
        if makes_rows(&chosen.function.key) {
            return self.rows_of_document(name, chosen, arguments.typed);
        }
        // An array of unknown elements has no type.
        if matches!(
            &*chosen.function.key,
            "array_unnest" | "generate_subscripts" | "generate_subscripts_nodir"
        ) && arguments.typed.first().is_some_and(|typed| typed.ty.oid == UNKNOWN)
        {
            let message = "could not determine polymorphic type because input has type unknown";
            return fail(SqlState::DATATYPE_MISMATCH, message);
        }
        let mut arguments = brought(&self.catalog, chosen, arguments.typed)?;
        if chosen.function.key == ALL_SETTINGS {
            arguments.push(self.settings_argument()?);
        }
        let result = result_type(&self.catalog, chosen.result, &arguments)?;
        let (catalog, key) = (&self.catalog, chosen.function.key.as_str());
        match find(Asked { catalog, key, arguments, result })? {
            Some((mut call, arguments)) => {
                if &*call.key == ACTIVITY {
                    call.sessions = Some(self.sessions()?);
                }
                Ok(BoundCall::new(name, call, arguments))
            }
            None => unsupported(format!("function {}", signature(&self.catalog, chosen.function))),
        }
    }

    fn as_item(
        &mut self,
        calls: Vec<BoundCall>,
        alias: Option<&TableAlias>,
        with_ordinality: bool,
    ) -> Result<FromFunctions> {
        let own = calls.first().map_or_else(String::new, |call| call.name.clone());
        let shown = alias.map_or(own, |alias| folded(&alias.name));
        let is_one = calls.len() == 1;
        let mut columns = Vec::new();
        for call in &calls {
            for column in call.call.columns.iter() {
                let name = match column.name.as_deref().or(call.output.as_deref()) {
                    Some(name) => name,
                    None if is_one => shown.as_str(),
                    None => call.name.as_str(),
                };
                columns.push(self.made_column(name, column.ty, column.carrier.clone()));
            }
        }
        if with_ordinality {
            let ty = PgType::new(oid::INT8);
            columns.push(self.made_column("ordinality", ty, arrow::datatypes::DataType::Int64));
        }
        let mut names: Vec<String> = columns.iter().map(column_name).collect();
        let ordinality = if with_ordinality { names.pop() } else { None };
        let names_count = names.len();
        if let Some(alias) = alias {
            rename(&mut columns, alias, "table")?;
        }
        let (calls, arguments) = apart(calls);
        let expansion = Expansion { calls, names, ordinality, keeps_all: false };
        let is_value = names_count == 1 && !with_ordinality;
        let mut scope = Scope::of_table(shown, columns);
        scope.tables.iter_mut().for_each(|table| table.is_value = is_value);
        Ok(FromFunctions { expansion, arguments, scope })
    }

    pub(super) fn made_column(
        &mut self,
        name: &str,
        ty: PgType,
        carrier: arrow::datatypes::DataType,
    ) -> BoundColumn {
        let expr = super::query::column(&self.fresh(name));
        BoundColumn { name: name.to_owned(), typed: Typed::new(expr, ty, carrier) }
    }

    /// The rows of a plan, each with what the functions give for it.
    pub(super) fn expanded(
        &mut self,
        plan: LogicalPlan,
        expansion: Expansion,
        arguments: Vec<Typed>,
    ) -> Result<LogicalPlan> {
        let (mut below, mut exprs) = (Vec::new(), Vec::new());
        for argument in arguments {
            // Queries are computed where the engine knows them.
            let has_query = argument.expr.exists(|inner| Ok(is_query(inner)))?;
            match has_query {
                true => {
                    // NULL where the query has no rows, whatever it is made of.
                    let value = keys::unchanged(&self.catalog, &argument);
                    let (expr, typed) = self.named(&argument.with_expr(value), "argument");
                    below.push(expr);
                    exprs.push(typed.expr);
                }
                false => exprs.push(argument.expr),
            }
        }
        let plan = match below.is_empty() {
            true => plan,
            false => {
                let columns = plan.schema().columns().into_iter().map(Expr::Column);
                let columns: Vec<Expr> = columns.chain(below).collect();
                LogicalPlanBuilder::from(plan).project(columns)?.build()?
            }
        };
        Ok(expansion.over(plan, exprs)?)
    }

    /// A function that gives rows in an expression: a column that stands for it, in a select list.
    pub(super) fn set_call(
        &mut self,
        name: String,
        chosen: &Chosen<'_>,
        arguments: CallArguments<'_>,
    ) -> Result<Typed> {
        if !self.level().sets.may_stand {
            if let Allowed::PlainIn(clause) = self.level().allowed
                && clause != "GROUP BY"
            {
                if clause == FUNCTIONS_IN_FROM {
                    let message = "set-returning functions must appear at top level of FROM";
                    return fail(SqlState::FEATURE_NOT_SUPPORTED, message);
                }
                let message = match clause {
                    "arguments of aggregate functions" => {
                        "aggregate function calls cannot contain set-returning function calls"
                            .to_owned()
                    }
                    clause => format!("set-returning functions are not allowed in {clause}"),
                };
                return fail(SqlState::FEATURE_NOT_SUPPORTED, message);
            }
            return unsupported(format!("the function {name}, which gives rows, in this place"));
        }
        self.catalog.check_function(chosen.function)?;
        if is_inlined(chosen.function) {
            return self.inlined_set(chosen, arguments);
        }
        let call = self.bound_call(name, chosen, arguments)?;
        self.refuse_rows_of_rows(&call)?;
        let of_call: Vec<SetColumn> = call.call.columns.to_vec();
        let columns = of_call.iter().map(|column| {
            let name = column.name.as_deref().unwrap_or(&call.name);
            self.made_column(name, column.ty, column.carrier.clone()).typed
        });
        let columns = columns.collect();
        let row_type = call.row_type;
        let columns = self.level().sets.put(call, columns);
        self.level().sets.check()?;
        // One column is the value itself, whether it has a name or not.
        if let ([column], None) = (&columns[..], row_type) {
            return Ok(column.clone());
        }
        let field = |(of_call, column): (&SetColumn, Typed)| {
            let name = of_call.name.as_deref().unwrap_or_default().to_owned();
            (RowField::of(name, &column), column.expr)
        };
        Ok(row(row_type.unwrap_or(oid::RECORD), of_call.iter().zip(columns).map(field).collect()))
    }

    pub(super) fn refuse_rows_of_rows(&mut self, call: &BoundCall) -> Result<()> {
        let sets = &self.level().sets;
        for argument in &call.arguments {
            if argument.expr.exists(|inner| Ok(sets.has_stand_in(inner)))? {
                return unsupported("a function that gives rows of rows of another");
            }
        }
        Ok(())
    }

    /// The rows with what the functions of the select list give for each, and the number of the row among them.
    pub(super) fn with_sets(&mut self, plan: LogicalPlan) -> Result<(LogicalPlan, Option<Typed>)> {
        let sets = std::mem::take(&mut self.level().sets);
        if sets.is_empty() {
            return Ok((plan, None));
        }
        let columns = sets.calls.iter().flat_map(|(_, columns)| columns);
        let names = columns.map(|column| plain_name(&column.expr)).collect();
        let number = match sets.number {
            Some(number) => number,
            None => {
                let ty = PgType::new(oid::INT8);
                self.made_column("number", ty, arrow::datatypes::DataType::Int64).typed
            }
        };
        let ordinality = Some(plain_name(&number.expr));
        let (calls, arguments) = apart(sets.calls.into_iter().map(|(call, _)| call).collect());
        let expansion = Expansion { calls, names, ordinality, keeps_all: false };
        Ok((self.expanded(plan, expansion, arguments)?, Some(number)))
    }
}

fn apart(calls: Vec<BoundCall>) -> (Vec<SetCall>, Vec<Typed>) {
    let (calls, arguments): (Vec<_>, Vec<_>) =
        calls.into_iter().map(|call| (call.call, call.arguments)).unzip();
    (calls, arguments.into_iter().flatten().collect())
}

fn column_name(column: &BoundColumn) -> String {
    plain_name(&column.typed.expr)
}

fn plain_name(expr: &Expr) -> String {
    match expr {
        Expr::Column(column) => column.name().to_owned(),
        other => unreachable!("{other} is no column"),
    }
}

pub(super) fn is_query(expr: &Expr) -> bool {
    matches!(expr, Expr::ScalarSubquery(_) | Expr::InSubquery(_) | Expr::Exists(_))
}

/// True for an item that is a function.
pub(super) fn is_function(factor: &TableFactor) -> bool {
    matches!(
        factor,
        TableFactor::Table { args: Some(_), .. }
            | TableFactor::Function { .. }
            | TableFactor::UNNEST { .. }
    )
}

/// An item of FROM as a call, its alias, and whether rows are numbered.
pub(super) fn from_call(factor: &TableFactor) -> Result<(Function, Option<&TableAlias>, bool)> {
    let call = |name: &ObjectName, args: Vec<FunctionArg>| Function {
        name: name.clone(),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args,
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    };
    match factor {
        TableFactor::Table { sample: Some(_), .. } => unsupported("TABLESAMPLE"),
        TableFactor::Table { name, alias, args: Some(args), with_ordinality, .. }
            if args.settings.is_none() =>
        {
            Ok((call(name, args.args.clone()), alias.as_ref(), *with_ordinality))
        }
        TableFactor::Function { name, args, alias, .. } => {
            Ok((call(name, args.clone()), alias.as_ref(), false))
        }
        TableFactor::UNNEST { alias, array_exprs, with_offset: false, with_ordinality, .. } => {
            let argument =
                |expr: &Syntax| FunctionArg::Unnamed(FunctionArgExpr::Expr(expr.clone()));
            let arguments = array_exprs.iter().map(argument).collect();
            let name = ObjectName::from(vec![Ident::new("unnest")]);
            Ok((call(&name, arguments), alias.as_ref(), *with_ordinality))
        }
        _ => fail(SqlState::SYNTAX_ERROR, "syntax error in FROM"),
    }
}

impl Binder<'_> {
    /// True for expressions in which functions that give rows are computed for every row, so that they may stand there.
    pub(super) fn is_unconditional(&self, syntax: &Syntax) -> bool {
        match syntax {
            Syntax::Nested(inner)
            | Syntax::UnaryOp { expr: inner, .. }
            | Syntax::Cast { expr: inner, .. } => self.is_unconditional(inner),
            Syntax::CompoundFieldAccess { root, access_chain } => {
                let is_plain = |part: &AccessExpr| match part {
                    AccessExpr::Dot(_) => true,
                    AccessExpr::Subscript(subscript) => !self.has_rows_in(subscript),
                };
                self.is_unconditional(root) && access_chain.iter().all(is_plain)
            }
            Syntax::BinaryOp { left, op, right } => {
                !matches!(op, BinaryOperator::And | BinaryOperator::Or)
                    && self.is_unconditional(left)
                    && self.is_unconditional(right)
            }
            Syntax::Function(call) => self.is_unconditional_call(call),
            Syntax::Value(_)
            | Syntax::TypedString(_)
            | Syntax::Identifier(_)
            | Syntax::CompoundIdentifier(_) => true,
            other => !self.has_rows(other),
        }
    }

    fn is_unconditional_call(&self, call: &Function) -> bool {
        const CONDITIONAL: [&str; 4] = ["coalesce", "greatest", "least", "nullif"];
        let FunctionArguments::List(list) = &call.args else { return true };
        let is_conditional = CONDITIONAL.contains(&super::columns::last_name(&call.name).as_str());
        let argument = |argument: &FunctionArg| match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(syntax)) if is_conditional => {
                !self.has_rows(syntax)
            }
            FunctionArg::Unnamed(FunctionArgExpr::Expr(syntax)) => self.is_unconditional(syntax),
            _ => true,
        };
        list.args.iter().all(argument)
    }

    fn has_rows_in(&self, subscript: &Subscript) -> bool {
        let bounds = match subscript {
            Subscript::Index { index } => vec![index],
            Subscript::Slice { lower_bound, upper_bound, stride } => {
                [lower_bound, upper_bound, stride].into_iter().flatten().collect()
            }
        };
        bounds.into_iter().any(|bound| self.has_rows(bound))
    }

    /// True where a function that gives rows is called, however deep.
    pub(super) fn has_rows(&self, syntax: &Syntax) -> bool {
        let gives_rows = |inner: &Syntax| match inner {
            Syntax::Function(call) => {
                let name = super::columns::last_name(&call.name);
                self.catalog.functions_named(&name).any(|row| row.returns_set)
            }
            _ => false,
        };
        let found = sqlparser::ast::visit_expressions(syntax, |inner| match gives_rows(inner) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        });
        found.is_break()
    }
}
