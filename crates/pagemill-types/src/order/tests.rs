//! Orders against what each type's definition says, and abbreviations against the orders.
//! Invariant under test: a lower abbreviation never belongs to a higher value.

use pagemill_format::tuple::AttributeLayout;
use proptest::prelude::*;

use super::*;

const TYPES: &[u32] = &[
    16, 17, 18, 19, 20, 21, 23, 24, 25, 26, 27, 30, 650, 700, 701, 774, 790, 829, 869, 1042, 1043,
    1082, 1083, 1114, 1184, 1186, 1266, 1560, 1562, 1700, 2950, 3220, 5069,
];

fn order(oid: u32) -> ValueOrder {
    ValueOrder::of_type(Oid(oid), &TextCollation::C).unwrap()
}

/// Values in ascending order.
fn assert_ascending(oid: u32, values: &[&[u8]]) {
    let order = order(oid);
    for pair in values.windows(2) {
        assert_eq!(order.compare(pair[0], pair[1]), Ordering::Less, "{oid} {pair:?}");
        assert_eq!(order.compare(pair[1], pair[0]), Ordering::Greater, "{oid} {pair:?}");
        assert!(order.abbreviate(pair[0]) <= order.abbreviate(pair[1]), "{oid} {pair:?}");
    }
}

fn assert_equal(oid: u32, a: &[u8], b: &[u8]) {
    assert_eq!(order(oid).compare(a, b), Ordering::Equal);
    assert_eq!(order(oid).abbreviate(a), order(oid).abbreviate(b));
}

#[test]
fn types_without_an_order_here_have_none() {
    // Those made of others are for whoever knows what they are made of.
    for oid in [114, 600, 1009, 3802, 3904, 16_384] {
        assert!(ValueOrder::of_type(Oid(oid), &TextCollation::C).is_none());
    }
}

#[test]
fn integers_have_signs_and_identifiers_none() {
    let i32 = |n: i32| n.to_le_bytes();
    assert_ascending(23, &[&i32(i32::MIN), &i32(-1), &i32(0), &i32(1), &i32(i32::MAX)]);
    assert_ascending(26, &[&i32(0), &i32(i32::MAX), &i32(i32::MIN), &i32(-1)]);
    assert_ascending(18, &[&[0x20], &[0x7F], &[0x80]]);
}

#[test]
fn not_a_number_is_above_infinity_and_zero_has_no_sign() {
    let f64 = |n: f64| n.to_le_bytes();
    let ascending = [f64::NEG_INFINITY, -1.5, -1e-300, 0.0, 1e-300, 2.0, f64::INFINITY, f64::NAN];
    let bytes = ascending.map(f64);
    assert_ascending(701, &bytes.each_ref().map(|bytes| &bytes[..]));
    assert_equal(701, &f64(-0.0), &f64(0.0));
    assert_equal(700, &(-0.0_f32).to_le_bytes(), &0.0_f32.to_le_bytes());
    assert_equal(701, &f64(f64::NAN), &f64(-f64::NAN));
}

/// A short header: scale 0.
fn numeric(negative: bool, weight: i8, digits: &[u16]) -> Vec<u8> {
    let header = 0x8000 | u16::from(negative) << 13 | (weight as u16 & 0x7F);
    let words = std::iter::once(&header).chain(digits);
    words.flat_map(|word| word.to_le_bytes()).collect()
}

#[test]
fn numerics_are_ordered_by_value_whatever_their_form() {
    let values = [
        vec![0, 0xF0],
        numeric(true, 2, &[1]),
        numeric(true, 0, &[5, 1]),
        numeric(true, 0, &[5]),
        numeric(false, 0, &[]),
        numeric(false, -2, &[9999]),
        numeric(false, 0, &[1]),
        numeric(false, 0, &[1, 0, 0, 0, 7]),
        numeric(false, 1, &[1]),
        vec![0, 0xD0],
        vec![0, 0xC0],
    ];
    assert_ascending(1700, &values.each_ref().map(|value| &value[..]));
    assert_equal(1700, &numeric(false, 0, &[5]), &numeric(false, 0, &[5, 0]));
    assert_equal(1700, &numeric(true, 0, &[]), &numeric(false, 3, &[0]));
    // A long header with scale 2 and weight 0.
    assert_equal(1700, &numeric(false, 0, &[5]), &[2, 0, 0, 0, 5, 0]);
}

