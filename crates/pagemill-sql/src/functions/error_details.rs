//! What a server says beside the message of an input error, and of what class the error is, as `pg_input_error_info` tells it.
//!
//! The readers of values give the primary message alone. For the messages listed here, what else there is follows from the
//! message, the type and the text; every other message is refused.
//!
//! Invariant: no message is listed that has, on any version, a detail or a hint which is not told here.
//!
//! Source: the soft errors of the input functions in `src/backend/utils/adt` (`numeric.c`, `network.c`, `datetime.c`, `varbit.c`,
//! `regproc.c`, `acl.c` and the others), PostgreSQL 16 to 18.

use crate::error::SqlState;

/// A text that is no value of a type.
pub(super) struct Failure<'f> {
    /// Precision and scale of a numeric type that has them.
    pub(super) precision: Option<(i32, i32)>,
    /// The type's own name, without a modifier.
    pub(super) type_name: &'f str,
    pub(super) text: &'f str,
    pub(super) message: &'f str,
}

/// What the server says beside the message.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) detail: Option<String>,
    pub(super) state: SqlState,
}

/// Messages without detail and hint, by how they begin, and their classes.
const BEGINNINGS: [(&str, &str); 30] = [
    ("invalid input value for enum ", "22P02"),
    ("value too long for type ", "22001"),
    ("bit string too long for type ", "22001"),
    ("bit string length ", "22026"),
    ("value overflows numeric format", "22003"),
    ("integer out of range", "22003"),
    ("bigint out of range", "22003"),
    ("octet value out of range in \"macaddr\" value: ", "22003"),
    ("date out of range", "22008"),
    ("timestamp out of range", "22008"),
    ("interval out of range", "22008"),
    ("interval field value out of range: ", "22015"),
    ("time zone displacement out of range: ", "22009"),
    ("range lower bound must be less than or equal to range upper bound", "22000"),
    ("invalid line specification: ", "22P02"),
    ("invalid hexadecimal d", "22023"),
    ("syntax error in tsvector: ", "42601"),
    ("syntax error in tsquery: ", "42601"),
    ("no operand in tsquery: ", "42601"),
    ("distance in phrase operator must be ", "22023"),
    ("syntax error at end of jsonpath input", "42601"),
    ("trailing junk after numeric literal at ", "42601"),
    ("unterminated quoted string at end of jsonpath input", "42601"),
    ("@ is not allowed in root expressions", "42601"),
    ("LAST is allowed only in array subscripts", "42601"),
    ("wrong position info in tsvector: ", "42601"),
    ("there is no escaped character: ", "42601"),
    ("invalid octet value in \"macaddr\" value: ", "22003"),
    ("invalid name syntax", "42602"),
    ("invalid mode character: must be one of ", "22P02"),
];

/// What is told of a failure; nothing where that is not known here.
pub(super) fn told(failure: &Failure<'_>) -> Option<Told> {
    let plain = |state| Some(Told { detail: None, state: SqlState(state) });
    let message = failure.message;
    if let Some(rest) = message.strip_prefix("invalid input syntax for type ") {
        return syntax(rest);
    }
    if let Some((_, state)) = BEGINNINGS.iter().find(|(begin, _)| message.starts_with(begin)) {
        return plain(state);
    }
    if let Some(found) = of_names(failure) {
        return plain(found);
    }
    match () {
        () if message.starts_with("invalid cidr value: ") => {
            let detail = Some("Value has bits set to right of mask.".to_owned());
            Some(Told { detail, state: SqlState::INVALID_TEXT })
        }
        () if message == "numeric field overflow" => overflow(failure),
        () if message.starts_with("syntax error at or near ")
            && message.ends_with(" of jsonpath input") =>
        {
            plain("42601")
        }
        () if is_no_digit(message) => plain("22P02"),
        () if is_out_of_range(message) => plain("22003"),
        () if is_out_of_day(failure) => plain("22008"),
        () if message.starts_with("time zone \"") && message.ends_with("\" not recognized") => {
            plain("22023")
        }
        () => None,
    }
}

