//! `ts_rewrite`: parts of a query replaced by another query.
//!
//! AND and OR are flattened and their operands sorted first, so that what is alike looks alike; the result is made of pairs
//! again.
//!
//! Invariant: a tree has no more levels than [`MOST_LEVELS`], so that what recurses has stack enough.
//!
//! Source: `tsquery_rewrite`, `findeq` and `dofindsubquery` in `src/backend/utils/adt/tsquery_rewrite.c`, `QTNTernary`,
//! `QTNSort`, `QTNodeCompare`, `QTNBinary` and `fillQT` in `tsquery_util.c`, PostgreSQL 14 to 18.

use std::cmp::Ordering;

use super::super::rows::Outcome;
use super::query::{Kind, Node, Operand, Operator, Query, damaged, payload};
use super::sorting::sort;
use crate::error::StatementError;

const MOST_LEVELS: usize = 500;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Tree<'a> {
    Word(Operand<'a>),
    Operator { operator: Operator, operands: Vec<Tree<'a>> },
}

impl<'a> Tree<'a> {
    /// The tree of a query that has words; flat and sorted, or as it is.
    fn of(query: &Query<'a>, is_flat: bool) -> Outcome<Self> {
        // What follows, the next one last, each with how many levels it has.
        let mut known: Vec<(Self, usize)> = Vec::new();
        for node in query.nodes.iter().rev() {
            let operator = match node {
                Node::Operand(operand) => {
                    known.push((Self::Word(*operand), 1));
                    continue;
                }
                Node::Operator(operator) => *operator,
            };
            let count = if operator.kind == Kind::Not { 1 } else { 2 };
            let (mut operands, mut levels) = (Vec::new(), 0);
            for _ in 0..count {
                let (tree, deep) = known.pop().ok_or_else(damaged)?;
                let joins = is_flat && tree.is_of(operator.kind);
                levels = levels.max(if joins { deep } else { deep + 1 });
                match tree {
                    Self::Operator { operands: inner, .. } if joins => operands.extend(inner),
                    tree => operands.push(tree),
                }
            }
            if levels > MOST_LEVELS {
                return Err(StatementError::unsupported("ts_rewrite of a query of so many levels"));
            }
            known.push((Self::Operator { operator, operands }, levels));
        }
        let (mut tree, _) = known.pop().ok_or_else(damaged)?;
        if is_flat {
            tree.sort();
        }
        Ok(tree)
    }

    /// True for an operator of this kind that may stand within another one of it without parentheses.
    fn is_of(&self, kind: Kind) -> bool {
        let Self::Operator { operator, .. } = self else { return false };
        operator.kind == kind && matches!(kind, Kind::And | Kind::Or)
    }

    /// Sorts the operands of every AND and OR.
    fn sort(&mut self) {
        let Self::Operator { operator, operands } = self else { return };
        operands.iter_mut().for_each(Self::sort);
        if matches!(operator.kind, Kind::And | Kind::Or) {
            sort(operands, &Self::order);
        }
    }

    fn order(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Word(a), Self::Word(b)) => {
                b.checksum.cmp(&a.checksum).then_with(|| a.text.cmp(b.text))
            }
            (Self::Operator { .. }, Self::Word(_)) => Ordering::Less,
            (Self::Word(_), Self::Operator { .. }) => Ordering::Greater,
            (
                Self::Operator { operator: a, operands: of_a },
                Self::Operator { operator: b, operands: of_b },
            ) => {
                let heads = b.kind.cmp(&a.kind).then_with(|| of_b.len().cmp(&of_a.len()));
                let mut pairs = of_a.iter().zip(of_b).map(|(a, b)| a.order(b));
                let mut differs = || pairs.find(|order| order.is_ne()).unwrap_or(Ordering::Equal);
                let distances = match a.kind {
                    Kind::Phrase => b.distance.cmp(&a.distance),
                    _ => Ordering::Equal,
                };
                heads.then_with(&mut differs).then(distances)
            }
        }
    }
}

/// What parts of a tree are replaced by.
struct Replacement<'a, 't> {
    part: &'t Tree<'a>,
    /// None where the parts go away.
    by: Option<&'t Tree<'a>>,
}

