//! The functions that write definitions out: `pg_get_expr` and its kin.
//!
//! Invariant: what has no text is refused by name, never left out.
//!
//! Source: `src/backend/utils/adt/ruleutils.c`, PostgreSQL 14 to 18.

use std::cell::OnceCell;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{Int16Type, Int32Type, UInt32Type};
use pagemill_format::Oid;
use pagemill_format::node_tree::Node;

use super::keys::{payloads, strings};
use super::rows::{Made, Outcome};
use super::system::{relation_numbers, statement_error};
use super::{Implementation, KernelCall};
use crate::definitions::{
    ConstraintWriter, FunctionStatements, FunctionWriter, IndexWriter, PartitionWriter, Style,
    Unwritten, Updatability, Writer, indexes, partition_keys, rule, rules, statistics,
    statistics_columns, statistics_object, trigger, triggers, view, view_rules,
};
use crate::error::{SqlState, StatementError};

pub(super) fn find(key: &str) -> Option<Implementation> {
    Some(Implementation::Kernel(match key {
        "pg_get_expr" | "pg_get_expr_ext" => expressions,
        "pg_get_constraintdef" | "pg_get_constraintdef_ext" => constraints,
        "pg_get_indexdef" | "pg_get_indexdef_ext" => index_definitions,
        "pg_get_partkeydef" => partitioned,
        "pg_get_partition_constraintdef" => partition_conditions,
        "pg_get_viewdef" | "pg_get_viewdef_ext" | "pg_get_viewdef_wrap" => views,
        "pg_get_viewdef_name" | "pg_get_viewdef_name_ext" => views_by_name,
        "pg_get_ruledef" | "pg_get_ruledef_ext" => all_rules,
        "pg_get_triggerdef" | "pg_get_triggerdef_ext" => all_triggers,
        "pg_get_statisticsobjdef" => all_statistics,
        "pg_get_statisticsobjdef_columns" => columns_of_statistics,
        "pg_get_function_arguments" => arguments_with_defaults,
        "pg_get_function_identity_arguments" => identifying_arguments,
        "pg_get_function_arg_default" => defaults_of_arguments,
        "pg_get_function_result" => results,
        "pg_get_function_sqlbody" => bodies,
        "pg_get_functiondef" => whole_functions,
        "pg_relation_is_updatable" => changeable_relations,
        "pg_column_is_updatable" => changeable_columns,
        _ => return None,
    }))
}

/// A text for each OID of the first argument.
fn each<E: Into<StatementError>>(
    arguments: &[ArrayRef],
    write: impl Fn(Oid, usize) -> Result<Option<String>, E>,
) -> Outcome<ArrayRef> {
    let is_null = |row: usize| arguments.iter().any(|argument| argument.is_null(row));
    let one = |(row, number): (usize, Option<u32>)| match number.filter(|_| !is_null(row)) {
        None => Ok(None),
        Some(number) => write(Oid(number), row).map_err(Into::into),
    };
    let numbers = arguments[0].as_primitive::<UInt32Type>();
    Made::column(numbers.iter().enumerate().map(one).collect::<Outcome<Vec<Option<String>>>>()?)
}

/// Whether the text is to be pretty, where an argument says so.
fn style(arguments: &[ArrayRef], place: usize, row: usize) -> Style {
    let asked = arguments.get(place).and_then(|argument| argument.as_boolean_opt());
    Style::new(asked.is_some_and(|asked| asked.is_valid(row) && asked.value(row)))
}

/// A writer of each style, made when a row first asks for it: that reads catalogs.
struct Writers<T, F> {
    made: [OnceCell<T>; 2],
    make: F,
}

impl<T, F: Fn(Style) -> crate::Result<T>> Writers<T, F> {
    fn new(make: F) -> Self {
        Self { made: [OnceCell::new(), OnceCell::new()], make }
    }