/// Of documents and paths there is more to tell, but for what the type's name ends the message with.
fn syntax(of: &str) -> Option<Told> {
    const WITH_DETAILS: [&str; 4] = ["json", "jsonpath", "xml", "tid or"];
    let name = of.split([':', '"']).next().unwrap_or_default().trim_end();
    if WITH_DETAILS.contains(&name) {
        return None;
    }
    const OF_TIMES: [&str; 6] = [
        "date",
        "interval",
        "time",
        "time with time zone",
        "timestamp",
        "timestamp with time zone",
    ];
    let state = if OF_TIMES.contains(&name) { "22007" } else { "22P02" };
    Some(Told { detail: None, state: SqlState(state) })
}

/// `"2" is not a valid binary digit`.
fn is_no_digit(message: &str) -> bool {
    ["\" is not a valid binary digit", "\" is not a valid hexadecimal digit"]
        .iter()
        .any(|end| message.starts_with('"') && message.ends_with(end))
}

/// `value "…" is out of range for type …`, and `"…" is out of range for type …`.
fn is_out_of_range(message: &str) -> bool {
    let quoted = message.strip_prefix("value ").unwrap_or(message); // default: floats say no more than that
    let (before, name) = match quoted.rsplit_once(" is out of range for type ") {
        Some(parts) => parts,
        None => return false,
    };
    before.len() > 1 && before.starts_with('"') && before.ends_with('"') && !name.contains('"')
}

/// A field of a time alone: of dates, another order of their fields is hinted at.
fn is_out_of_day(failure: &Failure<'_>) -> bool {
    let is_time =
        failure.type_name == "time without time zone" || failure.type_name == "time with time zone";
    if !is_time || !failure.message.starts_with("date/time field value out of range: ") {
        return false;
    }
    let mut words = failure.text.split(' ');
    let Some(clock) = words.next() else { return false };
    let parts: Vec<&str> = clock.split(':').collect();
    let are_numbers = (2..=3).contains(&parts.len())
        && parts.iter().all(|part| {
            (1..=2).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit())
        });
    let is_zone = |word: &str| word.bytes().all(|byte| byte.is_ascii_uppercase());
    are_numbers && words.next().is_none_or(is_zone) && words.next().is_none()
}

