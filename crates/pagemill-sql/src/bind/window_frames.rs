//! Frames of windows: what stands behind ROWS, RANGE and GROUPS, for the query engine where it has such a frame, and for
//! [`crate::functions::windows`], which has all.
//!
//! Source: `transformWindowDefinitions` in `src/backend/parser/parse_clause.c`, `frame_extent` in `gram.y`, PostgreSQL 14 to 18.

use datafusion::arrow::datatypes::DataType;
use datafusion::logical_expr::{SortExpr, WindowFrame, WindowFrameBound, WindowFrameUnits, cast};
use datafusion::scalar::ScalarValue;
use pagemill_types::builtin::oid;
use sqlparser::ast::{
    Expr as Syntax, FunctionArg, FunctionArgExpr, FunctionArguments, WindowFrame as FrameSyntax,
    WindowFrameBound as BoundSyntax, WindowFrameUnits as UnitsSyntax,
};

use super::Binder;
use super::frame_offsets::{bad_constant, plain_number};
use crate::catalog::Catalog;
use crate::error::{Result, SqlState, StatementError, fail};
use crate::forms::{CURRENT_BOUND, UNBOUNDED, excluded};
use crate::functions::windows::{Edge, Exclusion, Frame, Measure, Measured, Units};
use crate::typed::Typed;

/// What a window sorts by: the key, and the value.
pub(super) type Order = Vec<(SortExpr, Typed)>;

/// A frame.
pub(super) struct Framing {
    pub(super) frame: Frame,
    /// Of the start and the end, those that there are.
    pub(super) offsets: Vec<Typed>,
    /// How RANGE with an offset goes by the only value that the window sorts by.
    pub(super) measured: Option<Measured>,
    /// What the server says of constant offsets, wherever there are rows or not.
    pub(super) refusal: Option<StatementError>,
    /// The same for the query engine, where that has it; with what it then sorts by.
    pub(super) of_engine: Option<(WindowFrame, Vec<SortExpr>)>,
}

/// A bound as it is written.
struct Written<'f> {
    edge: Edge,
    offset: Option<&'f Syntax>,
}

impl<'f> Written<'f> {
    fn of(bound: &'f BoundSyntax) -> Self {
        let (edge, offset) = match bound {
            BoundSyntax::CurrentRow => (Edge::Current, None),
            BoundSyntax::Preceding(None) | BoundSyntax::Following(None) => (Edge::Unbounded, None),
            BoundSyntax::Preceding(offset) => (Edge::Preceding, offset.as_deref()),
            BoundSyntax::Following(offset) => (Edge::Following, offset.as_deref()),
        };
        Self { edge, offset }
    }
}

/// The frame as it would be written without EXCLUDE, which [`crate::forms`] puts around its start.
fn without_exclusion(frame: &FrameSyntax) -> (FrameSyntax, Exclusion) {
    let mut plain = frame.clone();
    let (BoundSyntax::Preceding(Some(start)) | BoundSyntax::Following(Some(start))) =
        &frame.start_bound
    else {
        return (plain, Exclusion::None);
    };
    let Syntax::Function(call) = &**start else { return (plain, Exclusion::None) };
    let Some(exclusion) = excluded(&call.name) else { return (plain, Exclusion::None) };
    let FunctionArguments::List(list) = &call.args else { return (plain, Exclusion::None) };
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(inner))] = &list.args[..] else {
        return (plain, Exclusion::None);
    };
    let is_following = matches!(frame.start_bound, BoundSyntax::Following(_));
    let offset = match inner {
        Syntax::Identifier(name) if name.value == UNBOUNDED => None,
        other => Some(Box::new(other.clone())),
    };
    plain.start_bound = match inner {
        Syntax::Identifier(name) if name.value == CURRENT_BOUND => BoundSyntax::CurrentRow,
        _ if is_following => BoundSyntax::Following(offset),
        _ => BoundSyntax::Preceding(offset),
    };
    (plain, exclusion)
}

impl Binder<'_> {
    /// The frame of a window that sorts by `order`.
    pub(super) fn framing(
        &mut self,
        frame: Option<&FrameSyntax>,
        order: &Order,
    ) -> Result<Framing> {
        let Some(frame) = frame else { return Ok(up_to_peers(order)) };
        let (plain, exclusion) = without_exclusion(frame);
        check_frame(&plain)?;
        let units = match plain.units {
            UnitsSyntax::Rows => Units::Rows,
            UnitsSyntax::Range => Units::Range,
            UnitsSyntax::Groups => Units::Groups,
        };
        let start = Written::of(&plain.start_bound);
        let current = BoundSyntax::CurrentRow;
        let end = Written::of(plain.end_bound.as_ref().unwrap_or(&current));
        let by_offset = start.offset.is_some() || end.offset.is_some();
        if units == Units::Groups && order.is_empty() {
            let message = "GROUPS mode requires an ORDER BY clause";
            return fail(SqlState::WINDOWING_ERROR, message);
        }
        if units == Units::Range && by_offset && order.len() != 1 {
            let message =
                "RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column";
            return fail(SqlState::WINDOWING_ERROR, message);
        }
        let is_measured = units == Units::Range && by_offset;
        let measured = is_measured.then(|| measured(&self.catalog, order)).flatten();
        let (mut offsets, mut numbers, mut refusal) = (Vec::new(), Vec::new(), None);
        for written in [&start, &end] {
            let Some(syntax) = written.offset else {
                numbers.push(None);
                continue;
            };
            let typed = self.frame_offset(syntax, units, order)?;
            numbers.push(plain_number(syntax, &typed));
            let name = if numbers.len() == 1 { "starting" } else { "ending" };
            refusal = refusal.or_else(|| bad_constant((syntax, &typed.expr), units, name));
            offsets.push(typed);
        }
        let frame = Frame { units, start: start.edge, end: end.edge, exclusion };
        let of_engine = engine_frame(frame, &numbers, order);
        Ok(Framing { frame, offsets, measured, refusal, of_engine })
    }
}

