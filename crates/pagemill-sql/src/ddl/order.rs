//! In which order relations are made: what a relation needs comes before it.
//!
//! A partition or a child needs its parents, a view what its query names, a table the sequences of its defaults. Invariant: each
//! chosen relation comes once; where some need each other in a circle, the one that was met first comes last of it.

use std::collections::{HashMap, HashSet};

use pagemill_format::Oid;

use super::damaged;
use super::query::Catalogs;
use crate::error::Result;

/// Which relation needs which, among the chosen.
const NEEDS: &str = "
select inhrelid, inhparent from pg_catalog.pg_inherits where inhrelid = any ({chosen})
union
select r.ev_class, d.refobjid from pg_catalog.pg_depend d join pg_catalog.pg_rewrite r on r.oid = d.objid
where d.classid = 'pg_catalog.pg_rewrite'::pg_catalog.regclass and d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass
  and r.ev_class = any ({chosen}) and r.rulename = '_RETURN' and d.refobjid <> r.ev_class
union
select a.adrelid, d.refobjid from pg_catalog.pg_depend d join pg_catalog.pg_attrdef a on a.oid = d.objid
where d.classid = 'pg_catalog.pg_attrdef'::pg_catalog.regclass and d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass
  and a.adrelid = any ({chosen}) and d.refobjid <> a.adrelid
order by 1, 2";

/// The chosen relations, what is needed before what needs it, and else as they come.
pub(super) fn needed_first(catalogs: &Catalogs<'_>, chosen: &[Oid]) -> Result<Vec<Oid>> {
    let mut needs: HashMap<Oid, Vec<Oid>> = HashMap::new();
    for row in catalogs.rows(NEEDS, chosen)? {
        let number = |at: usize| row.get(at)?.as_ref()?.parse().ok().map(Oid);
        let pair = number(0).zip(number(1));
        let (relation, needed) = pair.ok_or_else(|| damaged("an OID is no number".to_owned()))?;
        needs.entry(relation).or_default().push(needed);
    }
    Ok(sorted(chosen, &needs))
}

fn sorted(chosen: &[Oid], needs: &HashMap<Oid, Vec<Oid>>) -> Vec<Oid> {
    let wanted: HashSet<Oid> = chosen.iter().copied().collect();
    let (mut met, mut order) = (HashSet::new(), Vec::new());
    // By a stack of its own, as views may be stacked deeply: a relation is taken up again once all that it needs is there.
    let mut stack: Vec<(Oid, bool)> = chosen.iter().rev().map(|oid| (*oid, false)).collect();
    while let Some((oid, is_ready)) = stack.pop() {
        if is_ready {
            order.push(oid);
        } else if wanted.contains(&oid) && met.insert(oid) {
            stack.push((oid, true));
            let needed = needs.get(&oid).into_iter().flatten().rev();
            stack.extend(needed.map(|needed| (*needed, false)));
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(chosen: &[u32], needs: &[(u32, u32)]) -> Vec<u32> {
        let chosen: Vec<Oid> = chosen.iter().copied().map(Oid).collect();
        let mut by_relation: HashMap<Oid, Vec<Oid>> = HashMap::new();
        for (relation, needed) in needs {
            by_relation.entry(Oid(*relation)).or_default().push(Oid(*needed));
        }
        sorted(&chosen, &by_relation).into_iter().map(|oid| oid.0).collect()
    }

    #[test]
    fn what_is_needed_comes_first_and_the_rest_stays_as_it_came() {
        assert_eq!(order(&[3, 1, 2], &[]), [3, 1, 2]);
        assert_eq!(order(&[3, 1, 2], &[(3, 2), (2, 1)]), [1, 2, 3]);
        assert_eq!(order(&[1, 2], &[(1, 7), (7, 2)]), [1, 2], "what was not chosen is not made");
    }

    #[test]
    fn a_circle_ends_and_has_each_relation_once() {
        assert_eq!(order(&[1, 2], &[(1, 2), (2, 1)]), [2, 1]);
        assert_eq!(order(&[1], &[(1, 1)]), [1]);
    }
}
