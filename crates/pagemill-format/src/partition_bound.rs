//! The bounds of a partition, as `pg_class.relpartbound` has them.
//!
//! Source: `PartitionBoundSpec` and `PartitionRangeDatum` in `src/include/nodes/parsenodes.h`, PostgreSQL 14 to 18.

use crate::error::{Error, Result};
use crate::stored_tree::{Node, Tree};

/// Which rows a partition has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PartitionBound {
    /// Those of no other.
    Default,
    /// Those with one of these payloads; `None` for NULL.
    List(Vec<Option<Vec<u8>>>),
    /// Those from the first on, and before the second.
    Range(Vec<RangeLimit>, Vec<RangeLimit>),
    /// Those whose hash leaves this remainder.
    Hash {
        /// What the hash is divided by, never 0.
        modulus: u64,
        /// What is left.
        remainder: u64,
    },
}

/// One column of an end of a range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RangeLimit {
    /// `MINVALUE`: before all values.
    Least,
    /// A payload.
    Value(Vec<u8>),
    /// `MAXVALUE`: behind all values.
    Most,
}

impl PartitionBound {
    /// Reads the text of `relpartbound`.
    ///
    /// # Errors
    /// Corrupt, when it is no bound.
    pub fn parse(text: &[u8]) -> Result<Self> {
        let tree = Tree::parse(text)?;
        let bound = tree.node().filter(|node| node.name == "PARTITIONBOUNDSPEC").and_then(bound);
        bound.ok_or_else(|| Error::corrupt("partition bound", 0, "a tree that is no bound"))
    }
}

fn bound(node: &Node) -> Option<PartitionBound> {
    if node.is_true("is_default") {
        return Some(PartitionBound::Default);
    }
    let Tree::Word(strategy) = node.field("strategy")? else { return None };
    match strategy.as_str() {
        "l" => {
            let value = |tree: &Tree| Some(tree.node()?.constant()?.payload);
            let values = node.field("listdatums")?.elements().iter().map(value);
            Some(PartitionBound::List(values.collect::<Option<_>>()?))
        }
        "r" => {
            let limits = |name| -> Option<Vec<_>> {
                node.field(name)?.elements().iter().map(range_limit).collect()
            };
            Some(PartitionBound::Range(limits("lowerdatums")?, limits("upperdatums")?))
        }
        "h" => {
            let number = |name| u64::try_from(node.number(name)?).ok();
            let (modulus, remainder) = (number("modulus")?, number("remainder")?);
            (modulus > 0).then_some(PartitionBound::Hash { modulus, remainder })
        }
        _ => None,
    }
}

fn range_limit(tree: &Tree) -> Option<RangeLimit> {
    let node = tree.node()?;
    match node.number("kind")? {
        -1 => Some(RangeLimit::Least),
        0 => Some(RangeLimit::Value(node.field("value")?.node()?.constant()?.payload?)),
        1 => Some(RangeLimit::Most),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONST: &str = "{CONST :consttype 23 :constlen 4 :constbyval true :constisnull false :constvalue 4 [ 5 0 0 0 0 0 0 0 ]}";

    #[test]
    fn bounds_of_every_kind_are_read() {
        let spec = |fields: &str| {
            PartitionBound::parse(format!("{{PARTITIONBOUNDSPEC {fields}}}").as_bytes())
        };
        assert_eq!(spec(":strategy l :is_default true").unwrap(), PartitionBound::Default);
        let null = "{CONST :consttype 23 :constlen 4 :constisnull true :constvalue <>}";
        assert_eq!(
            spec(&format!(":strategy l :is_default false :listdatums ({CONST} {null})")).unwrap(),
            PartitionBound::List(vec![Some(vec![5, 0, 0, 0]), None])
        );
        let five = format!("{{PARTITIONRANGEDATUM :kind 0 :value {CONST} :location 3}}");
        let end = |kind| format!("{{PARTITIONRANGEDATUM :kind {kind} :value <> :location 3}}");
        let range = format!(
            ":strategy r :is_default false :lowerdatums ({five} {}) :upperdatums ({five} {})",
            end(-1),
            end(1)
        );
        let value = RangeLimit::Value(vec![5, 0, 0, 0]);
        assert_eq!(
            spec(&range).unwrap(),
            PartitionBound::Range(
                vec![value.clone(), RangeLimit::Least],
                vec![value, RangeLimit::Most]
            )
        );
        assert_eq!(
            spec(":strategy h :is_default false :modulus 4 :remainder 3").unwrap(),
            PartitionBound::Hash { modulus: 4, remainder: 3 }
        );
        assert!(spec(":strategy h :is_default false :modulus 0 :remainder 0").is_err());
        assert!(PartitionBound::parse(CONST.as_bytes()).is_err());
    }
}
