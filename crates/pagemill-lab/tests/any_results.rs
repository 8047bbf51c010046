//! Whatever the results hold, strings of any kind and numbers that are none, every form of the report stays whole.
//!
//! Results are read from files that people pass around; none of them may break a page, a table or this program.

use std::collections::BTreeMap;

use pagemill_lab::report::{self, compare};
use pagemill_lab::results::{
    Absence, CacheState, Cell, ClaimStatus, Experiment, FORMAT, Fact, Figure, Group, Moment,
    Results, Sample, Skipped, Verdict, Warning, WarningKind,
};
use proptest::prelude::*;

/// Strings that mean something to HTML, XML, Markdown, CSV or a terminal, and any others.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[<>&\"'`|;,#*_\\\\/\\[\\]\\-! a-z0-9\\x00-\\x1f]{0,24}",
        Just("</script><!-- ]]> <![CDATA[ &amp; &#0;".to_owned()),
        Just("\u{202e}\u{ffff}\u{feff}\u{7f}\u{85}".to_owned()),
    ]
}

fn number() -> impl Strategy<Value = f64> {
    prop_oneof![
        any::<f64>(),
        Just(0.0),
        1e-9..10.0_f64,
        Just(f64::NAN),
        Just(f64::INFINITY),
        Just(-1.0)
    ]
}

/// A parameter: often a number, so that lines are drawn.
fn parameter() -> impl Strategy<Value = String> {
    prop_oneof![
        text(),
        (0_u32..200).prop_map(|count| count.to_string()),
        (1_u32..9).prop_map(|size| format!("{size} kB"))
    ]
}

fn sample() -> impl Strategy<Value = Sample> {
    let moment = (number(), number(), number()).prop_map(|(at_s, rate, share)| Moment {
        at_s,
        read_rate: rate,
        write_rate: share,
        user: share,
        system: rate,
    });
    let calls = prop::collection::btree_map(text(), any::<u64>(), 0..3);
    (
        number(),
        number(),
        any::<Option<u64>>(),
        any::<u64>(),
        prop::collection::vec(moment, 0..4),
        calls,
    )
        .prop_map(|(elapsed_s, user_s, device_bytes, operations, timeline, calls)| Sample {
            elapsed_s,
            user_s,
            system_s: elapsed_s,
            wait_s: Some(user_s),
            device_bytes,
            operations,
            bytes: Some(operations),
            parts: calls.keys().map(|name: &String| (name.clone(), elapsed_s)).collect(),
            counted: Some(elapsed_s),
            latency_s: None,
            calls,
            timeline,
        })
}

fn cell() -> impl Strategy<Value = Cell> {
    let parameters = prop::collection::btree_map("[abc]", parameter(), 0..3);
    let absent = prop::option::of(text().prop_map(Absence::Refused));
    (text(), parameters, prop::collection::vec(sample(), 0..4), absent, prop::option::of(text()))
        .prop_map(|(name, parameters, samples, absent, note)| Cell {
            name,
            parameters,
            samples,
            absent,
            profile: note.clone().map(|text| format!("a;{text} 5\nb 2")),
            note,
        })
}

fn group() -> impl Strategy<Value = Group> {
    let figure = prop::sample::select(vec![
        Figure::Elapsed,
        Figure::Throughput,
        Figure::Rate,
        Figure::Latency,
        Figure::Count,
    ]);
    let passes = prop::collection::vec(0u32..9, 0..4);
    let name = (text(), prop::option::of(text()));
    (name, any::<u64>(), figure, prop::collection::vec(cell(), 0..8), passes).prop_map(
        |((name, baseline), bytes, figure, cells, passes)| {
            let baseline = baseline.or_else(|| cells.first().map(|cell| cell.name.clone()));
            Group {
                title: name.clone(),
                name,
                bytes,
                cache: CacheState::Cold,
                figure,
                baseline,
                cells,
                passes,
            }
        },
    )
}

