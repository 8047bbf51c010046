//! Dates and times, alone and in trees; numbers that a range orders, and money.
//! Their grammars are tried in full elsewhere; here it is what surrounds them.

use super::{Case, NULL, case};

pub(super) fn all() -> Vec<Case> {
    vec![
        case("date", &["2020-01-31", "infinity", "x", "2020-02-30", NULL]),
        case("timestamp(2)[]", &["{\"2020-01-01 00:00:00.126\",infinity}", "{x}"]),
        case("interval day to second(1)", &["1 day 02:03:04.56", "x"]),
        case(
            "daterange",
            &[
                "[2020-01-01,2020-01-31]",
                "(2020-01-01,2020-01-02)",
                "(2020-01-01,2020-01-03)",
                "[2020-01-01,infinity]",
                "(-infinity,2020-01-01]",
                "(infinity,infinity)",
                "[infinity,infinity]",
                "[5874897-12-31,5874897-12-31]",
                "[2020-01-02,2020-01-01]",
                "[x,)",
                "(,)",
            ],
        ),
        case(
            "tsrange",
            &[
                "[2020-01-01 00:00,\"2020-01-02 12:00\")",
                "(2020-01-01,2020-01-01)",
                "[2020-01-02,2020-01-01]",
            ],
        ),
        case("tstzrange", &["[2020-01-01 00:00+02,2020-01-02 12:00+00]", "[,infinity]"]),
        case(
            "datemultirange",
            &["{[2020-01-01,2020-01-02],[2020-01-03,2020-01-05]}", "{(-infinity,infinity)}"],
        ),
        case(
            "tsmultirange",
            &[
                "{}",
                "{[2020-01-01,2020-01-02),[2020-01-02,2020-01-03)}",
                "{(,2020-01-01),[2021-01-01,)}",
            ],
        ),
        case("tstzmultirange", &["{[2020-01-01,2020-01-02),[2020-01-01 12:00,2020-01-03)}"]),
        case("floats", &["[1.5,NaN]", "(NaN,NaN)", "[NaN,1]", "[-0,0]"]),
        case("money", &["$1,234.56", "(1)", "x"]),
    ]
}