/// Found by the property below: what no server writes is still ordered in one way.
#[test]
fn numerics_that_are_damaged_have_abbreviations_that_agree_with_their_order() {
    let wide = [numeric(false, -40, &[0x4000, 1]), numeric(false, -40, &[0xC300])];
    assert_ascending(1700, &wide.each_ref().map(|value| &value[..]));
    // Long headers with the least weight there is, which zeros in front make less still.
    let tiny = |digits: &[u16]| {
        let words = [&[0, i16::MIN as u16][..], digits].concat();
        words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>()
    };
    let tiny = [tiny(&[0, 0, 7]), tiny(&[0, 3]), tiny(&[1])];
    assert_ascending(1700, &tiny.each_ref().map(|value| &value[..]));
}

#[test]
fn blanks_at_the_end_count_in_text_only() {
    assert_equal(1042, b"a  ", b"a");
    assert_ascending(1042, &[b"", b"a", b"b "]);
    assert_ascending(25, &[b"", b"a", b"a ", b"ab", "é".as_bytes()]);
}

#[test]
fn shorter_networks_come_first_and_ipv6_last() {
    let v4 = |prefix, a: [u8; 4]| [2, prefix, a[0], a[1], a[2], a[3]];
    let values = [v4(0, [0; 4]), v4(8, [10, 0, 0, 0]), v4(8, [10, 0, 0, 1]), v4(9, [10, 0, 0, 0])];
    assert_ascending(869, &values.each_ref().map(|value| &value[..]));
    let mut v6 = vec![3, 64];
    v6.extend([0; 16]);
    assert_ascending(869, &[&v4(32, [255; 4]), &v6]);
}

#[test]
fn intervals_count_months_of_thirty_days() {
    let interval = |time: i64, days: i32, months: i32| {
        [&time.to_le_bytes()[..], &days.to_le_bytes(), &months.to_le_bytes()].concat()
    };
    assert_equal(1186, &interval(0, 30, 0), &interval(0, 0, 1));
    assert_equal(1186, &interval(86_400_000_000, 0, 0), &interval(0, 1, 0));
    let (low, high) =
        (interval(i64::MIN, i32::MIN, i32::MIN), interval(i64::MAX, i32::MAX, i32::MAX));
    assert_ascending(1186, &[&low, &interval(-1, 0, 0), &interval(0, 0, 0), &high]);
}

#[test]
fn enums_go_by_the_order_of_their_labels() {
    let order = ValueOrder::Enum(Arc::new(EnumOrder::new([Oid(300), Oid(100), Oid(200)])));
    let label = |oid: u32| oid.to_le_bytes();
    for pair in [300, 100, 200, 50].windows(2) {
        assert_eq!(order.compare(&label(pair[0]), &label(pair[1])), Ordering::Less);
        assert!(order.abbreviate(&label(pair[0])) < order.abbreviate(&label(pair[1])));
    }
}

#[test]
fn a_collation_decides_and_bytes_when_it_does_not() {
    struct CaseBlind;
    impl Collation for CaseBlind {
        fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
            a.to_ascii_lowercase().cmp(&b.to_ascii_lowercase())
        }
    }
    let collation = TextCollation::Other(Arc::new(CaseBlind));
    let order = ValueOrder::of_type(Oid(25), &collation).unwrap();
    assert_eq!(order.compare(b"a", b"B"), Ordering::Less);
    assert_eq!(order.compare(b"A", b"a"), Ordering::Less);
    assert_eq!(order.compare(b"a", b"a"), Ordering::Equal);
    assert_eq!(order.abbreviate(b"z"), order.abbreviate(b"a"));
}

