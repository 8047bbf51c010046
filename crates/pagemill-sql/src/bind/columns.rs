//! The columns of a SELECT: `*` spelled out, and the names that expressions go by.
//!
//! Source: `FigureColnameInternal` in `src/backend/parser/parse_target.c`, PostgreSQL 18.

use sqlparser::ast::{
    AccessExpr, BinaryOperator, Expr as Syntax, Function, FunctionArg, FunctionArgExpr,
    FunctionArguments, ObjectName, ObjectNamePart, SelectItem, SelectItemQualifiedWildcardKind,
    SetExpr,
};

use super::scope::{folded, refuse_unreadable, seen_from};
use super::{Binder, BoundColumn};
use crate::error::{Result, SqlState, fail, unsupported};
use crate::forms::{FIELDS, NO_COLUMN};
use crate::functions::row_values::field_at;
use crate::typed::{RowField, Typed};

/// What an expression without an alias is called where nothing names it.
const UNNAMED: &str = "?column?";

impl Binder<'_> {
    /// The columns of a select list, as they are shown.
    pub(super) fn select_list(&mut self, items: &[SelectItem]) -> Result<Vec<BoundColumn>> {
        let mut columns = Vec::new();
        for item in items {
            match item {
                SelectItem::UnnamedExpr(syntax) if is_marked(syntax, NO_COLUMN) => {}
                SelectItem::UnnamedExpr(Syntax::Function(call))
                    if last_name(&call.name) == FIELDS =>
                {
                    columns.extend(self.all_fields(call)?);
                }
                SelectItem::UnnamedExpr(syntax) => {
                    let typed = self.selected(syntax)?;
                    let name = figured_name(syntax, self.star_name.as_deref());
                    columns.push(BoundColumn { name, typed });
                }
                SelectItem::ExprWithAlias { expr, alias } => {
                    let typed = self.selected(expr)?;
                    columns.push(BoundColumn { name: folded(alias), typed });
                }
                SelectItem::Wildcard(_) => {
                    let scope = &self.level().scope;
                    if scope.tables.is_empty() {
                        let message = "SELECT * with no tables specified is not valid";
                        return fail(SqlState::SYNTAX_ERROR, message);
                    }
                    columns.extend(scope.bare.iter().cloned());
                }
                SelectItem::QualifiedWildcard(
                    SelectItemQualifiedWildcardKind::ObjectName(name),
                    _,
                ) => {
                    columns.extend(self.columns_of(name)?);
                }
                SelectItem::QualifiedWildcard(..) => {
                    return unsupported("an expression before .*");
                }
            }
        }
        columns.iter().try_for_each(|column| refuse_unreadable(&column.typed))?;
        Ok(columns)
    }

    /// `(row).*`.
    fn all_fields(&mut self, call: &Function) -> Result<Vec<BoundColumn>> {
        let FunctionArguments::List(list) = &call.args else {
            return unsupported("an expression before .*");
        };
        let [FunctionArg::Unnamed(FunctionArgExpr::Expr(syntax))] = &list.args[..] else {
            return fail(SqlState::SYNTAX_ERROR, "syntax error at or near \".\"");
        };
        let typed = self.selected(syntax)?;
        let Some(fields) = &typed.row else { return unsupported("an expression before .*") };
        let column = |(at, field): (usize, &RowField)| BoundColumn {
            name: field.name.clone(),
            typed: field_at(&typed, at, field),
        };
        Ok(fields.iter().enumerate().map(column).collect())
    }

    /// An expression of the select list, in which functions may give rows.
    fn selected(&mut self, syntax: &Syntax) -> Result<Typed> {
        self.level().sets.may_stand = self.is_unconditional(syntax);
        let typed = self.expr(syntax);
        self.level().sets.may_stand = false;
        let mut typed = typed?;
        if !is_column(syntax) {
            typed.origin = None;
        }
        Ok(typed)
    }

    fn columns_of(&mut self, name: &ObjectName) -> Result<Vec<BoundColumn>> {
        let (table, depth) = self.table_by_star(name)?;
        let seen = |column: &BoundColumn| {
            let typed = seen_from(&column.typed, depth, self.nests)?;
            Ok(BoundColumn { name: column.name.clone(), typed })
        };
        table.columns.iter().map(seen).collect()
    }
}

