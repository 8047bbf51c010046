//! CHECK constraints from the node trees they are stored as to expressions that can be evaluated here.
//!
//! What is known: comparisons in orders that are known, logic, tests for null and truth, lists (`IN`), `LIKE` and regular
//! expressions of fixed patterns, `COALESCE`, `CASE`, and the built-in functions of [`Function`]. All else is refused
//! with what it is.
//!
//! Invariant: an expression that is made says for all inputs what the server says. Operators and functions are told by
//! their OIDs, so that those of users are never taken for built-in ones of the same name.
//!
//! Source: `src/include/nodes/primnodes.h`, `src/include/catalog/pg_operator.dat`, `pg_proc.dat`, PostgreSQL 14 to 18.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::OnceLock;

use pagemill_format::node_tree::{Const, Node, NodeStruct};
use pagemill_format::tuple::AttributeLayout;
use pagemill_format::varlena::Varlena;
use pagemill_format::{Error as FormatError, Oid};
use pagemill_types::array::element_payloads;
use pagemill_types::builtin::oid::{
    ANYARRAY, ANYENUM, ANYMULTIRANGE, ANYRANGE, BOOL, BPCHAR, FLOAT4, FLOAT8, INT2, INT4, INT8,
    RECORD, TEXT,
};
use pagemill_types::expression::function::{Arithmetic, Width};
use pagemill_types::expression::{
    Comparison, Expression, Function, LikePattern, Pattern, RegularPattern,
};
use pagemill_types::input::Characters;
use pagemill_types::order::ValueOrder;

use crate::collations::{Collation, DEFAULT_COLLATION};
use crate::database::{Database, FIRST_NORMAL_OID, catalog, load_once};
use crate::error::{Error, Result};
use crate::refusal::{ExpressionCause, Refusal};
use crate::system_table::Row;

/// The encoding in which regular expressions are matched.
const UTF8: i32 = 6;
/// `default` in `pg_collation`, which is always deterministic.
/// Operators for many types, whose order is that of their operands: anyarray, record, anyenum, anyrange, anymultirange.
const POLYMORPHIC: [Oid; 5] = [ANYARRAY, RECORD, ANYENUM, ANYRANGE, ANYMULTIRANGE];
const INTEGERS: [Oid; 3] = [INT8, INT2, INT4];
const FLOATS: [Oid; 2] = [FLOAT4, FLOAT8];
/// What patterns are matched with.
const TEXTS: [Oid; 2] = [TEXT, BPCHAR];

/// What the inputs of an expression are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subject {
    /// A domain's value, input 0.
    Domain,
    /// A table's columns, by their positions from 0.
    Columns,
}

/// The text of a stored expression. One that is kept out of line is not fetched.
pub(crate) fn stored_tree(row: &Row<'_>, column: usize) -> Result<Option<Vec<u8>>, FormatError> {
    match row.raw(column).map(Varlena::parse).transpose()? {
        None | Some(Varlena::External(_)) => Ok(None),
        Some(_) => row.payload(column),
    }
}

/// The expression that is stored as this text.
///
/// # Errors
/// [`Error::Refused`] for one that cannot be evaluated here, with the reason.
pub(crate) fn compile(database: &Database, tree: Option<&[u8]>, of: Subject) -> Result<Expression> {
    let tree = tree.ok_or_else(|| refused(ExpressionCause::OutOfLine))?;
    let tree = Node::parse(tree)
        .map_err(|error| refused(ExpressionCause::Unreadable(error.to_string())))?;
    let node = tree.structure().ok_or_else(|| refused(ExpressionCause::NotAnExpression))?;
    let encoding = database.row().encoding;
    let characters = Characters::of_encoding(encoding)
        .ok_or_else(|| Error::refused(Refusal::UnknownEncoding(encoding)))?;
    let compiler = Compiler { database, characters, of, operators: OnceLock::new() };
    Ok(compiler.node(node)?.expression)
}

/// An expression and its type.
struct Typed {
    expression: Expression,
    of: Oid,
}

impl Typed {
    fn truth(expression: Expression) -> Self {
        Self { expression, of: BOOL }
    }
}

/// A built-in operator.
struct Operator {
    name: Box<[u8]>,
    left: Oid,
    right: Oid,
}

