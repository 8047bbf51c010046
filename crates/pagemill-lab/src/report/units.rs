//! Figures with units that fit: three digits or so, and one unit for all that stand below each other.
//!
//! Invariants: what is no number (a division by no time at all) prints as a dash, never as `NaN`; a value keeps at
//! least three significant digits, so that a ratio taken by eye from a table is right within a percent.

use crate::results::Figure;

/// What stands where there is nothing to say.
pub(super) const NOTHING: &str = "–";

/// A unit: its name, and its size in seconds, bytes per second or operations per second.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Unit(&'static str, f64);

const KIB: f64 = 1024.0;
const SECONDS: [Unit; 4] = [Unit("s", 1.0), Unit("ms", 1e-3), Unit("µs", 1e-6), Unit("ns", 1e-9)];
const BYTES_PER_SECOND: [Unit; 4] = [
    Unit("GiB/s", 10.0 * KIB * KIB * KIB),
    Unit("MiB/s", KIB * KIB),
    Unit("KiB/s", KIB),
    Unit("B/s", 1.0),
];
const PER_SECOND: [Unit; 3] = [Unit("M/s", 1e6), Unit("k/s", 1e3), Unit("/s", 1.0)];
const COUNTS: [Unit; 1] = [Unit("", 1.0)];

/// Values further apart than this get a unit each.
const WIDEST: f64 = 1e5;

/// The unit in which the figures of one group are told.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scale {
    units: &'static [Unit],
    common: Option<Unit>,
}

impl Scale {
    /// The unit that suits the smallest of the values, unless they lie too far apart for one.
    pub(super) fn fitting(figure: Figure, values: impl IntoIterator<Item = f64>) -> Self {
        let units = units_of(figure);
        let usable = |value: &f64| value.is_finite() && *value > 0.0;
        let range =
            values.into_iter().filter(usable).fold(None, |range: Option<(f64, f64)>, value| {
                Some(range.map_or((value, value), |(low, high)| (low.min(value), high.max(value))))
            });
        let common =
            range.filter(|(low, high)| high / low <= WIDEST).map(|(low, _)| best(units, low));
        Self { units, common }
    }

    /// For time alone, value by value.
    pub(super) fn seconds() -> Self {
        Self { units: &SECONDS, common: None }
    }

    /// For throughput alone, value by value.
    pub(super) fn bytes_per_second() -> Self {
        Self { units: &BYTES_PER_SECOND, common: None }
    }

    /// A value with its unit.
    pub(super) fn show(&self, value: f64) -> String {
        if !value.is_finite() {
            return NOTHING.to_owned();
        }
        if value == 0.0 || self.is_count() {
            return short(value);
        }
        let unit = self.unit(value);
        with_unit(&digits(value / size(unit)), unit)
    }

    /// Name and size of the unit for a chart, whose grid is to lie at round values of it.
    pub(super) fn of_chart(&self, smallest: f64) -> (&'static str, f64) {
        let unit = self.unit(smallest);
        (unit.0, size(unit))
    }

    /// Two ends of an interval; the unit is left out when all values of the group have the same.
    pub(super) fn show_range(&self, low: f64, high: f64) -> String {
        match self.common {
            Some(_) if self.is_count() => format!("{}–{}", short(low), short(high)),
            Some(unit) => range(low / size(unit), high / size(unit)),
            None => format!("{} – {}", self.show(low), self.show(high)),
        }
    }

    /// Counts are mostly whole, and read better so.
    fn is_count(&self) -> bool {
        self.units == COUNTS
    }

    fn unit(&self, value: f64) -> Unit {
        self.common.unwrap_or_else(|| best(self.units, value.abs()))
    }
}

/// Two ends of an interval of plain numbers; a missing end is told as such.
pub(super) fn range(low: f64, high: f64) -> String {
    format!("{}–{}", digits(low), digits(high))
}

/// A number with three significant digits or more, thousands set apart.
pub(super) fn digits(value: f64) -> String {
    if !value.is_finite() {
        return NOTHING.to_owned();
    }
    match value.abs() {
        size if size >= 1e15 => format!("{value:.2e}"),
        size if size >= 99.95 => grouped(value),
        size if size >= 9.995 => format!("{value:.1}"),
        size if size >= 0.9995 => format!("{value:.2}"),
        0.0 => "0".to_owned(),
        size if size >= 0.0005 => format!("{value:.3}"),
        _ => format!("{value:.1e}"),
    }
}