fn results() -> impl Strategy<Value = Results> {
    let strings = prop::collection::vec(text(), 4);
    (strings, number(), prop::collection::vec(group(), 0..3)).prop_map(
        |(strings, elapsed_s, groups)| {
            let of = |at: usize| strings[at].clone();
            let evidence =
                groups.iter().map(|group| format!("{}/{}", strings[0], group.name)).collect();
            let skipped = vec![Skipped { what: of(1), why: of(2) }];
            Results {
                format: FORMAT,
                pagemill: of(0),
                started: of(1),
                elapsed_s,
                quick: true,
                interrupted: Some(of(2)),
                environment: vec![Fact { name: of(3), value: of(0) }],
                warnings: vec![Warning {
                    kind: WarningKind::Drift,
                    group: Some(of(1)),
                    message: of(2),
                    remedy: of(3),
                }],
                experiments: vec![Experiment {
                    name: of(0),
                    title: of(1),
                    question: of(2),
                    groups,
                    skipped,
                    elapsed_s,
                }],
                verdicts: vec![Verdict {
                    id: of(0),
                    document: of(1),
                    link: Some(of(2)),
                    model: Some(of(3)),
                    differs: of(1),
                    claim: of(2),
                    measured: of(3),
                    outcome: ClaimStatus::Holds,
                    why: of(0),
                    evidence,
                }],
            }
        },
    )
}

fn written(write: impl FnOnce(&mut Vec<u8>) -> report::Result<()>) -> String {
    let mut bytes = Vec::new();
    write(&mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

/// The page is XML in which only this crate's elements stand, and every coordinate is a number.
fn hold_to_be_whole(page: &str) {
    let options =
        roxmltree::ParsingOptions { allow_dtd: true, ..roxmltree::ParsingOptions::default() };
    let document = roxmltree::Document::parse_with_options(page, options).unwrap();
    let scripts = document.descendants().filter(|node| node.has_tag_name("script")).count();
    assert_eq!(scripts, 1);
    let places = ["x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "width", "height", "points"];
    for attribute in document
        .descendants()
        .flat_map(|node| node.attributes())
        .filter(|each| places.contains(&each.name()))
    {
        let numbers = attribute
            .value()
            .split([' ', ','])
            .map(|text| text.trim_end_matches('%').parse::<f64>());
        assert!(
            attribute.value() == "device-width"
                || numbers.into_iter().all(|number| number.is_ok_and(f64::is_finite)),
            "{attribute:?}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn the_page_stays_well_formed(results in results()) {
        hold_to_be_whole(&written(|out| report::html(&results, out)));
    }

    #[test]
    fn the_comparison_stays_well_formed(first in results(), second in results()) {
        let run = |results| compare::Run { label: "<&\"", results };
        hold_to_be_whole(&written(|out| compare::html(&run(&first), &run(&second), out)));
        hold_to_be_whole(&written(|out| compare::html(&run(&first), &run(&first), out)));
        written(|out| compare::text(&run(&first), &run(&second), out));
        written(|out| compare::markdown(&run(&first), &run(&second), out));
    }

    #[test]
    fn nothing_moves_the_cursor_and_every_row_of_the_csv_is_whole(results in results()) {
        let text = written(|out| report::text(&results, out));
        let screen = written(|out| report::screen(&results, out));
        for text in [&text, &screen] {
            prop_assert!(text.chars().all(|ch| ch == '\n' || !ch.is_control()));
        }
        prop_assert!(screen.lines().count() <= 60, "{} lines", screen.lines().count());
        let csv = written(|out| report::csv(&results, out));
        let mut reader = csv::Reader::from_reader(csv.as_bytes());
        prop_assert!(reader.records().all(|row| row.is_ok()));
        let markdown = written(|out| report::markdown(&results, out));
        prop_assert!(!markdown.contains("<script"));
    }

    #[test]
    fn what_is_read_is_results_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200), format in any::<u64>()) {
        prop_assert!(report::read_json(&bytes).is_err());
        let other = format!("{{\"format\": {format}}}");
        prop_assert!(report::read_json(other.as_bytes()).is_err());
    }
}

#[test]
fn a_thousand_cells_make_a_page_that_can_be_sent() {
    let sample = Sample { elapsed_s: 1.0, ..Sample::default() };
    let cell = |at: usize| Cell {
        name: format!("cell {at}"),
        parameters: BTreeMap::from([("depth".to_owned(), at.to_string())]),
        samples: vec![sample.clone(); 9],
        ..Cell::default()
    };
    let group = Group { cells: (0..1000).map(cell).collect(), ..Group::default() };
    let results = Results {
        experiments: vec![Experiment { groups: vec![group], ..Experiment::default() }],
        ..Results::default()
    };
    assert!(written(|out| report::html(&results, out)).len() < 4 << 20);
}