    fn of(&self, style: Style) -> Outcome<&T> {
        let cell = &self.made[usize::from(style.is_pretty)];
        match cell.get() {
            Some(writer) => Ok(writer),
            None => {
                let made = (self.make)(style).map_err(statement_error)?;
                Ok(cell.get_or_init(|| made))
            }
        }
    }
}

fn expressions(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let dictionary = call.catalog.dictionary().map_err(statement_error)?;
    let trees = payloads(&arguments[0]);
    let relations = arguments[1].as_primitive::<UInt32Type>();
    let one = |row: usize| -> Outcome<Option<String>> {
        if arguments.iter().any(|argument| argument.is_null(row)) {
            return Ok(None);
        }
        let relation = Oid(relations.value(row));
        if relation != Oid(0) && !dictionary.has_relation(relation) {
            return Ok(None);
        }
        let parsed = Node::parse(trees.value(row)).map_err(Unwritten::from)?;
        let mut writer = Writer::new(&call.catalog, &dictionary, style(arguments, 2, row));
        Ok(Some(writer.tree(&parsed, relation)?))
    };
    Made::column((0..trees.len()).map(one).collect::<Outcome<Vec<Option<String>>>>()?)
}

fn constraints(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let writers = Writers::new(|style| ConstraintWriter::new(&call.catalog, style));
    each(arguments, |oid, row| -> Outcome<Option<String>> {
        Ok(writers.of(style(arguments, 1, row))?.definition(oid)?)
    })
}

fn index_definitions(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let indexes = indexes(&call.catalog).map_err(statement_error)?;
    let writers = Writers::new(|style| IndexWriter::new(&call.catalog, style));
    each(arguments, |oid, row| -> Outcome<Option<String>> {
        let Some(index) = indexes.get(&oid) else { return Ok(None) };
        let writer = writers.of(style(arguments, 2, row))?;
        let column = arguments.get(1).map_or(0, |c| c.as_primitive::<Int32Type>().value(row));
        match column {
            0 => Ok(Some(writer.definition(index)?)),
            // A number that no column has gives an empty text.
            number => {
                let place = number.checked_sub(1).and_then(|place| usize::try_from(place).ok());
                let place = place.unwrap_or(usize::MAX);
                Ok(Some(writer.column(index, place)?))
            }
        }
    })
}

fn partitioned(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let keys = partition_keys(&call.catalog).map_err(statement_error)?;
    let writer = IndexWriter::new(&call.catalog, Style::new(false)).map_err(statement_error)?;
    each(arguments, |oid, _| {
        let found = keys.get(&oid);
        found.map(|(strategy, keys)| writer.partition_key(*strategy, keys)).transpose()
    })
}

fn partition_conditions(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let writer = PartitionWriter::new(&call.catalog).map_err(statement_error)?;
    each(arguments, |oid, _| writer.condition(oid))
}

/// The same of relations that are named, which are no numbers then.
fn views_by_name(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let is_number = |name: &str| name.bytes().all(|byte| byte.is_ascii_digit());
    if strings(&arguments[0]).iter().flatten().any(is_number) {
        return Err(StatementError::unsupported("a view whose name is a number"));
    }
    let numbers: ArrayRef = Arc::new(relation_numbers(call, &arguments[0])?);
    views(call, &[&[numbers], &arguments[1..]].concat())
}

fn views(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let rules = view_rules(&call.catalog).map_err(statement_error)?;
    each(arguments, |oid, row| {
        let style = match arguments.get(1).and_then(|wrap| wrap.as_primitive_opt::<Int32Type>()) {
            Some(wrap) => Style { wrap: wrap.value(row), ..Style::new(true) },
            None => style(arguments, 1, row),
        };
        let written = rules.get(&oid).map(|rule| view(&call.catalog, rule, style)).transpose()?;
        Ok::<_, Unwritten>(written.map(|text| text + ";"))
    })
}

