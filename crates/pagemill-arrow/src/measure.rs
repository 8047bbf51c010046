//! How large the decimals must be that hold every value of numeric columns.
//!
//! Invariant: what is measured are the places that values are printed with, so that no zero is lost behind the point of the
//! value with most of them.

use pagemill_cluster::ValueCatalog;
use pagemill_engine::{DamageLog, OnDamage, Progress, RowSource, ScanOptions, TableScan};
use pagemill_format::tuple::AttributeLayout;
use pagemill_types::decode::payload;
use pagemill_types::value::Numeric;

use crate::error::Result;
use crate::options::{ArrowOptions, MOST_DIGITS};
use crate::plan::{Measured, to_measure};

/// Digits before the point and behind it; `None` once a value is no number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Extent(Option<(i32, i32)>);

impl Extent {
    fn add(&mut self, number: &Numeric<'_>) {
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
    fn decimal(self) -> Option<(u8, u8)> {
        let (before, behind) = self.0?;
        let digits = u8::try_from((before.max(0) + behind).max(1)).ok()?;
        (digits <= MOST_DIGITS).then_some((digits, u8::try_from(behind).ok()?))
    }
}

/// Measures the numerics of a table that say nothing about their size. What is damaged is passed over here: it is met again.
pub(crate) fn measure(
    source: &RowSource<'_>,
    catalog: &ValueCatalog,
    options: &ArrowOptions,
    progress: &Progress,
) -> Result<Measured> {
    let wanted = to_measure(catalog, source.named(), options)?;
    let mut extents = vec![Extent(Some((0, 0))); wanted.len()];
    if wanted.is_empty() {
        return Ok(Measured::new());
    }
    let names: Vec<_> = wanted.iter().map(|at| source.named().columns[*at].name.clone()).collect();
    let mut damage = DamageLog::new(OnDamage::Skip);
    for part in source.parts() {
        let (table, _) = source.open_part(part, options.scan, &mut damage)?;
        let columns = pagemill_engine::column_positions(catalog, part, Some(&names))?;
        let layouts: Vec<AttributeLayout> =
            columns.iter().map(|at| part.columns[*at].layout).collect();
        let scan = ScanOptions { jobs: 1, ..options.scan };
        let cluster = source.database().cluster();
        let mut scan = TableScan::new(cluster, &table, &columns, scan, progress)?;
        let (mut lookups, mut buffer) = (catalog.lookups(), Vec::new());
        while let Some(batch) = scan.next_batch(&mut damage)? {
            for row in batch.rows() {
                for (at, extent) in extents.iter_mut().enumerate() {
                    let Some(raw) = row.raw(at) else { continue };
                    let bytes = payload(&mut lookups, layouts[at].len, raw, &mut buffer);
                    if let Ok(number) = bytes.and_then(Numeric::parse) {
                        extent.add(&number);
                    }
                }
            }
        }
    }
    Ok(wanted.into_iter().zip(extents.into_iter().map(Extent::decimal)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(texts: &[&str]) -> Option<(u8, u8)> {
        let mut extent = Extent(Some((0, 0)));
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
}