/// All rows up to the last peer of the row: RANGE and GROUPS are the same there, and the engine has RANGE for numbers only.
fn up_to_peers(order: &Order) -> Framing {
    let frame = Frame {
        units: Units::Range,
        start: Edge::Unbounded,
        end: Edge::Current,
        exclusion: Exclusion::None,
    };
    let of_engine = match order.is_empty() {
        true => WindowFrame::new(None),
        false => WindowFrame::new_bounds(
            WindowFrameUnits::Groups,
            WindowFrameBound::Preceding(ScalarValue::UInt64(None)),
            WindowFrameBound::CurrentRow,
        ),
    };
    let of_engine = Some((of_engine, sorts(order)));
    Framing { frame, offsets: Vec::new(), measured: None, refusal: None, of_engine }
}

fn sorts(order: &Order) -> Vec<SortExpr> {
    order.iter().map(|(sort, _)| sort.clone()).collect()
}

/// The frame as the query engine has it, of constant offsets.
fn engine_frame(
    frame: Frame,
    numbers: &[Option<u64>],
    order: &Order,
) -> Option<(WindowFrame, Vec<SortExpr>)> {
    // The engine has no frame that ends before it starts.
    let is_backwards = match (frame.start, frame.end, numbers) {
        (Edge::Preceding, Edge::Preceding, [start, end]) => start < end,
        (Edge::Following, Edge::Following, [start, end]) => start > end,
        _ => false,
    };
    if frame.exclusion != Exclusion::None || is_backwards {
        return None;
    }
    let mut sorts = sorts(order);
    let by_offset = frame.start.has_offset() || frame.end.has_offset();
    let is_range = frame.units == Units::Range && by_offset;
    if is_range {
        // Where no sum is out of range.
        let short = |typed: &Typed| matches!(typed.ty.oid, oid::INT2 | oid::INT4);
        let sort = sorts.first_mut().filter(|_| order.iter().all(|(_, typed)| short(typed)))?;
        sort.expr = cast(sort.expr.clone(), DataType::Int64);
    }
    // Without an offset a range ends where its group of peers does.
    let units = match frame.units {
        Units::Rows => WindowFrameUnits::Rows,
        Units::Range if by_offset => WindowFrameUnits::Range,
        _ => WindowFrameUnits::Groups,
    };
    let number = |number: Option<u64>| match is_range {
        true => ScalarValue::Int64(number.and_then(|number| i64::try_from(number).ok())),
        false => ScalarValue::UInt64(number),
    };
    let bound = |edge: Edge, given: Option<u64>, is_end: bool| match edge {
        Edge::Current => Some(WindowFrameBound::CurrentRow),
        Edge::Unbounded if is_end => Some(WindowFrameBound::Following(number(None))),
        Edge::Unbounded => Some(WindowFrameBound::Preceding(number(None))),
        Edge::Preceding => given.map(|given| WindowFrameBound::Preceding(number(Some(given)))),
        Edge::Following => given.map(|given| WindowFrameBound::Following(number(Some(given)))),
    };
    let start = bound(frame.start, numbers.first().copied().flatten(), false)?;
    let end = bound(frame.end, numbers.get(1).copied().flatten(), true)?;
    Some((WindowFrame::new_bounds(units, start, end), sorts))
}

/// How RANGE with an offset goes by what the window sorts by.
fn measured(catalog: &Catalog, order: &Order) -> Option<Measured> {
    let [(sort, typed)] = &order[..] else { return None };
    let measure = match catalog.base_type(typed.ty.oid, -1).0 {
        oid::INT2 | oid::INT4 | oid::INT8 => Measure::Whole,
        oid::FLOAT4 | oid::FLOAT8 => Measure::Float,
        oid::NUMERIC => Measure::Numeric,
        oid::DATE => Measure::Date,
        oid::TIMESTAMP => Measure::Timestamp,
        oid::TIMESTAMPTZ => Measure::Moment,
        oid::TIME => Measure::Time,
        oid::TIMETZ => Measure::ZonedTime,
        oid::INTERVAL => Measure::Interval,
        _ => return None,
    };
    Some(Measured { measure, is_descending: !sort.asc, nulls_first: sort.nulls_first })
}

/// Refuses a frame that ends before it starts, in the server's words.
fn check_frame(frame: &FrameSyntax) -> Result<()> {
    use BoundSyntax::{CurrentRow, Following, Preceding};
    let message = match (&frame.start_bound, &frame.end_bound) {
        (Following(None), _) => "frame start cannot be UNBOUNDED FOLLOWING",
        (Following(Some(_)), None) => {
            "frame starting from following row cannot end with current row"
        }
        (_, Some(Preceding(None))) => "frame end cannot be UNBOUNDED PRECEDING",
        (CurrentRow, Some(Preceding(Some(_)))) => {
            "frame starting from current row cannot have preceding rows"
        }
        (Following(Some(_)), Some(Preceding(Some(_)) | CurrentRow)) => {
            "frame starting from following row cannot have preceding rows"
        }
        _ => return Ok(()),
    };
    fail(SqlState::WINDOWING_ERROR, message)
}
