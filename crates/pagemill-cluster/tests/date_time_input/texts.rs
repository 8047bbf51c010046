//! The texts: those picked by hand, one a line in `moments.txt` and `intervals.txt`, and those put
//! together from pieces.

use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

/// Random texts of each kind.
const RANDOM: usize = 600;

/// `fields << 16 | digits`: every set of fields an interval can be declared with.
pub(crate) const INTERVAL_TYPMODS: [i32; 15] = [
    0x0004_FFFF, // year
    0x0002_FFFF, // month
    0x0006_FFFF, // year to month
    0x0008_FFFF, // day
    0x0400_FFFF, // hour
    0x0800_FFFF, // minute
    0x1000_FFFF, // second
    0x0408_FFFF, // day to hour
    0x0C08_FFFF, // day to minute
    0x1C08_FFFF, // day to second
    0x0C00_FFFF, // hour to minute
    0x1C00_FFFF, // hour to second
    0x1800_FFFF, // minute to second
    0x7FFF_0000, // (0)
    0x1000_0003, // second(3)
];

static MOMENTS: &str = include_str!("moments.txt");
static INTERVALS: &str = include_str!("intervals.txt");
/// Texts for dates, times and timestamps.
pub(crate) fn moments() -> Vec<String> {
    let number = || "[0-9]{1,8}";
    let dates = || {
        prop_oneof![
            (1i32..3000, 1u32..13, 1u32..30).prop_map(|(y, m, d)| format!("{y:04}-{m:02}-{d:02}")),
            (1i32..99, 1u32..32, 1u32..32).prop_map(|(y, m, d)| format!("{m}/{d}/{y}")),
            "[0-9]{1,4}[-/. ](jan|sep|december)[-/. ][0-9]{1,4}",
            "[0-9]{1,4}([-/.][0-9]{1,4}){1,3}",
            "(J|j|jd )[0-9]{1,7}(\\.[0-9]{0,3})?",
            "[0-9]{5,9}",
            select(&["today", "tomorrow", "epoch", "infinity", "now", "y2001m02d04"][..])
                .prop_map(str::to_owned),
        ]
    };
    let times = || {
        prop_oneof![
            "[0-2][0-9]:[0-6][0-9](:[0-6][0-9](\\.[0-9]{0,8})?)?",
            "[0-2][0-9][0-6][0-9]([0-6][0-9](\\.[0-9]{0,8})?)?",
            "[0-9]{1,2}:[0-9]{1,2}(:[0-9]{1,2})? ?(am|pm)",
            "h[0-9]{1,2} ?mm[0-9]{1,2} ?s[0-9]{1,2}",
            select(&["allballs", "", "t", "0405"][..]).prop_map(str::to_owned),
        ]
    };
    let zones = || {
        prop_oneof![
            "[+-][0-9]{1,4}(:[0-9]{2}){0,2}",
            "[a-z]{3}",
            "[a-z]{3}-?[0-9]{1,2}([a-z]{3})?",
            select(
                &[
                    "",
                    "z",
                    "utc",
                    "est",
                    "EDT",
                    "msk",
                    "vet",
                    "lmt",
                    "dst",
                    "met dst",
                    "Europe/Moscow",
                    "America/New_York",
                    "Asia/Kathmandu",
                    "Australia/Lord_Howe",
                    "Africa/Cairo",
                    "irkt",
                    "america/Sao_Paulo",
                    "Europe/Dublin",
                    "cest",
                    "ulat",
                ][..]
            )
            .prop_map(str::to_owned),
        ]
    };
    let pieces = prop_oneof![
        3 => dates(),
        3 => times(),
        2 => zones(),
        1 => number(),
        1 => select(&["bc", "ad", "T", "at", "fri", "jan", "am", "pm", "dow", "y", "d", "."][..])
            .prop_map(str::to_owned),
    ];
    let gap = || select(&[" ", " ", " ", "", "T", ",", "-"][..]);
    let orderly = (dates(), gap(), times(), gap(), zones(), select(&["", "", "", " BC"][..]))
        .prop_map(|(date, one, time, two, zone, era)| format!("{date}{one}{time}{two}{zone}{era}"));
    let wild = proptest::collection::vec((pieces, gap()), 1..6).prop_map(join);
    let all = prop_oneof![3 => orderly, 2 => wild];
    with_random(MOMENTS, all)
}