/// What became of a tree.
enum Replaced<'a> {
    /// It was replaced as a whole, perhaps by nothing.
    Whole(Option<Tree<'a>>),
    Tree(Tree<'a>, Option<usize>),
}

impl<'a> Replacement<'a, '_> {
    /// The tree with what stands for the part, wherever that was in it.
    fn within(&self, tree: Tree<'a>) -> Outcome<Option<Tree<'a>>> {
        let (tree, new) = match self.at_root(tree)? {
            Replaced::Whole(tree) => return Ok(tree),
            Replaced::Tree(tree, new) => (tree, new),
        };
        let Tree::Operator { operator, operands } = tree else { return Ok(Some(tree)) };
        let mut left = Vec::with_capacity(operands.len());
        for (number, operand) in operands.into_iter().enumerate() {
            match new == Some(number) {
                true => left.push(operand),
                false => left.extend(self.within(operand)?),
            }
        }
        Ok(match left.len() {
            0 => None,
            1 if operator.kind != Kind::Not => left.pop(),
            _ => Some(Tree::Operator { operator, operands: left }),
        })
    }

    /// Replaces a tree that is the part, or those of its operands that together are. Tells which operand is the new one.
    fn at_root(&self, tree: Tree<'a>) -> Outcome<Replaced<'a>> {
        let (
            Tree::Operator { operator, operands },
            Tree::Operator { operator: wanted, operands: some },
        ) = (&tree, self.part)
        else {
            return Ok(self.if_equal(tree));
        };
        if operator.kind != wanted.kind || operands.len() < some.len() {
            return Ok(Replaced::Tree(tree, None));
        }
        if operands.len() == some.len() {
            return Ok(self.if_equal(tree));
        }
        let Some(found) = places_of(some, operands) else {
            return Ok(Replaced::Tree(tree, None));
        };
        let operator = *operator;
        let Tree::Operator { operands, .. } = tree else { return Err(damaged()) };
        Ok(self.in_place(operator, operands, &found))
    }

    fn if_equal(&self, tree: Tree<'a>) -> Replaced<'a> {
        match tree.order(self.part).is_eq() {
            true => Replaced::Whole(self.by.cloned()),
            false => Replaced::Tree(tree, None),
        }
    }

    /// Takes some operands away, and sorts what stands for them in.
    fn in_place(
        &self,
        operator: Operator,
        operands: Vec<Tree<'a>>,
        found: &[usize],
    ) -> Replaced<'a> {
        let others = operands.into_iter().enumerate();
        let others = others.filter(|(number, _)| !found.contains(number));
        let mut operands: Vec<(Tree<'a>, bool)> = others.map(|(_, other)| (other, false)).collect();
        if let Some(by) = self.by {
            let mut by = by.clone();
            by.sort();
            operands.push((by, true));
            if matches!(operator.kind, Kind::And | Kind::Or) {
                sort(&mut operands, &|a, b| a.0.order(&b.0));
            }
        }
        let new = operands.iter().position(|(_, is_new)| *is_new);
        let operands = operands.into_iter().map(|(operand, _)| operand).collect();
        Replaced::Tree(Tree::Operator { operator, operands }, new)
    }
}

/// Where the operands of a part are among others, both sorted; none where some is not there.
fn places_of(some: &[Tree<'_>], operands: &[Tree<'_>]) -> Option<Vec<usize>> {
    let mut found = Vec::with_capacity(some.len());
    let mut others = operands.iter().enumerate();
    for wanted in some {
        let known = others.by_ref().find(|(_, other)| other.order(wanted).is_ge());
        found.push(known.filter(|(_, other)| other.order(wanted).is_eq())?.0);
    }
    Some(found)
}

/// The nodes of a tree. Of many operands the first two are a pair, that and the last one are, and so on towards the third.
fn nodes<'a>(tree: &Tree<'a>, out: &mut Vec<Node<'a>>) {
    let (operator, operands) = match tree {
        Tree::Word(operand) => return out.push(Node::Operand(*operand)),
        Tree::Operator { operator, operands } => (operator, operands),
    };
    if operator.kind == Kind::Not {
        out.push(Node::Operator(*operator));
        return operands.iter().for_each(|operand| nodes(operand, out));
    }
    let Some((first, others)) = operands.split_first() else { return };
    let begin = out.len();
    out.extend(others.iter().map(|_| Node::Operator(*operator)));
    let operators = (begin..out.len()).rev();
    nodes(first, out);
    let second = others.iter().take(1);
    let others = second.chain(others.iter().skip(1).rev());
    for (at, other) in operators.zip(others) {
        let to_left = (out.len() - at) as u32;
        out[at] = Node::Operator(Operator { to_left, ..*operator });
        nodes(other, out);
    }
}

/// The query with all that is like a part of it replaced.
pub(super) fn rewritten(query: &[u8], part: &[u8], by: &[u8]) -> Outcome<Vec<u8>> {
    let (tree, part, by) = (Query::read(query)?, Query::read(part)?, Query::read(by)?);
    if tree.is_empty() || part.is_empty() {
        return Ok(query.to_vec());
    }
    let (tree, part) = (Tree::of(&tree, true)?, Tree::of(&part, true)?);
    let by = if by.is_empty() { None } else { Some(Tree::of(&by, false)?) };
    let replacement = Replacement { part: &part, by: by.as_ref() };
    let mut out = Vec::new();
    if let Some(tree) = replacement.within(tree)? {
        nodes(&tree, &mut out);
    }
    payload(out.into_iter())
}
