//! How large the decimals must be that hold every value of numeric columns.
//!
//! Invariant: what is measured are the places that values are printed with, so that no zero is lost behind the point of the
//! value with most of them; and that the result is that of one job, whatever their number.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{Builder, ScopedJoinHandle};

use pagemill_cluster::{Cluster, ValueCatalog};
use pagemill_engine::{
    DamageLog, Error as EngineError, OnDamage, Progress, RowSource, ScanOptions, ScanRequest,
    Table, TableScan,
};
use pagemill_types::decode::payload;
use pagemill_types::value::Numeric;

use crate::error::Result;
use crate::options::{ArrowOptions, MOST_DIGITS};
use crate::plan::{Measured, to_measure};

/// Blocks of a share (8 MiB).
const SHARE_BLOCKS: u32 = 1024;

/// Digits before the point and behind it; `None` once a value is no number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Extent(Option<(i32, i32)>);

impl Extent {
    pub(crate) const NOTHING: Self = Self(Some((0, 0)));

    fn include(&mut self, other: Self) {
        self.0 = match (self.0, other.0) {
            (Some(own), Some(other)) => Some((own.0.max(other.0), own.1.max(other.1))),
            _ => None,
        };
    }

    pub(crate) fn add(&mut self, number: &Numeric<'_>) {
        let Some((before, behind)) = &mut self.0 else { return };
        match number {
            Numeric::Finite { dscale, weight, digits, .. } => {
                let first = digits.first().map_or(0, |digit| u16::from_le_bytes(*digit));
                let digits = 4 * *weight + first.checked_ilog10().map_or(0, |log| log as i32 + 1);
                *before = digits.max(*before);
                *behind = i32::from(*dscale).max(*behind);
            }
            _ => self.0 = None,
        }
    }

    /// Precision and scale of the decimal that holds them all.
    pub(crate) fn decimal(self) -> Option<(u8, u8)> {
        let (before, behind) = self.0?;
        let digits = u8::try_from((before.max(0) + behind).max(1)).ok()?;
        (digits <= MOST_DIGITS).then_some((digits, u8::try_from(behind).ok()?))
    }
}

/// Measures the numerics of a table that say nothing about their size, with all jobs. What is damaged is passed over here: it is
/// met again.
pub(crate) fn measure(
    source: &RowSource<'_>,
    catalog: &ValueCatalog,
    options: &ArrowOptions,
    progress: &Progress,
) -> Result<Measured> {
    let wanted = to_measure(catalog, source.named(), options)?;
    let mut extents = vec![Extent::NOTHING; wanted.len()];
    if wanted.is_empty() {
        return Ok(Measured::new());
    }
    let names: Vec<_> = wanted.iter().map(|at| source.named().columns[*at].name.clone()).collect();
    let mut damage = DamageLog::new(OnDamage::Skip);
    for part in source.parts() {
        let (table, scan) = source.open_part(part, options.scan, &mut damage)?;
        let columns = pagemill_engine::column_positions(catalog, part, Some(&names))?;
        let cluster = source.database().cluster();
        let shares = TableScan::shares(cluster, &table, scan, SHARE_BLOCKS)?;
        let work = PartWork { cluster, catalog, table, columns, scan, shares, progress };
        work.measure(&mut extents)?;
    }
    Ok(wanted.into_iter().zip(extents.into_iter().map(Extent::decimal)).collect())
}

/// What the jobs that measure one part have in common.
struct PartWork<'p> {
    cluster: &'p Cluster,
    catalog: &'p ValueCatalog,
    table: Arc<Table>,
    columns: Vec<usize>,
    scan: ScanOptions,
    shares: Vec<Range<u32>>,
    progress: &'p Progress,
}

