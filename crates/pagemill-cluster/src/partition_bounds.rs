//! What a partition is for: its bound, as `FOR VALUES` gave it and `pg_class.relpartbound` keeps it.
//!
//! Sources: `PartitionBoundSpec` and `PartitionRangeDatum` in `src/include/nodes/parsenodes.h`, PostgreSQL 14 to 18.

use std::cmp::Ordering;

use pagemill_format::node_tree::{Const, Node, NodeStruct};
use pagemill_format::{Error as FormatError, Oid};
use pagemill_types::order::ValueOrder;

/// The bound of a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PartitionBound {
    /// `DEFAULT`: what no other partition takes.
    Default,
    /// `IN (…)`; a null among them is a constant without value.
    List(Vec<Const>),
    /// `FROM (…) TO (…)`: the lower bound belongs to it, the upper one does not.
    Range {
        /// A value for each column of the key.
        lower: Vec<RangeDatum>,
        /// A value for each column of the key.
        upper: Vec<RangeDatum>,
    },
    /// `WITH (MODULUS …, REMAINDER …)`.
    Hash {
        /// By how much the hash is divided, never 0.
        modulus: u32,
        /// What is left over.
        remainder: u32,
    },
}

/// One value of a bound of a range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RangeDatum {
    /// `MINVALUE`
    MinValue,
    /// A value, never null.
    Value(Const),
    /// `MAXVALUE`
    MaxValue,
}

/// One column of an end of a range, ready to be compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RangeLimit {
    /// `MINVALUE`: before all values.
    MinValue,
    /// A value without its header.
    Value(Vec<u8>),
    /// `MAXVALUE`: behind all values.
    MaxValue,
}

impl RangeDatum {
    /// The value as it is compared.
    ///
    /// # Errors
    /// When the value is null, or stored as no value can be.
    pub fn limit(&self) -> Result<RangeLimit, FormatError> {
        Ok(match self {
            Self::MinValue => RangeLimit::MinValue,
            Self::MaxValue => RangeLimit::MaxValue,
            Self::Value(value) => match value.payload()? {
                Some(payload) => RangeLimit::Value(payload.into_owned()),
                None => return Err(corrupt("a null in a range")),
            },
        })
    }
}

impl RangeLimit {
    /// Which of two comes first, values by the order of the key's column.
    pub fn compare(&self, other: &Self, order: &ValueOrder) -> Ordering {
        match (self, other) {
            (Self::Value(a), Self::Value(b)) => order.compare(a, b),
            _ => self.rank().cmp(&other.rank()),
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Self::MinValue => 0,
            Self::Value(_) => 1,
            Self::MaxValue => 2,
        }
    }
}

impl PartitionBound {
    /// Reads the text of `relpartbound`.
    ///
    /// # Errors
    /// When it is no partition bound.
    pub fn parse(text: &[u8]) -> Result<Self, FormatError> {
        let node = Node::parse(text)?;
        let spec = node.as_struct("PARTITIONBOUNDSPEC")?;
        if spec.boolean("is_default")? {
            return Ok(Self::Default);
        }
        match spec.character("strategy")? {
            Some(b'l') => {
                let values = spec.value("listdatums")?.as_list()?;
                Ok(Self::List(values.iter().map(Const::read).collect::<Result<_, _>>()?))
            }
            Some(b'r') => Ok(Self::Range {
                lower: range_data(spec, "lowerdatums")?,
                upper: range_data(spec, "upperdatums")?,
            }),
            Some(b'h') => match (spec.number("modulus")?, spec.number("remainder")?) {
                (0, _) => Err(corrupt("a modulus of 0")),
                (modulus, remainder) => Ok(Self::Hash { modulus, remainder }),
            },
            _ => Err(corrupt("a strategy that is none of l, r and h")),
        }
    }