/// True for a name that [`crate::forms`] gives.
pub(super) fn is_marked(syntax: &Syntax, mark: &str) -> bool {
    matches!(syntax, Syntax::Identifier(name) if name.value == mark)
}

fn is_column(syntax: &Syntax) -> bool {
    match syntax {
        Syntax::Nested(inner) => is_column(inner),
        Syntax::Identifier(_) | Syntax::CompoundIdentifier(_) => true,
        _ => false,
    }
}

/// The last part of a name with dots.
pub(super) fn last_name(name: &ObjectName) -> String {
    match name.0.last() {
        Some(ObjectNamePart::Identifier(ident)) => folded(ident),
        Some(other) => other.to_string(),
        None => String::new(),
    }
}

/// The name that the server would give a column without an alias; `star` is that of the first column of a query's `*`.
fn figured_name(syntax: &Syntax, star: Option<&str>) -> String {
    figured(syntax, star).0.unwrap_or_else(|| UNNAMED.to_owned())
}

/// The name, and whether it is a strong one, which stands before that of a cast around it.
fn figured(syntax: &Syntax, star: Option<&str>) -> (Option<String>, bool) {
    let strong = |name: &str| (Some(name.to_owned()), true);
    match syntax {
        Syntax::Identifier(ident) => (Some(folded(ident)), true),
        Syntax::CompoundIdentifier(parts) => (parts.last().map(folded), true),
        Syntax::Nested(inner) => figured(inner, star),
        Syntax::Function(Function { name, .. }) => (Some(last_name(name)), true),
        Syntax::Cast { expr, data_type, .. } => match figured(expr, star) {
            (Some(name), true) => (Some(name), true),
            _ => (Some(super::type_names::shown_name(data_type)), false),
        },
        Syntax::TypedString(typed) => {
            (Some(super::type_names::shown_name(&typed.data_type)), false)
        }
        Syntax::Interval(_) => (Some("interval".to_owned()), false),
        Syntax::Collate { expr, .. } => figured(expr, star),
        Syntax::IsNormalized { negated: false, .. } => (Some("is_normalized".to_owned()), true),
        Syntax::Case { else_result, .. } => {
            match else_result.as_deref().map(|syntax| figured(syntax, star)) {
                Some((Some(name), true)) => (Some(name), true),
                _ => (Some("case".to_owned()), false),
            }
        }
        Syntax::Extract { .. } => strong("extract"),
        Syntax::Position { .. } => strong("position"),
        Syntax::Substring { shorthand: true, .. } => strong("substr"),
        Syntax::Substring { .. } => strong("substring"),
        Syntax::Overlay { .. } => strong("overlay"),
        Syntax::Ceil { .. } => strong("ceil"),
        Syntax::Floor { .. } => strong("floor"),
        Syntax::AtTimeZone { .. } => strong("timezone"),
        Syntax::BinaryOp { op: BinaryOperator::Overlaps, .. } => strong("overlaps"),
        Syntax::Trim { trim_where, .. } => match trim_where.map(|place| place.to_string()) {
            Some(place) if place == "LEADING" => strong("ltrim"),
            Some(place) if place == "TRAILING" => strong("rtrim"),
            _ => strong("btrim"),
        },
        Syntax::Exists { negated: false, .. } => strong("exists"),
        Syntax::Array(_) => strong("array"),
        Syntax::Tuple(_) => strong("row"),
        Syntax::CompoundFieldAccess { root, access_chain } => {
            let field = access_chain.iter().rev().find_map(|part| match part {
                AccessExpr::Dot(Syntax::Identifier(name)) => Some(folded(name)),
                _ => None,
            });
            match field {
                Some(name) => (Some(name), true),
                None => figured(root, star),
            }
        }
        Syntax::Subquery(query) => match &*query.body {
            SetExpr::Select(select) => match select.projection.first() {
                Some(SelectItem::ExprWithAlias { alias, .. }) => (Some(folded(alias)), true),
                Some(SelectItem::UnnamedExpr(inner)) => figured(inner, star),
                Some(SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..)) => {
                    (star.map(str::to_owned), true)
                }
                _ => (None, false),
            },
            // The columns of VALUES are numbered.
            SetExpr::Values(_) => (Some("column1".to_owned()), true),
            _ => (None, false),
        },
        _ => (None, false),
    }
}