#[test]
fn values_that_can_be_equal_and_look_different_are_not_deduplicated() {
    let unlike: Vec<_> = TYPES.iter().filter(|oid| !order(**oid).has_equal_image()).collect();
    assert_eq!(unlike, [&700, &701, &1042, &1186, &1700]);
}

proptest! {
    #[test]
    fn abbreviations_agree_with_the_order_for_arbitrary_bytes(
        oid in prop::sample::select(TYPES),
        values in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..30), 3),
        tail in prop::collection::vec(any::<u8>(), 0..4),
    ) {
        let order = order(oid);
        let mut values = values;
        let mut longer = values[0].clone();
        longer.extend(tail);
        values.push(longer);
        for a in &values {
            for b in &values {
                let compared = order.compare(a, b);
                prop_assert_eq!(compared, order.compare(b, a).reverse());
                let abbreviated = order.abbreviate(a).cmp(&order.abbreviate(b));
                prop_assert!(abbreviated == compared || abbreviated == Ordering::Equal);
                prop_assert!(abbreviated == compared || !order.is_decided_by_abbreviation());
                for c in &values {
                    if compared.is_le() && order.compare(b, c).is_le() {
                        prop_assert!(order.compare(a, c).is_le());
                    }
                }
            }
        }
    }

    #[test]
    fn numerics_agree_with_floats(
        a in (any::<bool>(), -5_i8..5, prop::collection::vec(0_u16..10_000, 0..4)),
        b in (any::<bool>(), -5_i8..5, prop::collection::vec(0_u16..10_000, 0..4)),
    ) {
        let value = |(negative, weight, digits): &(bool, i8, Vec<u16>)| {
            let digits = digits.iter().enumerate();
            let sum: f64 = digits.map(|(n, d)| f64::from(*d) * 1e4_f64.powi(i32::from(*weight) - n as i32)).sum();
            if *negative { -sum } else { sum }
        };
        let bytes = |(negative, weight, digits): &(bool, i8, Vec<u16>)| numeric(*negative, *weight, digits);
        let (x, y) = (value(&a), value(&b));
        // Four digits fit the 53 bits of a float, if not exactly.
        if (x - y).abs() > (x.abs() + y.abs()) * 1e-12 {
            prop_assert_eq!(order(1700).compare(&bytes(&a), &bytes(&b)), x.partial_cmp(&y).unwrap());
        }
    }
}

/// The orders of values made of others, over types that are themselves ordered in many ways.
fn nested() -> Vec<ValueOrder> {
    let inner =
        |oid, len, align| InnerOrder { layout: AttributeLayout { len, align }, order: order(oid) };
    let (int, numeric) = (inner(23, 4, 4), inner(1700, -1, 4));
    let attributes = vec![
        (int.layout, Some(int.order.clone())),
        (numeric.layout, None),
        (numeric.layout, Some(numeric.order.clone())),
    ];
    let mut orders = vec![
        ValueOrder::Jsonb(TextCollation::C),
        ValueOrder::Record(Arc::new(RecordOrder::new(attributes))),
        order(3614),
        order(3615),
    ];
    for inner in [Arc::new(int), Arc::new(numeric)] {
        orders.push(ValueOrder::Array(inner.clone()));
        orders.push(ValueOrder::Range(inner.clone()));
        orders.push(ValueOrder::Multirange(inner));
    }
    orders
}

/// Bytes in which counts and flags are often small.
fn few_bytes() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![Just(0_u8), 0..4_u8, any::<u8>()];
    proptest::collection::vec(byte, 0..80)
}

proptest! {
    #[test]
    fn nested_orders_are_total_whatever_the_bytes(a in few_bytes(), b in few_bytes(), c in few_bytes()) {
        for order in nested() {
            prop_assert_eq!(order.compare(&a, &a), Ordering::Equal);
            prop_assert_eq!(order.compare(&a, &b), order.compare(&b, &a).reverse());
            let mut values = [&a, &b, &c];
            values.sort_by(|a, b| order.compare(a, b));
            prop_assert!(order.compare(values[0], values[2]).is_le());
        }
    }
}
