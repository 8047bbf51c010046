//! An aggregate of ours as a function of the query engine.
//!
//! Its name is none of the engine's own, so that no rule of the optimizer takes it for one of those; DISTINCT and ORDER BY are
//! its own matter.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Float32Type, Float64Type};
use datafusion::common::Result as QueryResult;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::format_state_name;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, GroupsAccumulator, Signature, Volatility,
};
use datafusion::scalar::ScalarValue;
use pagemill_format::Oid;

use super::amounts::Amounts;
use super::collected::{Collected, Collection, Concatenation, list_fields};
use super::distinct_bits::DistinctBits;
use super::exact::{Exact, Many, One};
use super::extreme::{Best, Extreme};
use super::floating::{FloatMoments, FloatSum};
use super::intervals::{Intervals, OfIntervals};
use super::ordered::{self, Ordered};
use super::pairs::{self, OfPairs, Pairs};
use super::sums::Wanted;
use super::whole::{AtOnce, Whole};

/// What is computed of the rows.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    /// Of integers and numerics.
    Exact(Wanted),
    /// Of floats.
    Float(Wanted),
    Intervals(OfIntervals),
    /// Of money.
    Amounts {
        is_checked: bool,
    },
    /// Of pairs of floats.
    Pairs(OfPairs),
    Extreme(Extreme),
    DistinctBits,
    Concatenation,
    Whole(Arc<Whole>),
    Ordered(Arc<Ordered>),
}

impl Kind {
    /// Computes of rows in the order in which they come.
    pub(super) fn accumulator(
        &self,
        carriers: &[DataType],
        result: &DataType,
    ) -> Box<dyn Accumulator> {
        match (self, &carriers[0]) {
            (Self::Exact(wanted), takes) => {
                Box::new(One::new(Exact { wanted: *wanted, carrier: result.clone() }, takes))
            }
            (Self::Float(Wanted::Sum), DataType::Float32) => {
                Box::new(FloatSum::<Float32Type>::new())
            }
            (Self::Float(Wanted::Sum), _) => Box::new(FloatSum::<Float64Type>::new()),
            (Self::Float(wanted), _) => Box::new(FloatMoments::new(*wanted)),
            (Self::Intervals(wanted), _) => Box::new(Intervals::new(*wanted)),
            (Self::Amounts { is_checked }, _) => Box::new(Amounts::new(*is_checked)),
            (Self::Pairs(wanted), _) => Box::new(Pairs::new(*wanted)),
            (Self::Extreme(extreme), value) => {
                Box::new(Best::new(extreme.clone(), value, &carriers[1]))
            }
            (Self::DistinctBits, _) => Box::new(DistinctBits::new(result)),
            (Self::Concatenation, carrier) => Box::new(Concatenation::new(carrier)),
            (Self::Whole(whole), _) => Box::new(AtOnce::new(whole.clone())),
            (Self::Ordered(ordered), _) => Box::new(AtOnce::new(ordered.clone())),
        }
    }

    fn state(&self, carriers: &[DataType]) -> Vec<(String, DataType)> {
        let named = |name: &str, carrier: &DataType| (name.to_owned(), carrier.clone());
        match self {
            Self::Exact(_) | Self::Intervals(_) | Self::Amounts { .. } | Self::DistinctBits => {
                vec![named("sums", &DataType::Binary)]
            }
            Self::Float(Wanted::Sum) => vec![named("sum", &carriers[0])],
            Self::Float(_) => {
                ["count", "sum", "squares"].map(|name| named(name, &DataType::Float64)).to_vec()
            }
            Self::Pairs(_) => pairs::STATE.map(|name| named(name, &DataType::Float64)).to_vec(),
            Self::Extreme(_) => vec![named("value", &carriers[0]), named("key", &carriers[1])],
            Self::Concatenation => {
                vec![named("joined", &carriers[0]), named("delimiter", &DataType::UInt64)]
            }
            Self::Whole(_) | Self::Ordered(_) => unreachable!("the rows are kept by another"),
        }
    }

    /// True where the order of the rows does not show in the result.
    pub(super) fn is_any_order(&self) -> bool {
        matches!(
            self,
            Self::Exact(_)
                | Self::Intervals(_)
                | Self::Amounts { .. }
                | Self::Extreme(_)
                | Self::DistinctBits
        )
    }
}