/// Texts for intervals.
pub(crate) fn intervals() -> Vec<String> {
    let number = || {
        prop_oneof![
            4 => "[+-]?[0-9]{1,3}(\\.[0-9]{0,7})?",
            1 => "[+-]?[0-9]{6,20}",
            1 => "[+-]?\\.[0-9]{1,3}",
            2 => "[+-]?[0-9]{1,4}:[0-9]{1,2}(:[0-9]{1,2}(\\.[0-9]{0,7})?)?",
            1 => "[+-]?[0-9]{1,4}-[0-9]{1,2}",
        ]
    };
    let unit = || {
        prop_oneof![
            8 => select(
                &[
                    "us", "ms", "s", "sec", "seconds", "m", "min", "minutes", "h", "hour", "hours", "d",
                    "day", "days", "w", "weeks", "mon", "months", "y", "years", "decade", "c", "mil",
                ][..]
            )
            .prop_map(str::to_owned),
            2 => Just(String::new()),
            1 => select(&["ago", "qtr", "mm", "at", "infinity", "x", "j", "timezone"][..])
                .prop_map(str::to_owned),
        ]
    };
    let gap = || select(&[" ", " ", " ", "", ","][..]);
    let words = proptest::collection::vec((number(), gap(), unit(), gap()), 1..5).prop_map(|all| {
        all.into_iter().map(|(a, b, c, d)| format!("{a}{b}{c}{d}")).collect::<String>()
    });
    let iso_number = || "-?[0-9]{1,9}(\\.[0-9]{0,7})?(e-?[0-9])?";
    let iso = (
        proptest::collection::vec((iso_number(), "[YMWD]"), 0..4),
        select(&["", "T", "T"][..]),
        proptest::collection::vec((iso_number(), "[HMS]"), 0..4),
    )
        .prop_map(|(date, t, time)| format!("P{}{t}{}", join(date), join(time)));
    let dashed = "P[0-9]{1,9}(-[0-9]{1,3}){0,2}(T[0-9]{1,7}(:[0-9]{1,3}){0,2}(\\.[0-9]{1,3})?)?";
    let all = prop_oneof![5 => words, 2 => iso, 1 => dashed];
    with_random(INTERVALS, all)
}

/// For each zone, moments in it at random: most of them recent, some in the far future, many about
/// the hour and the days at which clocks are changed.
pub(crate) fn moments_in(zones: &[&str]) -> Vec<String> {
    let mut runner = TestRunner::deterministic();
    let year = prop_oneof![4 => 1850i32..2040, 1 => 2040i32..5000];
    let month = select(&[3u32, 10, 11, 3, 10, 1, 4, 7, 9][..]);
    let hour = prop_oneof![3 => 0u32..4, 1 => 4u32..24];
    let moment = (year, month, 1u32..31, hour, select(&[0u32, 30, 59][..]));
    let mut texts = Vec::new();
    for zone in zones.iter().flat_map(|zone| std::iter::repeat_n(zone, 12)) {
        if let Ok(tree) = moment.new_tree(&mut runner) {
            let (year, month, day, hour, minute) = tree.current();
            texts.push(format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02} {zone}"));
        }
    }
    texts
}

fn join<A: AsRef<str>, B: AsRef<str>>(pieces: Vec<(A, B)>) -> String {
    pieces.iter().map(|(one, other)| format!("{}{}", one.as_ref(), other.as_ref())).collect()
}

fn with_random(picked: &str, random: impl Strategy<Value = String>) -> Vec<String> {
    let mut runner = TestRunner::deterministic();
    let lines = picked.lines().filter(|line| !line.starts_with('#'));
    let mut texts: Vec<String> = lines.map(unescaped).collect();
    texts.push(String::new());
    for _ in 0..RANDOM {
        if let Ok(tree) = random.new_tree(&mut runner) {
            texts.push(tree.current());
        }
    }
    texts
}

/// A line of the files: `\n`, `\t`, `\\` and `\xNN` stand for bytes that a line cannot show.
fn unescaped(line: &str) -> String {
    let mut pieces = line.split('\\');
    let mut text = pieces.next().unwrap_or_default().to_owned();
    while let Some(piece) = pieces.next() {
        match piece.split_at_checked(1) {
            Some(("n", rest)) => text += &format!("\n{rest}"),
            Some(("t", rest)) => text += &format!("\t{rest}"),
            Some(("x", rest)) => {
                let byte = u8::from_str_radix(&rest[..2], 16).unwrap();
                text += &format!("{}{}", char::from(byte), &rest[2..]);
            }
            _ => text += &format!("\\{}", pieces.next().unwrap_or_default()),
        }
    }
    text
}
