//! Which texts are of one shape, and what their constants are.
//!
//! Invariant: what is told of a text depends on those before it only.

use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::tokenizer::Tokenizer;

use super::{StatementText, StatementTexts};

/// Texts of one line in ASCII.
fn read(texts: &StatementTexts, text: &str) -> StatementText {
    let tokens = Tokenizer::new(&PostgreSqlDialect {}, text).tokenize_with_location().unwrap();
    let at = |place: sqlparser::tokenizer::Location| usize::try_from(place.column).unwrap() - 1;
    texts.read(text, &tokens, at).unwrap()
}

/// The shape of the second of two texts, and its constants; `None` where they are of two.
fn shape(first: &str, second: &str) -> Option<(String, Vec<String>)> {
    let texts = StatementTexts::default();
    assert!(read(&texts, first).repeated.is_none());
    let again = read(&texts, second);
    let repeated = again.repeated.as_ref()?;
    let constants = repeated.constants.iter().map(|constant| constant.text.clone()).collect();
    Some((repeated.shape.statement.to_string(), constants))
}

#[test]
fn constants_beside_columns_are_cut_out() {
    let (statement, constants) = shape(
        "select a, 1 from t where id = 5 and -7 <= b + 2 and name in ('x', 'it''s') limit 3",
        "select a, 1 from t where id = 6 and -8 <= b + 2 and name in ('y', '') limit 3",
    )
    .unwrap();
    assert_eq!(
        statement,
        "SELECT a, 1 FROM t WHERE id = $1 AND $2 <= b + $3 AND name IN ($4, $5) LIMIT 3"
    );
    assert_eq!(constants, ["6", "-8", "2", "y", ""]);
    let (statement, constants) = shape(
        "select 1 from t join u on t.a = u.a and u.b < 1.5 where exists (select 2 from v where c between $1 and 'x')",
        "select 1 from t join u on t.a = u.a and u.b < 2.5 where exists (select 2 from v where c between $1 and 'y')",
    )
    .unwrap();
    assert_eq!(
        statement,
        "SELECT 1 FROM t JOIN u ON t.a = u.a AND u.b < $2 WHERE EXISTS (SELECT 2 FROM v WHERE c BETWEEN $1 AND $3)"
    );
    assert_eq!(constants, ["2.5", "y"]);
}

#[test]
fn what_says_more_than_a_value_is_left() {
    for text in [
        "select {} from t",
        "select a from t order by {}",
        "select a, b from t group by {}, b",
        "select a from t limit {}",
        "select a from t offset {}",
        "select a from t where round(a, {}) > b",
        "select a from t where {} = 1",
        "select a from t where a::numeric(9, {}) = b",
        "select a from t where a = {}::bigint",
        "select a from t where a like '{}%'",
        "select a from t where at > b + interval '{} days'",
        "select a from t where day = date '2024-01-0{}'",
        "select a from t group by a having count(*) > {}",
    ] {
        let [first, second] = ["1", "2"].map(|number| text.replace("{}", number));
        assert_eq!(shape(&first, &second), None, "{text}");
        assert!(shape(&first, &first).is_some_and(|(_, constants)| constants.is_empty()), "{text}");
    }
}

#[test]
fn constants_of_other_types_make_other_shapes() {
    let of = |value: &str| format!("select a from t where id = {value}");
    for (first, second, alike) in [
        ("1", "2147483647", true),
        ("1", "2147483648", false),
        ("2147483649", "9223372036854775807", true),
        ("1", "'1'", false),
        ("-1", "1", false),
        ("-1", "-2147483647", true),
        ("-2147483648", "-2147483647", false),
        ("1.5", "2.5", true),
        ("1.5", "2.55", false),
        ("'a'", "'b''c'", true),
        ("'a'", "e'b'", false),
        ("null", "1", false),
        ("true", "false", false),
        ("1", " 2", false),
    ] {
        assert_eq!(shape(&of(first), &of(second)).is_some(), alike, "{first}, {second}");
    }
    let lists = shape("select a from t where id in (1)", "select a from t where id in (1, 2)");
    assert_eq!(lists, None);
}

#[test]
fn what_is_another_moment_each_time_has_no_shape() {
    for text in [
        "select a from t where at > 'now'",
        "select date 'today'",
        "select e'Yesterday 10:00'::timestamp",
    ] {
        assert_eq!(shape(text, text), None, "{text}");
    }
}

#[test]
fn a_text_that_is_refused_is_not_kept() {
    let texts = StatementTexts::default();
    let text = "select a from t where id = 1 2";
    let tokens = Tokenizer::new(&PostgreSqlDialect {}, text).tokenize_with_location().unwrap();
    for _ in 0..3 {
        assert!(texts.read(text, &tokens, |_| 0).is_err());
    }
}