struct Compiler<'a> {
    database: &'a Database,
    characters: Characters,
    of: Subject,
    operators: OnceLock<HashMap<Oid, Operator>>,
}

impl Compiler<'_> {
    fn node(&self, node: &NodeStruct<'_>) -> Result<Typed> {
        match node.name {
            b"VAR" => self.column(node),
            b"COERCETODOMAINVALUE" if self.of == Subject::Domain => {
                Ok(Typed { expression: Expression::Input(0), of: oid(node, "typeId")? })
            }
            b"CONST" => self.constant(node),
            b"OPEXPR" => self.operator(node),
            b"DISTINCTEXPR" => self.distinct(node),
            b"SCALARARRAYOPEXPR" => self.list(node),
            b"BOOLEXPR" => self.logic(node),
            b"NULLTEST" => self.null_test(node),
            b"BOOLEANTEST" => self.truth_test(node),
            b"RELABELTYPE" => {
                Ok(Typed { of: oid(node, "resulttype")?, ..self.argument(node, "arg")? })
            }
            b"COLLATEEXPR" | b"COLLATE" => self.argument(node, "arg"),
            b"FUNCEXPR" => self.function(node),
            b"COALESCEEXPR" | b"COALESCE" => {
                let parts = self.arguments(node, "args")?.into_iter().map(|part| part.expression);
                let of = oid(node, "coalescetype")?;
                Ok(Typed { expression: Expression::Coalesce(parts.collect()), of })
            }
            b"CASEEXPR" | b"CASE" => self.case(node),
            other => {
                let other = String::from_utf8_lossy(other).into_owned();
                Err(refused(ExpressionCause::Node(other)))
            }
        }
    }

    fn argument(&self, node: &NodeStruct<'_>, field: &str) -> Result<Typed> {
        self.node(node.node(field).map_err(|_| odd(node))?)
    }

    fn arguments(&self, node: &NodeStruct<'_>, field: &str) -> Result<Vec<Typed>> {
        let nodes = node.nodes(field).map_err(|_| odd(node))?;
        nodes.into_iter().map(|node| self.node(node)).collect()
    }

    fn pair(&self, node: &NodeStruct<'_>) -> Result<[Typed; 2]> {
        self.arguments(node, "args")?.try_into().map_err(|_| odd(node))
    }

    fn column(&self, node: &NodeStruct<'_>) -> Result<Typed> {
        let is_own =
            node.number("varno").ok() == Some(1) && node.number("varlevelsup").ok() == Some(0);
        let number = node.number::<i16>("varattno").ok().filter(|number| *number > 0 && is_own);
        match number {
            Some(number) if self.of == Subject::Columns => Ok(Typed {
                expression: Expression::Input(usize::from(number.unsigned_abs()) - 1),
                of: oid(node, "vartype")?,
            }),
            _ => Err(refused(ExpressionCause::NotAColumn)),
        }
    }

    fn constant(&self, node: &NodeStruct<'_>) -> Result<Typed> {
        let of = oid(node, "consttype")?;
        let constant = Const::of(node).ok().filter(|constant| constant.len >= -1);
        let constant = constant.ok_or_else(|| odd(node))?;
        let payload = constant.payload().map_err(|_| odd(node))?.map(Cow::into_owned);
        Ok(Typed { expression: Expression::Constant(payload), of })
    }

    fn operator(&self, node: &NodeStruct<'_>) -> Result<Typed> {
        let [left, right] = self.pair(node)?;
        self.apply(node, left, right)
    }

    /// An operator of two sides.
    fn apply(&self, node: &NodeStruct<'_>, left: Typed, right: Typed) -> Result<Typed> {
        let operator = self.builtin_operator(node)?;
        if let Some(comparison) = Comparison::of_operator(&operator.name) {
            let order = self.order(node, operator, left.of, comparison)?;
            let sides = Box::new([left.expression, right.expression]);
            return Ok(Typed::truth(Expression::Compare(comparison, order, sides)));
        }
        match &*operator.name {
            b"~~" | b"!~~" | b"~" | b"!~" if TEXTS.contains(&operator.left) => {
                self.matching(node, operator, left, &right)
            }
            name => {
                let width = integer_width(operator.left).max(integer_width(operator.right));
                let both = integer_width(operator.left).and(integer_width(operator.right));
                let (Some(operation), Some(width), Some(_)) = (arithmetic(name), width, both)
                else {
                    return Err(unknown_operator(operator));
                };
                let arguments = vec![left.expression, right.expression];
                let call = Expression::Call(Function::Arithmetic(operation, width), arguments);
                Ok(Typed { expression: call.folded(), of: integer_of(width) })
            }
        }
    }

    fn distinct(&self, node: &NodeStruct<'_>) -> Result<Typed> {
        let [left, right] = self.pair(node)?;
        let order = self.order(node, self.builtin_operator(node)?, left.of, Comparison::Equal)?;
        let sides = Box::new([left.expression, right.expression]);
        Ok(Typed::truth(Expression::Distinct(order, sides)))
    }

    /// The order that a comparison goes by. Whether values are equal does not depend on a collation that is
    /// deterministic.
    fn order(
        &self,
        node: &NodeStruct<'_>,
        operator: &Operator,
        operand: Oid,
        comparison: Comparison,
    ) -> Result<ValueOrder> {
        let both = |of: &[Oid]| of.contains(&operator.left) && of.contains(&operator.right);
        if operator.left != operator.right && !both(&INTEGERS) && !both(&FLOATS) {
            return Err(unknown_operator(operator));
        }
        let of = if POLYMORPHIC.contains(&operator.left) { operand } else { operator.left };
        let for_equality = matches!(comparison, Comparison::Equal | Comparison::NotEqual);
        let collation = match oid(node, "inputcollid")? {
            Oid::INVALID => None,
            DEFAULT_COLLATION if for_equality => Some(Collation::Bytes),
            other => Some(self.database.collation_of(other)?),
        };
        self.database.value_order(of, collation.as_ref())
    }

    fn matching(
        &self,
        node: &NodeStruct<'_>,
        operator: &Operator,
        text: Typed,
        pattern: &Typed,
    ) -> Result<Typed> {
        let collation = oid(node, "inputcollid")?;
        if collation != DEFAULT_COLLATION {
            self.database.collation_of(collation)?;
        }
        let pattern = match &pattern.expression {
            Expression::Constant(Some(pattern)) => pattern,
            Expression::Constant(None) => return Ok(Typed::truth(Expression::Constant(None))),
            _ => return Err(refused(ExpressionCause::VariablePattern)),
        };
        let is_like = operator.name.ends_with(b"~~");
        let made = match is_like {
            true => LikePattern::new(pattern, self.characters).map(Pattern::Like),
            false => self.regular(pattern).map(Pattern::Regular),
        };
        let made = made.ok_or_else(|| {
            let pattern = String::from_utf8_lossy(pattern).into_owned();
            refused(ExpressionCause::Pattern(pattern))
        })?;
        let matches = Expression::Matches(made, Box::new(text.expression));
        Ok(Typed::truth(match operator.name.starts_with(b"!") {
            true => Expression::Not(Box::new(matches)),
            false => matches,
        }))
    }

    fn regular(&self, pattern: &[u8]) -> Option<RegularPattern> {
        let pattern = std::str::from_utf8(pattern).ok()?;
        (self.database.row().encoding == UTF8).then(|| RegularPattern::new(pattern)).flatten()
    }

    /// `IN` and its kin: one comparison for each element, of which any or all have to hold.
    fn list(&self, node: &NodeStruct<'_>) -> Result<Typed> {
        let nodes = node.nodes("args").map_err(|_| odd(node))?;
        let &[left, list] = &nodes[..] else { return Err(odd(node)) };
        let Some(elements) = self.elements(list)? else {
            return Ok(Typed::truth(Expression::Constant(None)));
        };
        let parts = elements.into_iter().map(|element| {
            let left = self.node(left)?;
            Ok(self.apply(node, left, element)?.expression)
        });
        let parts = parts.collect::<Result<_>>()?;
        Ok(Typed::truth(match node.boolean("useOr").ok() {
            Some(true) => Expression::Or(parts),
            Some(false) => Expression::And(parts),
            None => return Err(odd(node)),
        }))
    }

    /// The elements of an array; nothing for an array that is null.
    fn elements(&self, node: &NodeStruct<'_>) -> Result<Option<Vec<Typed>>> {
        let inner = || node.node("arg").map_err(|_| odd(node));
        match node.name {
            b"ARRAYEXPR" | b"ARRAY" if node.boolean("multidims").is_ok_and(|is| !is) => {
                self.arguments(node, "elements").map(Some)
            }
            b"RELABELTYPE" => self.elements(inner()?),
            b"ARRAYCOERCEEXPR" => {
                // Elements that only change their type's name.
                let per_element = node.node("elemexpr").ok().filter(|of| of.name == b"RELABELTYPE");
                let element = per_element.and_then(|of| of.node("arg").ok());
                match element {
                    Some(element) if element.name == b"CASETESTEXPR" => self.elements(inner()?),
                    _ => Err(refused(ExpressionCause::ElementCast)),
                }
            }
            b"CONST" => self.constant_elements(node),
            _ => Err(refused(ExpressionCause::VariableList)),
        }
    }

    fn constant_elements(&self, node: &NodeStruct<'_>) -> Result<Option<Vec<Typed>>> {
        let constant = self.constant(node)?;
        let Expression::Constant(Some(array)) = constant.expression else { return Ok(None) };
        let types = self.database.types()?;
        let element = types.row(constant.of).and_then(|array| types.row(array.element));
        let element = element.ok_or_else(|| odd(node))?;
        let layout = AttributeLayout::new(element.len, element.align);
        let payloads = layout.and_then(|layout| element_payloads(&array, layout));
        let payloads =
            payloads.map_err(|error| refused(ExpressionCause::Unreadable(error.to_string())))?;
        let typed = |payload| Typed { expression: Expression::Constant(payload), of: element.oid };
        Ok(Some(payloads.into_iter().map(typed).collect()))
    }

    fn logic(&self, node: &NodeStruct<'_>) -> Result<Typed> {
        let parts = self.arguments(node, "args")?.into_iter().map(|part| part.expression);
        let mut parts: Vec<_> = parts.collect();
        Ok(Typed::truth(match node.value("boolop") {
            Ok(Node::Token(b"and")) => Expression::And(parts),
            Ok(Node::Token(b"or")) => Expression::Or(parts),
            Ok(Node::Token(b"not")) if parts.len() == 1 => {
                Expression::Not(Box::new(parts.remove(0)))
            }
            _ => return Err(odd(node)),
        }))
    }

    fn null_test(&self, node: &NodeStruct<'_>) -> Result<Typed> {
        if node.boolean("argisrow").ok() != Some(false) {
            return Err(refused(ExpressionCause::RowIsNull));
        }
        let is_null = Expression::IsNull(Box::new(self.argument(node, "arg")?.expression));
        Ok(Typed::truth(match node.number("nulltesttype").ok() {
            Some(0) => is_null,
            Some(1) => Expression::Not(Box::new(is_null)),
            _ => return Err(odd(node)),
        }))
    }

    fn truth_test(&self, node: &NodeStruct<'_>) -> Result<Typed> {
        let kind = node.number::<u8>("booltesttype").ok().filter(|kind| *kind < 6);
        let kind = kind.ok_or_else(|| odd(node))?;
        let wanted = [Some(true), Some(false), None][usize::from(kind / 2)];
        let is = Expression::Is(wanted, Box::new(self.argument(node, "arg")?.expression));
        Ok(Typed::truth(if kind % 2 == 0 { is } else { Expression::Not(Box::new(is)) }))
    }

    fn case(&self, node: &NodeStruct<'_>) -> Result<Typed> {
        if node.value("arg").ok() != Some(&Node::Null) {
            return Err(refused(ExpressionCause::CaseWithValue));
        }
        let branches = node.nodes("args").map_err(|_| odd(node))?.into_iter().map(|when| {
            let (condition, result) =
                (self.argument(when, "expr")?, self.argument(when, "result")?);
            Ok((condition.expression, result.expression))
        });
        let branches = branches.collect::<Result<_>>()?;
        let otherwise = match node.value("defresult") {
            Ok(Node::Null) => Expression::Constant(None),
            _ => self.argument(node, "defresult")?.expression,
        };
        let of = oid(node, "casetype")?;
        Ok(Typed { expression: Expression::Case(branches, Box::new(otherwise)), of })
    }

    fn function(&self, node: &NodeStruct<'_>) -> Result<Typed> {
        let number = oid(node, "funcid")?;
        let Some(function) = self.known_function(number) else {
            return Err(refused(ExpressionCause::Function(self.name_of(number)?)));
        };
        let arguments = self.arguments(node, "args")?.into_iter().map(|part| part.expression);
        let arguments: Vec<_> = arguments.collect();
        if arguments.len() != function.arguments() {
            return Err(odd(node));
        }
        let of = oid(node, "funcresulttype")?;
        Ok(Typed { expression: Expression::Call(function, arguments).folded(), of })
    }

    /// Functions by their OIDs in `pg_proc.dat`.
    fn known_function(&self, oid: Oid) -> Option<Function> {
        let trim = |start, end| Function::Trim { start, end };
        Some(match oid.0 {
            1317 | 1369 | 1381 => Function::CharacterCount(self.characters),
            1318 | 1367 | 1372 => Function::PaddedCharacterCount(self.characters),
            720 | 1374 | 1375 | 2010 => Function::ByteCount,
            885 => trim(true, true),
            881 => trim(true, false),
            // `rtrim`, and `character(n)` as a text.
            401 | 882 => trim(false, true),
            406 => Function::NameToText,
            313 => Function::Widen(Width::Four),
            481 | 754 => Function::Widen(Width::Eight),
            1740 | 1781 | 1782 => Function::IntegerToNumeric,
            // int8, int2, int4
            482 | 235 | 316 => Function::IntegerToDouble,
            311 => Function::RealToDouble,
            2176 => Function::ArrayLength,
            _ => return None,
        })
    }

    fn name_of(&self, function: Oid) -> Result<String> {
        let mut name = function.to_string();
        self.database.scan(catalog::PG_PROC, &["oid", "proname"], |row| {
            if row.oid(0)? == function {
                name = String::from_utf8_lossy(&row.name(1)?).into_owned();
            }
            Ok(())
        })?;
        Ok(name)
    }

    fn builtin_operator(&self, node: &NodeStruct<'_>) -> Result<&Operator> {
        let number = oid(node, "opno")?;
        let operators = load_once(&self.operators, || read_operators(self.database))?;
        let found = operators.get(&number);
        found.ok_or_else(|| refused(ExpressionCause::OperatorNotBuiltIn))
    }
}