fn all_rules(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let rules = rules(&call.catalog).map_err(statement_error)?;
    each(arguments, |oid, row| {
        let style = style(arguments, 1, row);
        rules.get(&oid).map(|of| rule(&call.catalog, of, style)).transpose()
    })
}

fn all_triggers(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let triggers = triggers(&call.catalog).map_err(statement_error)?;
    each(arguments, |oid, row| {
        let style = style(arguments, 1, row);
        triggers.get(&oid).map(|of| trigger(&call.catalog, of, style)).transpose()
    })
}

fn all_statistics(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let objects = statistics(&call.catalog).map_err(statement_error)?;
    each(arguments, |oid, _| {
        objects.get(&oid).map(|of| statistics_object(&call.catalog, of)).transpose()
    })
}

fn columns_of_statistics(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let objects = statistics(&call.catalog).map_err(statement_error)?;
    each(arguments, |oid, _| {
        let columns = objects.get(&oid).map(|of| statistics_columns(&call.catalog, of));
        Ok::<_, Unwritten>(columns.transpose()?.map(|columns| columns.join(", ")))
    })
}

fn arguments_with_defaults(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let writer = FunctionWriter::new(&call.catalog).map_err(statement_error)?;
    each(arguments, |oid, _| writer.arguments(oid, true))
}

fn identifying_arguments(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let writer = FunctionWriter::new(&call.catalog).map_err(statement_error)?;
    each(arguments, |oid, _| writer.arguments(oid, false))
}

fn defaults_of_arguments(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let writer = FunctionWriter::new(&call.catalog).map_err(statement_error)?;
    let numbers = arguments[1].as_primitive::<Int32Type>();
    each(arguments, |oid, row| writer.default(oid, numbers.value(row)))
}

fn results(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let writer = FunctionWriter::new(&call.catalog).map_err(statement_error)?;
    each(arguments, |oid, _| writer.result(oid))
}

fn bodies(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let writer = FunctionWriter::new(&call.catalog).map_err(statement_error)?;
    each(arguments, |oid, _| writer.body(oid))
}

fn whole_functions(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let wanted = arguments[0].as_primitive::<UInt32Type>().iter().flatten().map(Oid).collect();
    let writer = FunctionStatements::new(&call.catalog, &wanted).map_err(statement_error)?;
    each(arguments, |oid, _| -> Outcome<Option<String>> {
        match writer.aggregate(oid) {
            Some(name) => {
                let message = format!("\"{name}\" is an aggregate function");
                Err(StatementError::new(SqlState("42809"), message))
            }
            None => Ok(writer.statement(oid)?),
        }
    })
}

fn changeable_relations(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let known = Updatability::new(&call.catalog).map_err(statement_error)?;
    let (numbers, triggers) =
        (arguments[0].as_primitive::<UInt32Type>(), arguments[1].as_boolean());
    let one = |(number, triggers): (Option<u32>, Option<bool>)| -> Outcome<Option<i32>> {
        let (Some(number), Some(triggers)) = (number, triggers) else { return Ok(None) };
        let commands = known.commands(Oid(number), triggers)?;
        Ok(Some(commands.cast_signed()))
    };
    let rows = numbers.iter().zip(triggers.iter()).map(one);
    Made::column(rows.collect::<Outcome<Vec<Option<i32>>>>()?)
}

fn changeable_columns(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let known = Updatability::new(&call.catalog).map_err(statement_error)?;
    let (numbers, triggers) =
        (arguments[0].as_primitive::<UInt32Type>(), arguments[2].as_boolean());
    let columns = arguments[1].as_primitive::<Int16Type>();
    let one = |row: usize| -> Outcome<Option<bool>> {
        if arguments.iter().any(|argument| argument.is_null(row)) {
            return Ok(None);
        }
        let of = (Oid(numbers.value(row)), columns.value(row));
        Ok(Some(known.column(of.0, of.1, triggers.value(row))?))
    };
    Made::column((0..numbers.len()).map(one).collect::<Outcome<Vec<Option<bool>>>>()?)
}