/// A count, thousands set apart.
pub(super) fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A size in bytes.
pub(super) fn size_of(bytes: u64) -> String {
    let names = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut value = bytes as f64;
    let mut name = names.iter();
    let mut unit = name.next().copied().unwrap_or_default();
    for larger in name {
        if value < KIB {
            break;
        }
        (value, unit) = (value / KIB, larger);
    }
    if bytes == 1 {
        return "1 byte".to_owned();
    }
    if bytes < 1024 { format!("{bytes} bytes") } else { format!("{} {unit}", short(value)) }
}

/// How long something took, for people: `14 min 3 s`.
pub(super) fn duration(seconds: f64) -> String {
    if !seconds.is_finite() || seconds < 60.0 {
        return Scale::seconds().show(seconds);
    }
    let whole = seconds.round() as u64;
    match whole / 3600 {
        0 => format!("{} min {} s", whole / 60, whole % 60),
        hours => format!("{hours} h {} min", whole / 60 % 60),
    }
}

/// Three digits at most, without zeros at the end: for sizes and ticks, which are round.
pub(super) fn short(value: f64) -> String {
    let text = digits(value);
    if !text.contains('.') || text.contains('e') {
        return text;
    }
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn units_of(figure: Figure) -> &'static [Unit] {
    match figure {
        Figure::Elapsed | Figure::Latency => &SECONDS,
        Figure::Throughput => &BYTES_PER_SECOND,
        Figure::Rate => &PER_SECOND,
        Figure::Count => &COUNTS,
    }
}

/// The largest unit of which there is at least one, or the smallest.
fn best(units: &[Unit], value: f64) -> Unit {
    let fits = |unit: &&Unit| value >= unit.1 * 0.9995;
    units.iter().find(fits).or(units.last()).copied().unwrap_or(Unit("", 1.0))
}

/// Throughput changes to GiB/s late, at ten of them, so that neighbouring tables share MiB/s; the size is one all the same.
fn size(unit: Unit) -> f64 {
    if unit.0 == "GiB/s" { KIB * KIB * KIB } else { unit.1 }
}

fn with_unit(number: &str, unit: Unit) -> String {
    match unit.0 {
        "" => number.to_owned(),
        name if name.starts_with('/') => format!("{number}{name}"),
        name => format!("{number} {name}"),
    }
}

fn grouped(value: f64) -> String {
    let text = count(value.abs().round() as u64);
    if value < 0.0 { format!("-{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_told_in_the_unit_of_its_smallest_value() {
        let scale = Scale::fitting(Figure::Elapsed, [0.0123, 1.5]);
        assert_eq!((scale.show(0.0123), scale.show(1.5)), ("12.3 ms".into(), "1,500 ms".into()));
        assert_eq!(scale.show_range(0.0121, 0.0126), "12.1–12.6");
    }

    #[test]
    fn values_far_apart_get_a_unit_each() {
        let scale = Scale::fitting(Figure::Latency, [2e-6, 3.0]);
        assert_eq!((scale.show(2e-6), scale.show(3.0)), ("2.00 µs".into(), "3.00 s".into()));
        assert_eq!(scale.show_range(9e-7, 2e-6), "900 ns – 2.00 µs");
    }

    #[test]
    fn throughput_stays_in_mib_until_ten_gib() {
        let show = |value: f64| Scale::fitting(Figure::Throughput, [value]).show(value);
        assert_eq!(show(3.5 * KIB * KIB * KIB), "3,584 MiB/s");
        assert_eq!(show(12.5 * KIB * KIB * KIB), "12.5 GiB/s");
        assert_eq!(show(812.0 * KIB * KIB), "812 MiB/s");
    }

    #[test]
    fn what_is_no_number_is_a_dash() {
        assert_eq!(Scale::fitting(Figure::Rate, [f64::NAN]).show(f64::INFINITY), NOTHING);
        assert_eq!(digits(f64::NAN), NOTHING);
    }

    #[test]
    fn digits_keep_three_that_count() {
        let cases =
            [(99.96, "100"), (9.996, "10.0"), (0.9996, "1.00"), (0.012, "0.012"), (0.0, "0")];
        for (value, text) in cases {
            assert_eq!(digits(value), text);
        }
        assert_eq!((digits(-12345.0), digits(1e-5)), ("-12,345".into(), "1.0e-5".into()));
    }

    #[test]
    fn sizes_and_times_read_as_people_say_them() {
        assert_eq!(
            (size_of(512), size_of(1 << 20), size_of(1_395_864_371)),
            ("512 bytes".into(), "1 MiB".into(), "1.3 GiB".into())
        );
        assert_eq!(
            (duration(843.0), duration(7300.0), duration(1.5)),
            ("14 min 3 s".into(), "2 h 1 min".into(), "1.50 s".into())
        );
        assert_eq!(count(1_310_720), "1,310,720");
    }
}