/// An aggregate of ours.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct PgAggregate {
    name: String,
    kind: Kind,
    collection: Collection,
    result: DataType,
    signature: Signature,
}

impl PgAggregate {
    pub(super) fn new(name: &str, kind: Kind, collection: Collection, result: DataType) -> Self {
        let signature = Signature::any(collection.width(), Volatility::Immutable);
        Self { name: format!("pg_{name}"), kind, collection, result, signature }
    }

    /// True where all rows are kept up to the end.
    fn keeps_rows(&self) -> bool {
        !self.collection.is_plain() || matches!(self.kind, Kind::Whole(_) | Kind::Ordered(_))
    }

    fn collected(&self, args: &AccumulatorArgs<'_>) -> Box<dyn Accumulator> {
        let (collection, result) = (self.collection.clone(), self.result.clone());
        let fields = carriers(args.expr_fields);
        let mut collected = Collected::new(self.kind.clone(), collection, fields, result);
        if let Kind::Ordered(ordered) = &self.kind {
            let directs = args.exprs.iter().take(ordered.directs);
            collected.constants = directs.map(ordered::constant).collect();
        }
        Box::new(collected)
    }
}

/// The collation in whose order the texts are of which this is the greatest or the least, if that is not the order of their bytes.
pub(crate) fn extreme_collation(function: &AggregateUDF) -> Option<Oid> {
    match &function.inner().downcast_ref::<PgAggregate>()?.kind {
        Kind::Extreme(extreme) => extreme.collator.as_ref().map(|collator| collator.collation),
        _ => None,
    }
}

fn carriers(fields: &[FieldRef]) -> Vec<DataType> {
    fields.iter().map(|field| field.data_type().clone()).collect()
}

impl AggregateUDFImpl for PgAggregate {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> QueryResult<DataType> {
        Ok(self.result.clone())
    }

    /// Of no rows, where a join finds none for a row, and in an empty frame.
    fn default_value(&self, carrier: &DataType) -> QueryResult<ScalarValue> {
        let none = match &self.kind {
            Kind::Pairs(OfPairs::Count) => Some(ScalarValue::Int64(Some(0))),
            Kind::Ordered(ordered) => ordered.place.of_no_rows(),
            _ => None,
        };
        none.map_or_else(|| ScalarValue::try_from(carrier), Ok)
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> QueryResult<Box<dyn Accumulator>> {
        Ok(match !self.keeps_rows() {
            true => self.kind.accumulator(&carriers(args.expr_fields), &self.result),
            false => self.collected(&args),
        })
    }

    /// Of a window that moves on: what cannot be taken back is computed anew, as the server does.
    fn create_sliding_accumulator(
        &self,
        args: AccumulatorArgs<'_>,
    ) -> QueryResult<Box<dyn Accumulator>> {
        let plain = self.kind.accumulator(&carriers(args.expr_fields), &self.result);
        Ok(match !self.keeps_rows() && plain.supports_retract_batch() {
            true => plain,
            false => self.collected(&args),
        })
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> QueryResult<Vec<FieldRef>> {
        let carriers = carriers(args.input_fields);
        let fields = match !self.keeps_rows() {
            true => self.kind.state(&carriers),
            false => list_fields(&carriers),
        };
        let field = |(name, carrier): (String, DataType)| {
            Arc::new(Field::new(format_state_name(args.name, &name), carrier, true))
        };
        Ok(fields.into_iter().map(field).collect())
    }

    fn groups_accumulator_supported(&self, _: AccumulatorArgs<'_>) -> bool {
        self.collection.is_plain() && matches!(self.kind, Kind::Exact(_))
    }

    fn create_groups_accumulator(
        &self,
        _: AccumulatorArgs<'_>,
    ) -> QueryResult<Box<dyn GroupsAccumulator>> {
        let Kind::Exact(wanted) = &self.kind else {
            unreachable!("only exact aggregates say that they do");
        };
        Ok(Box::new(Many::new(Exact { wanted: *wanted, carrier: self.result.clone() })))
    }
}
