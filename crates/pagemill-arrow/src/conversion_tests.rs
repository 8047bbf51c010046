//! Values at the edges of what Arrow's types hold, one by one, with each of the options for them.
//! A value is what it was, or what the option says, and never another.

use super::*;

#[test]
fn infinities_are_refused_nulls_or_the_ends_of_what_readers_know() {
    assert!(matches!(
        date(Date::INFINITY, InfinityChoice::Error),
        Err(Fault::Unfit(_, Remedy::Infinity))
    ));
    assert!(matches!(date(Date::INFINITY, InfinityChoice::Null), Ok(None)));
    assert!(matches!(date(Date::INFINITY, InfinityChoice::Clamp), Ok(Some(2_932_896))));
    assert!(matches!(date(Date::NEGATIVE_INFINITY, InfinityChoice::Clamp), Ok(Some(-719_162))));
    assert!(matches!(date(Date(0), InfinityChoice::Error), Ok(Some(10_957))));
    // 294276-12-31 is a timestamp of PostgreSQL's, and past the 64 bits from 1970 on.
    let late = Timestamp(9_223_371_331_199_999_999);
    assert!(matches!(timestamp(late, InfinityChoice::Error), Err(Fault::Unfit(..))));
    let last = 253_402_300_799_999_999;
    assert!(matches!(timestamp(late, InfinityChoice::Clamp), Ok(Some(found)) if found == last));
    let first = -62_135_596_800_000_000;
    let early = timestamp(Timestamp::NEGATIVE_INFINITY, InfinityChoice::Clamp);
    assert!(matches!(early, Ok(Some(found)) if found == first));
}

#[test]
fn the_end_of_a_day_is_no_time_of_arrows() {
    assert!(matches!(time(0, InfinityChoice::Error), Ok(Some(0))));
    assert!(matches!(time(MICROS_PER_DAY, InfinityChoice::Error), Err(Fault::Unfit(..))));
    assert!(matches!(time(MICROS_PER_DAY, InfinityChoice::Null), Ok(None)));
    assert!(
        matches!(time(MICROS_PER_DAY, InfinityChoice::Clamp), Ok(Some(found)) if found == MICROS_PER_DAY - 1)
    );
    assert!(matches!(time(-1, InfinityChoice::Null), Err(Fault::Damaged(_))));
}

fn scaled(text: &str, shape: (u8, u8)) -> Result<Option<i128>, Fault> {
    let mut bytes = Vec::new();
    pagemill_types::input::numeric::read_numeric(text.as_bytes(), -1, &mut bytes).unwrap();
    decimal(Numeric::parse(&bytes).unwrap(), shape, InfinityChoice::Error)
}

#[test]
fn a_numeric_fits_its_decimal_exactly_or_is_refused() {
    assert!(matches!(scaled("1.50", (3, 2)), Ok(Some(150))));
    assert!(matches!(scaled("-9.99", (3, 2)), Ok(Some(-999))));
    for unfit in ["10.00", "0.001", "NaN", "Infinity"] {
        assert!(matches!(scaled(unfit, (3, 2)), Err(Fault::Unfit(_, Remedy::Numeric))), "{unfit}");
    }
    let longest = "9".repeat(38);
    assert!(matches!(scaled(&longest, (38, 0)), Ok(Some(value)) if value.to_string() == longest));
}
