//! What the report says of a made-up run, held against what it said when somebody last read it.
//!
//! `UPDATE_EXPECTED=1 cargo test -p pagemill-lab` writes the files under `expected/` anew; read the difference before it
//! is committed. The page is too large to be read that way: it is held to be well-formed, whole, and to fetch nothing.

mod fixture;

use pagemill_lab::report::{self, compare};
use pagemill_lab::results::Results;
use pagemill_testkit::in_checkout;

/// Every line of a terminal report fits here.
const WIDEST: usize = 120;

fn written(write: impl FnOnce(&mut Vec<u8>) -> report::Result<()>) -> String {
    let mut bytes = Vec::new();
    write(&mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

fn compared(
    write: impl FnOnce(&compare::Run<'_>, &compare::Run<'_>, &mut Vec<u8>) -> report::Result<()>,
) -> String {
    let (first, second) = (fixture::results(), fixture::other_results());
    let first = compare::Run { label: "before", results: &first };
    let second = compare::Run { label: "after <&> \"upgrade\"", results: &second };
    written(|out| write(&first, &second, out))
}

fn expect(name: &str, text: &str) {
    let path = in_checkout("crates/pagemill-lab/tests/expected").join(name);
    if std::env::var_os("UPDATE_EXPECTED").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap();
    let differing =
        text.lines().zip(expected.lines()).enumerate().find(|(_, (now, then))| now != then);
    assert!(
        text == expected,
        "{name} differs, first at {differing:?}; UPDATE_EXPECTED=1 writes it anew"
    );
}

fn page(results: &Results) -> String {
    written(|out| report::html(results, out))
}

/// Parses the page as XML, which an HTML parser reads in the same way.
fn parse(page: &str) -> roxmltree::Document<'_> {
    let options =
        roxmltree::ParsingOptions { allow_dtd: true, ..roxmltree::ParsingOptions::default() };
    roxmltree::Document::parse_with_options(page, options).unwrap()
}

#[test]
fn the_text_says_what_it_said() {
    expect("report.txt", &written(|out| report::text(&fixture::results(), out)));
    expect("screen.txt", &written(|out| report::screen(&fixture::results(), out)));
    expect("compare.txt", &compared(|a, b, out| compare::text(a, b, out)));
}

#[test]
fn the_markdown_says_what_it_said() {
    expect("report.md", &written(|out| report::markdown(&fixture::results(), out)));
    expect("compare.md", &compared(|a, b, out| compare::markdown(a, b, out)));
}

#[test]
fn the_csv_says_what_it_said() {
    expect("report.csv", &written(|out| report::csv(&fixture::results(), out)));
}

#[test]
fn every_row_of_the_csv_has_every_column() {
    let results = fixture::results();
    let text = written(|out| report::csv(&results, out));
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let names: Vec<&str> = report::CSV_COLUMNS.iter().map(|(name, _)| *name).collect();
    assert_eq!(reader.headers().unwrap(), names);
    let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    let cells: usize = results
        .experiments
        .iter()
        .flat_map(|each| &each.groups)
        .map(|group| group.cells.len())
        .sum();
    assert_eq!(rows.len(), cells);
    let figures = |row: &csv::StringRecord| {
        row.get(27).unwrap().split(';').filter(|text| !text.is_empty()).count()
    };
    assert!(rows.iter().all(|row| figures(row).to_string() == row[8]));
}

#[test]
fn no_line_for_a_terminal_is_too_wide() {
    let texts = [
        written(|out| report::text(&fixture::results(), out)),
        written(|out| report::screen(&fixture::results(), out)),
        compared(|a, b, out| compare::text(a, b, out)),
    ];
    for line in texts.iter().flat_map(|text| text.lines()) {
        assert!(line.chars().count() <= WIDEST, "{} columns: {line}", line.chars().count());
    }
}

#[test]
fn a_group_alone_reads_as_it_does_in_the_whole() {
    let results = fixture::results();
    let whole = written(|out| report::text(&results, out));
    for experiment in &results.experiments {
        for group in &experiment.groups {
            assert!(whole.contains(&written(|out| report::text_group(experiment, group, out))));
        }
    }
}

#[test]
fn the_json_is_read_back_equal() {
    let results = fixture::results();
    let text = written(|out| report::json(&results, out));
    assert!(report::read_json(text.as_bytes()).unwrap() == results);
}

#[test]
fn the_page_is_well_formed_and_says_everything() {
    let results = fixture::results();
    let page = page(&results);
    let document = parse(&page);
    let text: String = document.descendants().filter_map(|node| node.text()).collect();
    for experiment in &results.experiments {
        assert!(text.contains(&experiment.title));
        for cell in experiment.groups.iter().flat_map(|group| &group.cells) {
            assert!(text.contains(&cell.name), "{}", cell.name);
        }
    }
    for verdict in &results.verdicts {
        assert!(
            [&verdict.claim, &verdict.measured, &verdict.why, &verdict.document]
                .iter()
                .all(|part| text.contains(*part))
        );
    }
    for warning in &results.warnings {
        assert!(text.contains(&warning.message) && text.contains(&warning.remedy));
    }
    for fact in &results.environment {
        assert!(text.contains(&fact.value));
    }
}

#[test]
fn links_lead_somewhere_and_names_stand_once() {
    for page in [page(&fixture::results()), compared(|a, b, out| compare::html(a, b, out))] {
        let document = parse(&page);
        let ids: Vec<&str> =
            document.descendants().filter_map(|node| node.attribute("id")).collect();
        let unique: std::collections::BTreeSet<&&str> = ids.iter().collect();
        assert_eq!(ids.len(), unique.len());
        let targets =
            document.descendants().filter_map(|node| node.attribute("href")?.strip_prefix('#'));
        for target in targets {
            assert!(ids.contains(&target), "{target}");
        }
    }
}

#[test]
fn the_page_fetches_nothing_and_links_to_the_archive_alone() {
    for page in [page(&fixture::results()), compared(|a, b, out| compare::html(a, b, out))] {
        let archive = "href=\"https://www.postgresql.org/message-id/";
        let page = page.replace(archive, "href=\"#summary-");
        for part in ["http:", "https:", "//", "@import", "<img", "<iframe", "javascript:"] {
            let found = page.find(part).map(|at| page[at..].chars().take(60).collect::<String>());
            // The comment of the script is the one place for two slashes.
            let allowed = part == "//"
                && found.as_ref().is_some_and(|found| found.starts_with("// Folds away"));
            assert!(found.is_none() || allowed, "{found:?}");
        }
        let document = parse(&page);
        let links = document
            .descendants()
            .filter_map(|node| node.attribute("href").or(node.attribute("src")));
        assert!(links.into_iter().all(|link| link.starts_with('#') || link == "data:,"));
    }
}

#[test]
fn every_picture_is_named_or_hidden() {
    for page in [page(&fixture::results()), compared(|a, b, out| compare::html(a, b, out))] {
        let document = parse(&page);
        let inner = |node: &roxmltree::Node<'_, '_>| {
            node.ancestors().skip(1).any(|above| above.has_tag_name("svg"))
        };
        for svg in document.descendants().filter(|node| node.has_tag_name("svg") && !inner(node)) {
            let named = svg.attribute("aria-label").is_some_and(|label| !label.is_empty());
            assert!(named || svg.attribute("aria-hidden") == Some("true"), "{svg:?}");
        }
    }
}

#[test]
fn a_run_of_nothing_is_told_in_every_form() {
    let nothing = Results::default();
    parse(&page(&nothing));
    let run = compare::Run { label: "", results: &nothing };
    parse(&written(|out| compare::html(&run, &run, out)));
    for text in [
        written(|out| report::text(&nothing, out)),
        written(|out| report::screen(&nothing, out)),
        written(|out| report::markdown(&nothing, out)),
        written(|out| report::csv(&nothing, out)),
        written(|out| compare::text(&run, &run, out)),
        written(|out| compare::markdown(&run, &run, out)),
    ] {
        assert!(!text.is_empty() && !text.contains("NaN"));
    }
}

/// The terminal got 1,900 lines, and the page 73,000 pixels, before anything of use was seen.
#[test]
fn the_first_screen_has_six_numbers_and_the_claims_come_after_the_experiments() {
    let results = fixture::results();
    let screen = written(|out| report::screen(&results, out));
    assert!(screen.lines().count() <= 50, "{} lines", screen.lines().count());
    let page = page(&results);
    for label in ["Random read", "Depth that pays", "Scan", "Sync", "Extension", "Copy"] {
        assert!(screen.contains(label) && page.contains(label), "{label}");
    }
    for text in [page, written(|out| report::markdown(&results, out))] {
        let place = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part} is missing"));
        assert!(place("Random read") < place(&results.experiments[3].title));
        assert!(place(&results.experiments[3].title) < place(&results.verdicts[0].document));
    }
}

#[test]
fn the_contents_tell_cached_groups_from_cold_ones() {
    let results = fixture::results();
    let page = page(&results);
    let document = parse(&page);
    let contents = document.descendants().find(|node| node.attribute("class") == Some("contents"));
    let links = contents.unwrap().descendants().filter(|node| node.has_tag_name("a"));
    let texts: Vec<String> = links.filter_map(|node| node.text()).map(str::to_owned).collect();
    let unique: std::collections::BTreeSet<&String> = texts.iter().collect();
    assert_eq!(texts.len(), unique.len(), "{texts:?}");
    assert!(texts.iter().any(|text| text.contains("cached")), "{texts:?}");
    assert!(texts.iter().any(|text| text.contains("cold")), "{texts:?}");
}