impl PartWork<'_> {
    fn measure(&self, extents: &mut [Extent]) -> Result<()> {
        let next = AtomicUsize::new(0);
        let jobs = self.scan.jobs.min(self.shares.len());
        let before: &[Extent] = extents;
        let found: Vec<Result<Vec<Extent>>> = std::thread::scope(|scope| {
            let job = || self.measure_shares(&next, before.to_vec());
            let started = |_| Builder::new().spawn_scoped(scope, job);
            let others: Vec<_> = (1..jobs).map(started).collect();
            let own = job();
            let ends = others.into_iter().map(|other| match other.map(ScopedJoinHandle::join) {
                Ok(Ok(found)) => found,
                Ok(Err(_)) => Err(EngineError::Worker.into()),
                Err(error) => Err(EngineError::Threads(error).into()),
            });
            std::iter::once(own).chain(ends).collect()
        });
        for found in found {
            extents.iter_mut().zip(found?).for_each(|(extent, other)| extent.include(other));
        }
        Ok(())
    }

    fn request(&self) -> ScanRequest<'_> {
        let Self { cluster, table, progress, .. } = self;
        ScanRequest { cluster, table, options: self.scan, progress }
    }

    /// Measures one share after the other, of those that no other job has taken, until no decimal can hold any of the
    /// columns.
    fn measure_shares(&self, next: &AtomicUsize, mut extents: Vec<Extent>) -> Result<Vec<Extent>> {
        let mut damage = DamageLog::new(OnDamage::Skip);
        let (mut lookups, mut buffer) = (self.catalog.lookups(), Vec::new());
        let columns = &self.table.relation.columns;
        let lens: Vec<i16> = self.columns.iter().map(|at| columns[*at].layout.len).collect();
        while let Some(share) = self.shares.get(next.fetch_add(1, Ordering::Relaxed)) {
            let share = std::slice::from_ref(share);
            let mut scan = TableScan::of_blocks(self.request(), &self.columns, share)?;
            while let Some(batch) = scan.next_batch(&mut damage)? {
                for row in batch.rows() {
                    for (at, (extent, len)) in extents.iter_mut().zip(&lens).enumerate() {
                        let Some(raw) = row.raw(at) else { continue };
                        let bytes = payload(&mut lookups, *len, raw, &mut buffer);
                        if let Ok(number) = bytes.and_then(Numeric::parse) {
                            extent.add(&number);
                        }
                    }
                }
            }
            if extents.iter().all(|extent| extent.decimal().is_none()) {
                break;
            }
        }
        Ok(extents)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(texts: &[&str]) -> Option<(u8, u8)> {
        let mut extent = Extent::NOTHING;
        for text in texts {
            let mut bytes = Vec::new();
            pagemill_types::input::numeric::read_numeric(text.as_bytes(), -1, &mut bytes).unwrap();
            extent.add(&Numeric::parse(&bytes).unwrap());
        }
        extent.decimal()
    }

    #[test]
    fn the_decimal_has_room_for_the_longest_parts() {
        assert_eq!(extent(&[]), Some((1, 0)));
        assert_eq!(extent(&["0"]), Some((1, 0)));
        assert_eq!(extent(&["12345", "0.001"]), Some((8, 3)));
        assert_eq!(extent(&["1.500"]), Some((4, 3)), "places are kept as printed");
        assert_eq!(extent(&["-99999999", "0.0001"]), Some((12, 4)));
        assert_eq!(extent(&["1e37"]), Some((38, 0)));
        assert_eq!(extent(&["1e38"]), None);
        assert_eq!(extent(&["1e30", "1e-9"]), None);
        assert_eq!(extent(&["1", "NaN"]), None);
    }

    #[test]
    fn what_several_jobs_measured_is_put_together() {
        let together = |one, other| {
            let mut extent = Extent(one);
            extent.include(Extent(other));
            extent.0
        };
        assert_eq!(together(Some((3, 1)), Some((2, 7))), Some((3, 7)));
        assert_eq!(together(Some((3, 1)), None), None);
        assert_eq!(together(None, Some((3, 1))), None);
    }
}