fn read_operators(database: &Database) -> Result<HashMap<Oid, Operator>> {
    let mut found = HashMap::new();
    database.scan(catalog::PG_OPERATOR, &["oid", "oprname", "oprleft", "oprright"], |row| {
        let operator = Operator { name: row.name(1)?, left: row.oid(2)?, right: row.oid(3)? };
        let number = row.oid(0)?;
        if number < FIRST_NORMAL_OID {
            found.insert(number, operator);
        }
        Ok(())
    })?;
    Ok(found)
}

fn unknown_operator(operator: &Operator) -> Error {
    let name = String::from_utf8_lossy(&operator.name).into_owned();
    let (left, right) = (operator.left, operator.right);
    refused(ExpressionCause::Operator { name, left, right })
}

fn arithmetic(name: &[u8]) -> Option<Arithmetic> {
    Some(match name {
        b"+" => Arithmetic::Add,
        b"-" => Arithmetic::Subtract,
        b"*" => Arithmetic::Multiply,
        b"/" => Arithmetic::Divide,
        b"%" => Arithmetic::Remainder,
        _ => return None,
    })
}

fn integer_width(of: Oid) -> Option<Width> {
    Some(match of {
        INT2 => Width::Two,
        INT4 => Width::Four,
        INT8 => Width::Eight,
        _ => return None,
    })
}

fn integer_of(width: Width) -> Oid {
    match width {
        Width::Two => INT2,
        Width::Four => INT4,
        Width::Eight => INT8,
    }
}

fn oid(node: &NodeStruct<'_>, field: &str) -> Result<Oid> {
    node.oid(field).map_err(|_| odd(node))
}

/// A node that is not as the source says.
fn odd(node: &NodeStruct<'_>) -> Error {
    refused(ExpressionCause::OddNode(String::from_utf8_lossy(node.name).into_owned()))
}

fn refused(cause: ExpressionCause) -> Error {
    Error::refused(cause)
}