    /// The type of the values for one column of the key, counted from 0, where it has any.
    pub fn value_type(&self, column: usize) -> Option<Oid> {
        match self {
            Self::List(values) => values.first().map(|value| value.type_oid),
            Self::Range { lower, upper } => {
                [lower, upper].into_iter().find_map(|bound| match bound.get(column)? {
                    RangeDatum::Value(value) => Some(value.type_oid),
                    RangeDatum::MinValue | RangeDatum::MaxValue => None,
                })
            }
            Self::Default | Self::Hash { .. } => None,
        }
    }
}

fn range_data(spec: &NodeStruct<'_>, label: &str) -> Result<Vec<RangeDatum>, FormatError> {
    let datum = |node: &Node<'_>| {
        let node = node.as_struct("PARTITIONRANGEDATUM")?;
        Ok(match node.number::<i32>("kind")? {
            -1 => RangeDatum::MinValue,
            0 => RangeDatum::Value(Const::read(node.value("value")?)?),
            1 => RangeDatum::MaxValue,
            _ => return Err(corrupt("a kind of value that is none of -1, 0 and 1")),
        })
    };
    spec.value(label)?.as_list()?.iter().map(datum).collect()
}

fn corrupt(what: &'static str) -> FormatError {
    FormatError::corrupt("partition bound", 0, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn constant(value: &str) -> String {
        format!(
            "{{CONST :consttype 23 :consttypmod -1 :constcollid 0 :constlen 4 :constbyval true {value}}}"
        )
    }

    fn spec(fields: &str) -> String {
        format!("{{PARTITIONBOUNDSPEC {fields} :location 80}}")
    }

    #[test]
    fn a_list_may_have_a_null() {
        let seven = constant(":constisnull false :location 1 :constvalue 4 [ 7 0 0 0 0 0 0 0 ]");
        let null = constant(":constisnull true :location 2 :constvalue <>");
        let text = spec(&format!(
            ":strategy l :is_default false :modulus 0 :remainder 0 :listdatums ({seven} {null}) \
             :lowerdatums <> :upperdatums <>"
        ));
        let PartitionBound::List(values) = PartitionBound::parse(text.as_bytes()).unwrap() else {
            panic!("{text}")
        };
        assert_eq!(values[0].value.as_deref(), Some(&[7, 0, 0, 0][..]));
        assert_eq!(values[1].value, None);
    }

    #[test]
    fn a_range_may_be_open_and_the_default_has_nothing_else() {
        let open = |kind| format!("({{PARTITIONRANGEDATUM :kind {kind} :value <> :location 9}})");
        let text = spec(&format!(
            ":strategy r :is_default false :modulus 0 :remainder 0 :listdatums <> \
             :lowerdatums {} :upperdatums {}",
            open(-1),
            open(1)
        ));
        let bound = PartitionBound::parse(text.as_bytes()).unwrap();
        let (lower, upper) = (vec![RangeDatum::MinValue], vec![RangeDatum::MaxValue]);
        assert_eq!(bound, PartitionBound::Range { lower, upper });
        let text = spec(":strategy l :is_default true :modulus 0 :remainder 0");
        assert_eq!(PartitionBound::parse(text.as_bytes()).unwrap(), PartitionBound::Default);
    }

    #[test]
    fn a_hash_has_a_modulus_that_can_divide() {
        let hash = |modulus| {
            let fields = format!(":strategy h :is_default false :modulus {modulus} :remainder 3");
            PartitionBound::parse(spec(&fields).as_bytes())
        };
        assert_eq!(hash(4).unwrap(), PartitionBound::Hash { modulus: 4, remainder: 3 });
        assert!(hash(0).is_err() && hash(-4).is_err());
    }

    #[test]
    fn what_is_no_bound_is_an_error() {
        for text in ["<>", "{VAR :a b}", &spec(":strategy x :is_default false"), &spec("")] {
            assert!(PartitionBound::parse(text.as_bytes()).is_err(), "{text}");
        }
    }
}