/// Names of objects that are not there, or of which there are several.
fn of_names(failure: &Failure<'_>) -> Option<&'static str> {
    let message = failure.message;
    Some(match failure.type_name {
        "aclitem" | "regrole" if is_absent(message, "role ") => "42704",
        "regclass" if is_absent(message, "relation ") => "42P01",
        "regnamespace" if is_absent(message, "schema ") => "3F000",
        "regtype" if is_absent(message, "type ") => "42704",
        "regcollation" if is_absent(message, "collation ") => "42704",
        "regconfig" if is_absent(message, "text search configuration ") => "42704",
        "regdictionary" if is_absent(message, "text search dictionary ") => "42704",
        "regproc" | "regprocedure" if is_absent(message, "function ") => "42883",
        "regproc" if message.starts_with("more than one function named ") => "42725",
        "regoper" | "regoperator" if message.starts_with("operator does not exist: ") => "42883",
        "regoper" if message.starts_with("more than one operator named ") => "42725",
        "regprocedure" | "regoperator"
            if matches!(
                message,
                "expected a left parenthesis" | "expected a right parenthesis"
            ) =>
        {
            "22P02"
        }
        _ => return None,
    })
}

/// True where a text names no object, or several, and nothing is wrong but that.
pub(super) fn names_none(type_name: &str, message: &str) -> bool {
    const OF_FORM: [&str; 2] = ["expected a left parenthesis", "expected a right parenthesis"];
    let failure = Failure { precision: None, type_name, text: "", message };
    of_names(&failure).is_some() && !OF_FORM.contains(&message)
}

/// The name of a schema or type that is not there.
pub(super) fn absent_part(message: &str) -> Option<&str> {
    let rest = message.strip_prefix("schema ").or_else(|| message.strip_prefix("type "))?;
    rest.strip_suffix(" does not exist")?.strip_prefix('"')?.strip_suffix('"')
}

fn is_absent(message: &str, kind: &str) -> bool {
    let rest = message.strip_prefix(kind).and_then(|rest| rest.strip_suffix(" does not exist"));
    rest.is_some_and(|rest| rest.starts_with('"'))
}

/// What a type of so many digits has room for.
fn overflow(failure: &Failure<'_>) -> Option<Told> {
    let (precision, scale) = failure.precision?;
    let field = format!("A field with precision {precision}, scale {scale}");
    let digits = failure.text.trim().trim_start_matches(['+', '-']);
    let is_infinite = digits.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("inf"));
    let detail = match (is_infinite, precision.checked_sub(scale)?) {
        (true, _) => format!("{field} cannot hold an infinite value."),
        (false, 0) => format!("{field} must round to an absolute value less than 1."),
        (false, whole) => {
            format!("{field} must round to an absolute value less than 10^{whole}.")
        }
    };
    Some(Told { detail: Some(detail), state: SqlState::NUMERIC_OUT_OF_RANGE })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told_of(
        type_name: &str,
        text: &str,
        message: &str,
    ) -> Option<(Option<String>, &'static str)> {
        let precision = (type_name == "numeric").then_some((7, 4));
        let found = told(&Failure { precision, type_name, text, message })?;
        Some((found.detail, found.state.0))
    }

    #[test]
    fn details_and_classes_are_the_servers() {
        let plain = |state| Some((None, state));
        let zed = "invalid input syntax for type integer: \"out of range for type x\"";
        assert_eq!(told_of("integer", "out of range for type x", zed), plain("22P02"));
        let cidr = told_of("cidr", "10.1.1.1/8", "invalid cidr value: \"10.1.1.1/8\"");
        let bits = "Value has bits set to right of mask.".to_owned();
        assert_eq!(cidr, Some((Some(bits), "22P02")));
        let much = told_of("numeric", "1234.567", "numeric field overflow");
        let room =
            "A field with precision 7, scale 4 must round to an absolute value less than 10^3.";
        assert_eq!(much, Some((Some(room.to_owned()), "22003")));
        let infinite = told_of("numeric", " -Infinity", "numeric field overflow");
        let room = "A field with precision 7, scale 4 cannot hold an infinite value.";
        assert_eq!(infinite, Some((Some(room.to_owned()), "22003")));
        let value = "value \"50000\" is out of range for type smallint";
        assert_eq!(told_of("smallint", "50000", value), plain("22003"));
        let date = "date/time field value out of range: \"25:00:00\"";
        assert_eq!(told_of("time without time zone", "25:00:00", date), plain("22008"));
    }

    #[test]
    fn names_of_nothing_are_told_from_wrong_ones() {
        assert!(names_none("regclass", "relation \"a.b\" does not exist"));
        assert!(names_none("regcollation", "collation \"x\" for encoding \"UTF8\" does not exist"));
        assert!(names_none("regoper", "more than one operator named -"));
        assert!(!names_none("regclass", "schema \"a\" does not exist"));
        assert!(!names_none("regprocedure", "expected a left parenthesis"));
        assert_eq!(absent_part("schema \"a\" does not exist"), Some("a"));
        assert_eq!(absent_part("relation \"a\" does not exist"), None);
    }

    #[test]
    fn what_may_have_more_to_say_is_refused() {
        let date = "date/time field value out of range: \"2001-13-13\"";
        assert_eq!(told_of("date", "2001-13-13", date), None);
        assert_eq!(told_of("time without time zone", "2001-13-13", date), None);
        assert_eq!(told_of("json", "{", "invalid input syntax for type json"), None);
        assert_eq!(told_of("integer[]", "{", "malformed array literal: \"{\""), None);
        assert_eq!(told_of("regclass", "a.b.c.d", "improper relation name"), None);
    }
}
