//! The functions called `ts_headline`: of texts, and of the strings of JSON documents.
//!
//! Arguments are a configuration, if one is named, the text or document, the query, and options, if there are any.
//!
//! Invariant: a `json` comes out without spaces, as the server writes it anew; a `jsonb` is made again from its text.
//!
//! Source: `ts_headline_byid_opt`, `ts_headline_jsonb_byid_opt`, `ts_headline_json_byid_opt` in
//! `src/backend/tsearch/wparser.c`, PostgreSQL 14 to 18.

use arrow::array::{Array as _, ArrayRef};

use super::super::keys::{payloads, strings};
use super::super::rows::{Made, Outcome};
use super::super::{Kernel, KernelCall, text_form};
use super::calls::{Configurations, text_of_jsonb};
use super::documents::Configuration;
use super::headline::{Options, headline};
use super::json_texts::with_strings;
use super::options::options_of;
use super::query::Query;

pub(super) fn find(key: &str) -> Option<Kernel> {
    Some(match key {
        "ts_headline_byid_opt" | "ts_headline_byid" | "ts_headline_opt" | "ts_headline" => of_texts,
        "ts_headline_json_byid_opt"
        | "ts_headline_json_byid"
        | "ts_headline_json_opt"
        | "ts_headline_json" => of_json,
        "ts_headline_jsonb_byid_opt"
        | "ts_headline_jsonb_byid"
        | "ts_headline_jsonb_opt"
        | "ts_headline_jsonb" => of_jsonb,
        _ => return None,
    })
}

/// The arguments of a call.
struct Arguments<'a> {
    named: Option<&'a ArrayRef>,
    document: &'a ArrayRef,
    query: &'a ArrayRef,
    options: Option<&'a ArrayRef>,
}

impl<'a> Arguments<'a> {
    fn new(call: &KernelCall, arguments: &'a [ArrayRef]) -> Self {
        let is_named = call.key.contains("_byid");
        let (named, rest) = arguments.split_at(usize::from(is_named));
        Self { named: named.first(), document: &rest[0], query: &rest[1], options: rest.get(2) }
    }

    fn is_null(&self, row: usize) -> bool {
        let optional = [self.named, self.options].into_iter().flatten();
        optional.chain([self.document, self.query]).any(|argument| argument.is_null(row))
    }
}

/// What a headline is made by.
struct Asked<'q> {
    query: Query<'q>,
    /// The options, which are looked at where there is a text.
    written: Vec<(String, String)>,
    major: u32,
}

impl Asked<'_> {
    fn headline(&self, text: &str, known: &Configuration) -> Outcome<String> {
        let options = Options::new(&self.written, self.major)?;
        headline(text, &self.query, known, &options)
    }
}

/// For each row what `of` makes of it.
fn each<T>(
    call: &KernelCall,
    arguments: &Arguments<'_>,
    of: impl Fn(usize, &Asked<'_>, &Configuration) -> Outcome<T>,
) -> Outcome<ArrayRef>
where
    T: Made,
{
    let major = call.catalog.database().cluster().version().major();
    let mut configurations = Configurations::new(call);
    let one = |row: usize| {
        if arguments.is_null(row) {
            return Ok(None);
        }
        let Some(known) = configurations.of(arguments.named, row)? else {
            return Ok(None);
        };
        let options = arguments.options.map(|options| strings(options).value(row));
        let written = options_of(options.unwrap_or_default())?; // default: none are said
        let query = Query::read(payloads(arguments.query).value(row))?;
        of(row, &Asked { query, written, major }, known).map(Some)
    };
    Made::column((0..arguments.document.len()).map(one).collect::<Outcome<Vec<Option<T>>>>()?)
}

fn of_texts(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let arguments = Arguments::new(call, arguments);
    let texts = strings(arguments.document);
    each(call, &arguments, |row, asked, known| asked.headline(texts.value(row), known))
}

fn of_json(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let arguments = Arguments::new(call, arguments);
    let documents = strings(arguments.document);
    each(call, &arguments, |row, asked, known| {
        with_strings(documents.value(row), |text| asked.headline(text, known))
    })
}

fn of_jsonb(call: &KernelCall, arguments: &[ArrayRef]) -> Outcome<ArrayRef> {
    let arguments = Arguments::new(call, arguments);
    let documents = payloads(arguments.document);
    each(call, &arguments, |row, asked, known| {
        let printed = text_of_jsonb(documents.value(row))?;
        let made = with_strings(&printed, |text| asked.headline(text, known))?;
        text_form::payload_of_text(&call.catalog, call.result, &made)
    })
}
